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

// grace is how long the output of a command that has ended is waited for: what it
// started may hold it open.
const grace = time.Second

// FailedError says that a command ended otherwise than with success.
type FailedError struct {
	Command string
	How     string // exit status 1, signal: killed
}

func (e *FailedError) Error() string { return fmt.Sprintf("%s ended with %s", e.Command, e.How) }

// Command is a program with its arguments. No shell reads them.
type Command struct {
	Argv    []string
	Stderr  io.Writer
	Running command.Running
}

// Run gives in to the command's standard input and returns what it writes to
// its standard output, whole. A command that leaves its input unread is fine. The
// end of the context ends the command and all that it started; one that ignores
// SIGTERM is waited for.
func (c Command) Run(ctx context.Context, in []byte) ([]byte, error) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	out := &bounded{end: func() { command.KillGroup(cmd) }}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, c.Stderr
	cmd.WaitDelay = grace
	err := command.Run(ctx, cmd, syscall.SIGTERM, c.Running)
	name := strings.Join(c.Argv, " ")
	var exit *exec.ExitError
	switch {
	case errors.As(err, new(*command.EndedError)):
		return nil, err
	case out.full:
		command.KillGroup(cmd)
		return nil, fmt.Errorf("%s wrote more than %d MiB, which no object may have", name, MaxOutput>>20)
	case errors.As(err, &exit):
		return nil, &FailedError{Command: name, How: exit.Error()}
	case errors.Is(err, exec.ErrWaitDelay):
		command.KillGroup(cmd)
		return nil, fmt.Errorf("%s ended, but something that it started keeps its output open", name)
	case err != nil:
		return nil, fmt.Errorf("%s can't be run: %s", c.Argv[0], command.Unstarted(err))
	}
	return out.bytes, nil
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
