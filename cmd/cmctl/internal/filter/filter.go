// Package filter runs a command that turns bytes into bytes, such as jq or sed.
//
//	out, err := filter.Command{Argv: []string{"tr", "a-z", "A-Z"}, Stderr: os.Stderr}.Run(ctx, in)
package filter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/command"
)

// MaxOutput is how many bytes a command may write: more than any object that a
// server takes, and little enough for one that never ends.
const MaxOutput = 8 << 20

// grace is how long a command, and what it started, may take to end once it was
// told to, or to close its output once it ended.
const grace = time.Second

// FailedError says that a command ended otherwise than with success.
type FailedError struct {
	Command string
	How     string // exit status 1, signal: killed
}

func (e *FailedError) Error() string { return fmt.Sprintf("%s ended with %s", e.Command, e.How) }

// Command is a program with its arguments. No shell reads them.
type Command struct {
	Argv   []string
	Stderr io.Writer
	// Running is given what kills the command and all that it started at once,
	// for callers that can't wait for Run; what it returns is called when the
	// command has ended. Nil is fine.
	Running func(kill func()) (ended func())
}

// Run gives in to the command's standard input and returns what it writes to
// its standard output, whole. The end of the context ends the command and all
// that it started. A command that leaves its input unread is fine.
func (c Command) Run(ctx context.Context, in []byte) ([]byte, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	out := &bounded{end: end}
	cmd := exec.CommandContext(running, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, c.Stderr
	cmd.WaitDelay = grace
	command.OwnGroup(cmd, syscall.SIGTERM)
	err := c.await(cmd)
	name := strings.Join(c.Argv, " ")
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		command.KillGroup(cmd)
		return nil, fmt.Errorf("%s: %w", name, ctx.Err())
	case out.full:
		command.KillGroup(cmd)
		return nil, fmt.Errorf("%s wrote more than %d MiB, which no object may have", name, MaxOutput>>20)
	case errors.As(err, &exit):
		return nil, &FailedError{Command: name, How: exit.Error()}
	case errors.Is(err, exec.ErrWaitDelay):
		command.KillGroup(cmd)
		return nil, fmt.Errorf("%s ended, but something that it started keeps its output open", name)
	case err != nil:
		return nil, fmt.Errorf("%s can't be run: %w", name, err)
	}
	return out.bytes, nil
}

// await runs the command to its end.
func (c Command) await(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if c.Running != nil {
		defer c.Running(func() { command.KillGroup(cmd) })()
	}
	return cmd.Wait()
}

// bounded is a buffer that takes MaxOutput bytes, and then calls end. It is no
// bytes.Buffer: that one's ReadFrom knows no bound.
type bounded struct {
	bytes []byte
	full  bool
	end   func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.bytes)+len(p) > MaxOutput {
		b.full = true
		b.end()
		return 0, errors.New("too much output")
	}
	b.bytes = append(b.bytes, p...)
	return len(p), nil
}
