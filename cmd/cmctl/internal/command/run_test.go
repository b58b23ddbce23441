package command_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/command"
)

// program is a shell script and what it says. Whatever it starts holds the pipe.
func program(t *testing.T, script string) (cmd *exec.Cmd, said *bufio.Reader) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	cmd = exec.Command("sh", "-c", script)
	cmd.Stdout = in
	return cmd, bufio.NewReader(out)
}

// run runs it in the background, with this process's end of the pipe closed.
func run(ctx context.Context, cmd *exec.Cmd, end syscall.Signal, running command.Running) <-chan error {
	ended := make(chan error, 1)
	go func() {
		err := command.Run(ctx, cmd, end, running)
		cmd.Stdout.(*os.File).Close()
		ended <- err
	}()
	return ended
}

func expect(t *testing.T, said *bufio.Reader, want string) {
	t.Helper()
	if got, err := said.ReadString('\n'); got != want+"\n" {
		t.Fatalf("it says %q, %v, want %q", got, err, want)
	}
}

// over demands that nobody says anything or is there to.
func over(t *testing.T, said *bufio.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(said); err != nil || len(rest) > 0 {
		t.Errorf("the pipe ended with %q, %v", rest, err)
	}
}

// What a program has started ends with it.
func TestAGroupEndsTogether(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd, said := program(t, "echo begun; (trap '' TERM; exec sleep 600) & wait")
	ended := run(ctx, cmd, syscall.SIGTERM, nil)
	expect(t, said, "begun")
	cancel()
	var how *command.EndedError
	if err := <-ended; !errors.As(err, &how) || !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	over(t, said)
}

// A program that goes on after the signal is waited for, until it has to end at
// once.
func TestAProgramThatGoesOnIsWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd, said := program(t, `trap 'echo asked' TERM; echo begun; while :; do sleep 0.01; done`)
	kill, known := make(chan func(), 1), true
	ended := run(ctx, cmd, syscall.SIGTERM, func(end func()) func() {
		kill <- end
		return func() { known = false }
	})
	expect(t, said, "begun")
	cancel()
	expect(t, said, "asked")
	select {
	case err := <-ended:
		t.Fatalf("it was not waited for: %v", err)
	default:
	}
	(<-kill)()
	if err := <-ended; !errors.As(err, new(*command.EndedError)) {
		t.Errorf("it ended with %v", err)
	}
	over(t, said)
	if known {
		t.Error("it is said nowhere that it ended")
	}
}

// The other ends of a program that is told of.
func TestEveryProgramIsToldOf(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		words []string
		runs  bool
		good  func(error) bool
	}{
		{"success", t.Context(), []string{"true"}, true, func(err error) bool { return err == nil }},
		{"failure", t.Context(), []string{"false"}, true, func(err error) bool { return errors.As(err, new(*exec.ExitError)) }},
		{"no such program", t.Context(), []string{"/no/such/program"}, true, func(err error) bool { return errors.Is(err, os.ErrNotExist) }},
		{"ended before it began", over, []string{"true"}, false, func(err error) bool { return errors.As(err, new(*command.EndedError)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun, ended := 0, 0
			err := command.Run(c.ctx, exec.Command(c.words[0], c.words[1:]...), syscall.SIGTERM, func(func()) func() {
				begun++
				return func() { ended++ }
			})
			if want := map[bool]int{true: 1}[c.runs]; begun != want || ended != want || !c.good(err) {
				t.Errorf("it begins %d and ends %d times, with %v", begun, ended, err)
			}
		})
	}
}

// A program that has the terminal stays in our group, and is asked to end, so that
// it can rescue what it holds.
func TestAForcedEndLetsAnEditorRescueItsText(t *testing.T) {
	cmd, said := program(t, `trap 'echo rescued; exit' TERM; echo $$; while :; do sleep 0.01; done`)
	kill, ended := make(chan func(), 1), make(chan error, 1)
	go func() {
		err := command.RunInForeground(cmd, func(end func()) func() {
			kill <- end
			return func() {}
		})
		cmd.Stdout.(*os.File).Close()
		ended <- err
	}()
	line, err := said.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != syscall.Getpgrp() {
		t.Errorf("its group is %d, %v", group, err)
	}
	(<-kill)()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it was not waited for: %v", err)
	}
	expect(t, said, "rescued")
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	over(t, said)
}

// One that does not mind is not left behind on the terminal.
func TestAForcedEndLeavesNoEditorBehind(t *testing.T) {
	cmd, said := program(t, `trap '' TERM; echo begun; while :; do sleep 0.01; done`)
	kill, ended := make(chan func(), 1), make(chan error, 1)
	go func() {
		ended <- command.RunInForeground(cmd, func(end func()) func() {
			kill <- end
			return func() {}
		})
		cmd.Stdout.(*os.File).Close()
	}()
	expect(t, said, "begun")
	(<-kill)()
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
}
