package command

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Running is told of each program before it starts, and given what ends it without
// waiting for it: for who has to end at once. What it returns is called when the
// program has ended, or could not be started. Nil is fine.
type Running func(end func()) (ended func())

// EndedError says that a program was to end before it was done, since its context
// did.
type EndedError struct {
	Command string
	Err     error // the context's
}

func (e *EndedError) Error() string { return e.Command + " was ended before it was done" }
func (e *EndedError) Unwrap() error { return e.Err }

// Run runs a program that was not started yet, at the head of a process group of
// its own, and waits for its end. When ctx ends, all of the group get the signal
// end, and the error is an *EndedError. A program that does not mind the signal is
// waited for all the same: whether what it does may be cut off is for the person
// to say, whose second Ctrl-C comes through running and kills the group.
func Run(ctx context.Context, cmd *exec.Cmd, end syscall.Signal, running Running) error {
	if ctx.Err() != nil {
		return endedError(ctx, cmd)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ended, err := running.start(cmd, func() { KillGroup(cmd) })
	defer ended()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { signalGroup(cmd, end) })()
	err = cmd.Wait()
	if ctx.Err() != nil {
		KillGroup(cmd)
		return endedError(ctx, cmd)
	}
	return err
}

func endedError(ctx context.Context, cmd *exec.Cmd) error {
	return &EndedError{Command: strings.Join(cmd.Args, " "), Err: ctx.Err()}
}

// rescue is how long a program that has the terminal may take to end after SIGTERM.
const rescue = time.Second

// RunInForeground runs a program that has the terminal, such as an editor, and
// waits for its end. Who has to end at once asks it to end with SIGTERM, and waits for
// that, but not for long: an editor rescues then what was not saved, and gives the
// screen back. One that doesn't end is killed, so that it isn't left on the terminal.
func RunInForeground(cmd *exec.Cmd, running Running) error {
	gone := make(chan struct{}) // closed when the program has ended
	ended, err := running.start(cmd, func() {
		if cmd.Process == nil {
			return
		}
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
		select {
		case <-gone:
		case <-time.After(rescue):
			_ = cmd.Process.Kill() // it may just have ended
		}
	})
	defer ended()
	if err != nil {
		return err
	}
	defer close(gone)
	return cmd.Wait()
}

// start starts a program that r knows of before there is one, so that there is
// none that it doesn't know of.
func (r Running) start(cmd *exec.Cmd, end func()) (ended func(), err error) {
	if r == nil {
		return func() {}, cmd.Start()
	}
	var starting sync.Mutex // held until cmd is a process, or is known not to become one
	starting.Lock()
	defer starting.Unlock()
	ended = r(func() {
		starting.Lock()
		defer starting.Unlock()
		end()
	})
	return ended, cmd.Start()
}

// KillGroup kills what is left of the group of a program that Run has started.
func KillGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

func signalGroup(cmd *exec.Cmd, s syscall.Signal) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, s) // an empty group is what is wanted
	}
}
