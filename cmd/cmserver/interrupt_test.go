package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// One signal ends a command that waits for what it reads or writes; nothing is left of
// what it was about, and it says by what it was ended.
func TestASignalEndsACommandThatWaits(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	p := launch(t, "--data-dir", data)
	for i := range 40 { // more than a pipe takes
		p.must("POST", collection, fmt.Sprintf(`{"metadata":{"name":"big%d"},"data":{"k":%q}}`, i, strings.Repeat("x", 500_000)), 201)
	}
	file := filepath.Join(folder, "backup")
	must(t, "backup", "--data-dir", data, file)
	p.end()
	backup, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part, again := backup[:len(backup)*3/4], filepath.Join(folder, "again")
	for _, c := range []struct {
		name   string
		given  []byte // what the input gives before it blocks
		args   []string
		signal os.Signal
		code   int
	}{
		{"check", nil, []string{"check", "-"}, os.Interrupt, 130},
		{"check in the midst", part, []string{"check", "-"}, syscall.SIGTERM, 143},
		{"restore", nil, []string{"restore", "-", "--data-dir", again}, syscall.SIGTERM, 143},
		{"restore in the midst", part, []string{"restore", "-", "--data-dir", again}, os.Interrupt, 130},
		{"backup to who takes nothing", nil, []string{"backup", "--data-dir", data, "-"}, syscall.SIGTERM, 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, signal := context.WithCancelCause(t.Context())
			r, w := io.Pipe()
			defer w.Close() // lets go of what still reads
			out := &blocking{entered: make(chan struct{}), let: make(chan struct{})}
			defer close(out.let)
			var errs bytes.Buffer
			root := rootCommand(streams{out: out, err: &errs})
			root.SetArgs(c.args)
			root.SetIn(r)
			ended := make(chan error)
			go func() { ended <- root.ExecuteContext(ctx) }()
			if c.args[0] == "backup" {
				<-out.entered
			} else if _, err := w.Write(c.given); err != nil {
				t.Error(err)
			}
			signal(interruption{c.signal})
			err := <-ended
			if code := exitCode(err); code != c.code || !strings.Contains(err.Error(), "ended by SIG") || strings.Contains(err.Error(), "\n") {
				t.Errorf("it ended with %d: %v", code, err)
			}
		})
	}
	if names := namesIn(t, folder); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

// blocking takes nothing until it is let.
type blocking struct{ entered, let chan struct{} }

func (b *blocking) Write([]byte) (int, error) {
	close(b.entered)
	<-b.let
	return 0, errors.New("nothing was taken")
}

// What is done stays done, whether it can be told or not; what can't be told of a
// check is not known.
func TestWhatCantBeTold(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	launch(t, "--data-dir", data).end()
	file, again := filepath.Join(folder, "backup"), filepath.Join(folder, "again")
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"backup", "--data-dir", data, file}, 0},
		{[]string{"restore", file, "--data-dir", again}, 0},
		{[]string{"check", "--data-dir", again}, 2},
		{[]string{"check", "--data-dir", damagedData(t)}, 1},
		{[]string{"backup", "--data-dir", data, "-"}, 1},
	} {
		root := rootCommand(streams{out: fullDevice{}, err: fullDevice{}})
		root.SetArgs(c.args)
		if err := root.ExecuteContext(t.Context()); exitCode(err) != c.code {
			t.Errorf("%v: %d, %v", c.args, exitCode(err), err)
		}
	}
	must(t, "check", file)
	must(t, "check", "--data-dir", again)
}

type fullDevice struct{}

func (fullDevice) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Who names no directory is told which one it is.
func TestARestoreNamesADirectoryThatWasNotNamed(t *testing.T) {
	data, state := t.TempDir(), t.TempDir()
	launch(t, "--data-dir", data).end()
	file := filepath.Join(t.TempDir(), "backup")
	must(t, "backup", "--data-dir", data, file)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", state)
	want := "restoring into " + filepath.Join(state, "cmserver") + ","
	if said := must(t, "restore", file); !strings.HasPrefix(said, want) {
		t.Errorf("it says %q", said)
	}
	if code, _, said := invoke(t, nil, "restore", file); code != 2 || !strings.HasPrefix(said, want) {
		t.Errorf("into what is not empty: %d, %s", code, said)
	}
	if said := must(t, "restore", file, "--data-dir", filepath.Join(state, "named")); strings.Contains(said, "restoring into") {
		t.Errorf("it says %q", said)
	}
}
