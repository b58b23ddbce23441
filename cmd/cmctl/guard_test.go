package main

import (
	"errors"
	"testing"

	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

func TestGuardFlags(t *testing.T) {
	manifest := types.NewDocument("", "flags")
	manifest.SetMeta("resourceVersion", "7")
	manifest.SetMeta("uid", "u")
	for _, c := range []struct {
		name  string
		args  []string
		wrong bool
		clash bool
	}{
		{name: "none"},
		{name: "the same as in the manifest", args: []string{"--resource-version=7", "--uid=u"}},
		{name: "another version", args: []string{"--resource-version=8"}, clash: true},
		{name: "another object", args: []string{"--uid=v"}, clash: true},
		{name: "an empty version, as from an unset variable", args: []string{"--resource-version="}, wrong: true},
		{name: "the version that stands for any", args: []string{"--resource-version=0"}, wrong: true, clash: true},
		{name: "an empty uid", args: []string{"--uid="}, wrong: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g guardFlags
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			g.add(flags)
			if err := flags.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			if err := g.validate(flags); (err != nil) != c.wrong || err != nil && !errors.As(err, new(*usageError)) {
				t.Errorf("validate says %v", err)
			}
			if err := g.clash("cm.yaml:1", manifest); (err != nil) != c.clash || err != nil && !errors.As(err, new(*usageError)) {
				t.Errorf("clash says %v", err)
			}
		})
	}
}
