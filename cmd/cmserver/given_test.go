package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// What is given and empty was meant to say something: it is refused wherever it is
// given, by its place, and never taken for what is not given.
func TestSettingsThatAreGivenAreNotEmpty(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	refused := func(t *testing.T, place string, args ...string) {
		t.Helper()
		err := run(t.Context(), args, streams{io.Discard, io.Discard})
		if exitCode(err) != 2 || !strings.Contains(err.Error(), place+" ") || !strings.Contains(err.Error(), "is given and empty") {
			t.Errorf("%s: exit %d: %v", place, exitCode(err), err)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	addFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(mayBeEmpty, f.Name) {
			return
		}
		t.Run(f.Name, func(t *testing.T) {
			if strings.HasPrefix(f.Value.Type(), "string") { // others have to be a number, or such, to be a flag
				refused(t, "--"+f.Name, "--"+f.Name+"=")
			}
			if f.Name != configFlag {
				for _, nothing := range []string{"", "null", "~", "''", "[]", "{}", "[null]", "['']"} {
					file := writeFile(t, "config.yaml", "verbose: true\n"+f.Name+": "+nothing+"\n")
					if f.Name == "verbose" {
						file = writeFile(t, "config.yaml", "Verbose: "+nothing+"\n")
					}
					refused(t, f.Name+" in the configuration file "+file, "--config="+file)
				}
			}
			t.Setenv(variable(f.Name), "")
			refused(t, "the variable "+variable(f.Name))
		})
	})
}

// A place that goes before the empty one says what holds; and of some settings
// nothing is a value.
func TestSettingsThatMayBeEmpty(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	file := writeFile(t, "config.yaml", "quota-dir:\ninject:\n")
	t.Setenv("CMSERVER_RBAC_DIR", "")
	t.Setenv("CMSERVER_QUOTA_DIR", "fromvariable")
	c, err := load(t, "--in-memory", "--rbac-dir=fromflag", "--config="+file, "--inject=")
	if err != nil || c.RBACDir != "fromflag" || c.QuotaDir != "fromvariable" || !c.faults.Empty() {
		t.Errorf("got %+v, %v", c, err)
	}
}
