// Package check looks at the content of values before they are stored: whether a
// key that ends in .yaml holds YAML, and what a person's own checker says of it.
//
//	checks := check.Checks{Commands: []check.Command{{Keys: "*.conf", Command: "nginx -t -c {}"}}}
//	for _, p := range checks.Document(ctx, before, after) {
//		fmt.Println(p)
//	}
package check

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/command"
	"example.com/cmctl/pkg/types"
	"example.com/cmctl/pkg/types/content"
)

// Mode says what follows from a problem.
type Mode string

// The modes.
const (
	Warn Mode = "warn" // tell of it, and write
	Fail Mode = "fail" // write nothing
	Off  Mode = "off"  // don't look
)

// ParseMode reads a mode as people write it.
func ParseMode(text string) (Mode, error) {
	if m := Mode(text); slices.Contains([]Mode{Warn, Fail, Off}, m) {
		return m, nil
	}
	return "", fmt.Errorf("%q is none of %s, %s and %s", text, Warn, Fail, Off)
}

// Command is a program that checks values.
type Command struct {
	// Keys are those whose values it checks, a pattern as of path.Match: *.conf
	Keys string
	// Command is the program with its arguments, as words by the shell's rules
	// but without a shell. It gets the value on its standard input, and {} in an
	// argument stands for a file that holds it. It says that a value is broken by
	// an exit code other than 0.
	Command string
}

// Validate tells what can't be meant.
func (c Command) Validate() error {
	if c.Keys == "" || c.Command == "" {
		return errors.New("a check has keys, a pattern, and a command")
	}
	if _, err := path.Match(c.Keys, ""); err != nil {
		return fmt.Errorf("the pattern of keys %q is broken: %w", c.Keys, err)
	}
	_, err := command.Words(c.Command)
	return err
}

// Checks are the checks to make. The zero value makes those that need no
// configuration. It may be shared.
type Checks struct {
	// Commands take the place of the built-in check for the keys that they
	// match. All that match a key are run, one after the other.
	Commands []Command
	// Timeout is how long one command may run; zero means DefaultTimeout.
	Timeout time.Duration
	Running command.Running
}

// DefaultTimeout is enough for a checker that looks at one file.
const DefaultTimeout = 30 * time.Second

// Problem is what is wrong with the value of a key.
type Problem struct {
	Key   string
	Line  int // of the value, from 1; 0 if it is not known
	Cause string
}

func (p Problem) String() string {
	field := types.Field{Section: "data", Key: p.Key}
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", field, p.Cause)
	}
	return fmt.Sprintf("%s: line %d: %s", field, p.Line, p.Cause)
}

// Document checks the texts under the keys of data that after has otherwise
// than before, which is nil for a new object. Bytes are not looked at. Once ctx
// is done commands are ended, and what they have not said is a problem too.
func (c *Checks) Document(ctx context.Context, before, after types.Document) []Problem {
	var problems []Problem
	for _, change := range types.Diff(before, after) {
		text, ok := change.To.(string)
		if ok && change.Field.Section == "data" {
			problems = append(problems, c.value(ctx, change.Field.Key, text)...)
		}
	}
	return problems
}

func (c *Checks) value(ctx context.Context, key, text string) []Problem {
	var problems []Problem
	custom := false
	for _, own := range c.Commands {
		if match, _ := path.Match(own.Keys, key); match { // Validate knows the pattern
			custom = true
			if cause := c.run(ctx, own.Command, key, text); cause != "" {
				problems = append(problems, Problem{Key: key, Cause: cause})
			}
		}
	}
	if custom {
		return problems
	}
	return builtIn(key, text)
}

// builtIn parses what has a format that we know.
func builtIn(key, text string) []Problem {
	format := content.FormatOf(key)
	if format == "" {
		return nil
	}
	_, err := content.Parse(format, text)
	if err == nil {
		return nil
	}
	p := Problem{Key: key, Cause: err.Error()}
	var at *content.Error
	if errors.As(err, &at) {
		p.Line, p.Cause = at.Line, at.Message
	}
	p.Cause = fmt.Sprintf("this is not valid %s: %s", format, strings.TrimSpace(p.Cause))
	return []Problem{p}
}
