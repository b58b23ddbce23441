// Package command takes command lines apart that people wrote into settings and
// flags, and runs programs so that they end together with all that they started.
//
//	words, err := command.Words(`sh -c 'nginx -t -c "$0"' {}`)
//	err = command.Run(ctx, exec.Command(words[0], words[1:]...), syscall.SIGTERM, nil)
package command

import (
	"fmt"
	"os"

	"mvdan.cc/sh/v3/shell"
	"mvdan.cc/sh/v3/syntax"
)

// Words splits a command line by the shell's rules, with the variables of the
// environment, but without a shell that would run what one of them smuggles in. It
// has at least one word unless there is an error.
func Words(line string) ([]string, error) {
	words, err := shell.Fields(line, keepUnset)
	if err != nil {
		return nil, fmt.Errorf("%q is not a command: %w", line, err)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%q is not a command", line)
	}
	return words, nil
}

// keepUnset leaves $0 and its like in place: they are meant for a shell that the
// command itself may start.
func keepUnset(name string) string {
	if v, ok := os.LookupEnv(name); ok {
		return v
	}
	return "$" + name
}

// Quote is text as one word of a command line, for any shell that POSIX describes.
// What no shell takes, a zero byte, is left as it is: it can't have been typed.
func Quote(text string) string {
	for _, language := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		if quoted, err := syntax.Quote(text, language); err == nil {
			return quoted
		}
	}
	return text
}
