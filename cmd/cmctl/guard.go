package main

import (
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

// guardFlags are the conditions that a writing verb takes: the server refuses
// the write if the object is not, or no longer, what they say.
type guardFlags struct {
	resourceVersion string
	uid             string
}

func (g *guardFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&g.resourceVersion, "resource-version", "", "write only if the object is at this `VERSION`; a conflict is not retried then")
	flags.StringVar(&g.uid, "uid", "", "write only if the object is the one with this `UID`, not another of its name")
}

// want is the condition for package retry.
func (g *guardFlags) want() retry.Version {
	return retry.Version{UID: g.uid, ResourceVersion: g.resourceVersion}
}

func (g *guardFlags) given() bool { return g.want() != retry.Version{} }

// validate refuses a condition that can't be meant.
func (g *guardFlags) validate(flags *pflag.FlagSet) error {
	for name, value := range map[string]string{"resource-version": g.resourceVersion, "uid": g.uid} {
		if flags.Changed(name) && (value == "" || value == "0") {
			return usagef("--%s=%q is no condition; take the value from 'cmctl get NAME -o yaml', or leave the flag out", name, value)
		}
	}
	return nil
}

// onlyForOne refuses a condition where more than one object may be meant.
func (g *guardFlags) onlyForOne() error {
	if !g.given() {
		return nil
	}
	return usagef("--resource-version and --uid are conditions on one object; name one alone with them")
}

// clash refuses a manifest, at the place where, that says something else than
// the flags.
func (g *guardFlags) clash(where string, manifest types.Document) error {
	for _, c := range []struct{ field, flag, value string }{
		{"resourceVersion", g.resourceVersion, manifest.ResourceVersion()},
		{"uid", g.uid, manifest.UID()},
	} {
		if c.flag != "" && c.value != "" && c.flag != c.value {
			return usagef("%s: metadata.%s is %q, but the flag says %q; give one of them", where, c.field, c.value, c.flag)
		}
	}
	return nil
}
