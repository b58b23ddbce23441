package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flag that takes one value and is given two means one of them, and nobody can tell
// which: of a guard, a patch or a server the last one is no better than the first. So
// it is refused. The same value may be given again.

// errRepeated is a flag's second value.
var errRepeated = errors.New("given more than once, with different values; it takes one")

// onceValue is the value of a flag that takes no other one after the first.
type onceValue struct {
	pflag.Value
	given bool
}

func (v *onceValue) Set(text string) error {
	before := v.String()
	if err := v.Value.Set(text); err != nil {
		return err
	}
	if v.given && v.String() != before {
		return errRepeated
	}
	v.given = true
	return nil
}

// refuseRepeats makes the flags of all commands take one value, but for those that are
// lists.
func refuseRepeats(root *cobra.Command) {
	once := func(flag *pflag.Flag) {
		_, list := flag.Value.(pflag.SliceValue)
		if _, already := flag.Value.(*onceValue); list || already {
			return
		}
		flag.Value = &onceValue{Value: flag.Value}
		if flag.DefValue == "0s" {
			flag.DefValue = "0" // of pflag's own durations alone help knows that this is none
		}
	}
	root.PersistentFlags().VisitAll(once)
	root.Flags().VisitAll(once)
	for _, cmd := range root.Commands() {
		refuseRepeats(cmd)
	}
}

// flagError is a usage error for flags that can't be taken. A flag's two values are not
// shown: they may be tokens.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && errors.Is(err, errRepeated) {
		return usagef("--%s is %v (see '%s --help')", invalid.GetFlag().Name, errRepeated, cmd.CommandPath())
	}
	return usagef("%v (see '%s --help')", err, cmd.CommandPath())
}
