package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// variablePrefix begins the names of the variables that are settings.
const variablePrefix = "CMSERVER"

// variable is the name of the variable of a setting.
func variable(setting string) string {
	return variablePrefix + "_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// mayBeEmpty are the settings for which nothing is a value: no faults, no prefix.
var mayBeEmpty = []string{"inject", "oidc-username-prefix", "oidc-groups-prefix"}

// isSetting tells settings from the flags that every command has.
func isSetting(f *pflag.Flag) bool { return f.Name != "help" && f.Name != "version" }

// checkGiven refuses settings that are given and say nothing, as a variable or a
// template does that was not filled in: what is meant to close the server, or to
// bound it, must not silently leave it open. file is the file at path, by keys.
func checkGiven(flags *pflag.FlagSet, file map[string]any, path string) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if !isSetting(f) || slices.Contains(mayBeEmpty, f.Name) {
			return
		}
		if where := emptyAt(f, file, path); where != "" {
			errs = append(errs, fmt.Errorf("%s is given and empty: give it a value, or leave it out", where))
		}
	})
	return errors.Join(errs...)
}

// emptyAt is where a setting is given that says nothing, empty if nowhere. Only the
// place counts that goes before the others.
func emptyAt(f *pflag.Flag, file map[string]any, path string) string {
	if f.Changed {
		if isEmpty(f.Value) {
			return "--" + f.Name
		}
		return ""
	}
	if text, ok := os.LookupEnv(variable(f.Name)); ok {
		if text == "" {
			return "the variable " + variable(f.Name)
		}
		return ""
	}
	if value, ok := file[f.Name]; ok && saysNothing(value) {
		return fmt.Sprintf("%s in the configuration file %s", f.Name, path)
	}
	return ""
}

func isEmpty(v pflag.Value) bool {
	if list, ok := v.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), "") == ""
	}
	return v.String() == ""
}

// saysNothing tells what YAML has of which no setting can be made.
func saysNothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !saysNothing(item) })
	case map[string]any:
		return len(v) == 0
	}
	return false
}
