package main

import (
	"context"
	"fmt"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/check"
	"example.com/cmctl/pkg/types"
	"github.com/spf13/pflag"
)

// contentChecks is what a verb that writes does about the content of values. It
// is made by addFlag, and ready after prepare.
type contentChecks struct {
	flag   string
	mode   check.Mode
	checks check.Checks
}

func (c *contentChecks) addFlag(flags *pflag.FlagSet) {
	flags.StringVar(&c.flag, "check", string(check.Warn), "`warn|fail|off`: what to do about a broken value of a key like app.yaml")
}

// prepare reads the flag and the settings, before any request. Its errors are
// about the command line.
func (c *contentChecks) prepare(f *factory) (err error) {
	if c.mode, err = check.ParseMode(c.flag); err != nil {
		return usagef("--check: %v", err)
	}
	c.checks.Running = f.interrupts.before
	c.checks.Commands, err = f.checkCommands()
	return err
}

// checksSetting is the list of checker commands in the settings file. It has no
// variable: it says what is run.
const checksSetting = "checks"

func (f *factory) checkCommands() ([]check.Command, error) {
	var commands []check.Command
	if err := f.file.Decode(checksSetting, &commands); err != nil {
		return nil, usagef("the setting %s must be a list of entries with keys and command: %v", checksSetting, err)
	}
	for i, c := range commands {
		if err := c.Validate(); err != nil {
			return nil, usagef("the setting %s, entry %d: %v", checksSetting, i+1, err)
		}
	}
	return commands, nil
}

// checkContent looks at the values that after has otherwise than before, which
// is nil for a new object. Under warn it tells of what is broken, under fail the
// error does; nothing must be written then. The error is a *contentError, or that
// of ctx.
func (f *factory) checkContent(ctx context.Context, c *contentChecks, object string, before, after types.Document) error {
	if c.mode == check.Off {
		return nil
	}
	problems := c.checks.Document(ctx, before, after)
	switch {
	case ctx.Err() != nil:
		return endOf(ctx)
	case len(problems) == 0:
		return nil
	case c.mode == check.Fail:
		return &contentError{object, problems}
	}
	for _, p := range problems {
		f.note("warning: %s: %s", object, p)
	}
	return nil
}

// contentError says which values are broken; nothing was written.
type contentError struct {
	object   string
	problems []check.Problem
}

func (e *contentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: nothing was written, for this is broken:", e.object)
	for _, p := range e.problems {
		fmt.Fprintf(&b, "\n  %s", strings.ReplaceAll(p.String(), "\n", "\n    "))
	}
	b.WriteString("\ncorrect it, or store it as it is with --check=off")
	return b.String()
}
