// Package supervise runs one program, passes it the signals that its supervisor
// gets, and starts it anew when its environment changes.
//
//	code, err := supervise.Run(ctx, supervise.Program{Words: []string{"app"}}, environments)
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/command"
)

// Program is what to run.
type Program struct {
	Words    []string // the program and its arguments
	In       io.Reader
	Out, Err io.Writer
	Grace    time.Duration // how long it may take to end after SIGTERM before it is killed
	Restarts func()        // called before each restart; may be nil
}

// StartError is a program that can't be started.
type StartError struct {
	Program string // as it was asked for
	Err     error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("the program %q can't be run: %s", e.Program, command.Unstarted(e.Err))
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Code is the exit code that shells and env(1) have for it: 127 if there is no
// such program, 126 if there is one.
func (e *StartError) Code() int {
	if errors.Is(e.Err, exec.ErrNotFound) || errors.Is(e.Err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// Find is the path of a program, which has no slash in its name if the PATH is
// to be searched for it. The error is a StartError.
func Find(program string) (path string, err error) {
	path, err = exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) && forbidden(program) {
		err = fs.ErrPermission
	}
	if err != nil {
		return "", &StartError{program, err}
	}
	return path, nil
}

// forbidden tells whether the PATH has a file of that name after all, which exec
// doesn't say.
func forbidden(program string) bool {
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, program))
		return err == nil && info.Mode().IsRegular()
	})
}

// signalsToPass reach the program through its supervisor. SIGINT is not among
// them: Ctrl-C reaches the whole foreground group by itself.
var signalsToPass = []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2}

// Run starts the program with the first environment that comes, and anew with
// each further one, until it ends by itself. It returns the program's exit
// code, 128 plus the signal's number if a signal ended it; one that can't be
// started is a StartError. An environment is the whole of it, as os.Environ gives
// it. When environments is closed, the
// program goes on as it is; the context counts only until it is started.
func Run(ctx context.Context, p Program, environments <-chan []string) (int, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err() // also where an environment is there
	}
	var env []string
	select {
	case first, ok := <-environments:
		if !ok {
			return 0, errors.New("there is no environment to start the program with")
		}
		env = first
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, signalsToPass...)
	defer signal.Stop(signals)
	for {
		r, err := p.start(env)
		if err != nil {
			return 0, err
		}
		next, ended := r.watch(environments, signals)
		if ended {
			return r.code()
		}
		if r.stop(signals) {
			return r.code()
		}
		if p.Restarts != nil {
			p.Restarts()
		}
		env = next
	}
}

// running is one run of the program.
type running struct {
	Program
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone
	err   error         // of Wait; read after ended is closed
}

func (p Program) start(env []string) (*running, error) {
	cmd := exec.Command(p.Words[0], p.Words[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, p.In, p.Out, p.Err
	if err := cmd.Start(); err != nil {
		return nil, &StartError{p.Words[0], err}
	}
	r := &running{Program: p, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = cmd.Wait()
	}()
	return r, nil
}

// watch waits for the program's end or for a new environment, and passes
// signals on meanwhile.
func (r *running) watch(environments <-chan []string, signals <-chan os.Signal) (next []string, ended bool) {
	for {
		select {
		case <-r.ended:
			return nil, true
		case s := <-signals:
			_ = r.cmd.Process.Signal(s) // it may just have ended
		case env, ok := <-environments:
			if ok {
				return env, false
			}
			environments = nil
		}
	}
}

// stop ends the program for a restart. over is true if it must not be started
// again: it had just ended by itself, or somebody else asked it to end meanwhile.
func (r *running) stop(signals <-chan os.Signal) (over bool) {
	select {
	case <-r.ended:
		return true
	default:
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
	grace := time.NewTimer(r.Grace)
	defer grace.Stop()
	for {
		select {
		case <-r.ended:
			return over
		case s := <-signals:
			over = over || s == syscall.SIGTERM
			_ = r.cmd.Process.Signal(s) // it may just have ended
		case <-grace.C:
			_ = r.cmd.Process.Kill() // it may just have ended
		}
	}
}

// code is the exit code of a program that ended.
func (r *running) code() (int, error) {
	var exit *exec.ExitError
	switch {
	case r.err == nil:
		return 0, nil
	case errors.As(r.err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, fmt.Errorf("the program %s: %w", r.Words[0], r.err)
}
