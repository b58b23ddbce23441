package filter_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/filter"
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		argv  []string
		in    string
		want  string
		wrong string // part of the error
	}{
		{name: "bytes in, bytes out", argv: []string{"tr", "a-z", "A-Z"}, in: "a\x00\xff\n", want: "A\x00\xff\n"},
		{name: "its input may stay unread", argv: []string{"echo", "x"}, in: strings.Repeat("y", 1<<20), want: "x\n"},
		{name: "no output", argv: []string{"true"}, in: "x", want: ""},
		{name: "no shell reads the command", argv: []string{"echo", "$HOME", "a b"}, want: "$HOME a b\n"},
		{name: "its exit code is named, and its output is void", argv: []string{"sh", "-c", "echo x; exit 7"}, wrong: "ended with exit status 7"},
		{name: "so is a signal", argv: []string{"sh", "-c", "kill -9 $$"}, wrong: "ended with signal: killed"},
		{name: "no such command", argv: []string{"no-such-command"}, wrong: "can't be run"},
		{name: "more output than any object has", argv: []string{"yes"}, wrong: "wrote more than 8 MiB"},
		{name: "from one that won't end either", argv: []string{"sh", "-c", "trap '' TERM PIPE; while :; do yes; done"}, wrong: "wrote more than 8 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := filter.Command{Argv: c.argv, Stderr: io.Discard}.Run(t.Context(), []byte(c.in))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) || got != nil {
					t.Errorf("got %q and %v, want an error with %q", got, err, c.wrong)
				}
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("got %q and %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestItsComplaintsPassThrough(t *testing.T) {
	var complaints bytes.Buffer
	if _, err := (filter.Command{Argv: []string{"sh", "-c", "echo sorry >&2; exit 1"}, Stderr: &complaints}).Run(t.Context(), nil); err == nil || complaints.String() != "sorry\n" {
		t.Errorf("%q and %v", &complaints, err)
	}
}

// What the command started ends with it: the grandchild holds the write end of
// a pipe whose reader sees its end.
func TestTheEndOfTheContextEndsTheWholeGroup(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "held")
	ctx, cancel := context.WithCancel(t.Context())
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := filter.Command{Argv: []string{"sh", "-c", `(trap '' TERM; exec 3>"$0"; sleep 600) & wait`, fifo}, Stderr: io.Discard}.Run(ctx, nil)
		done <- err
	}()
	reader, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "context") {
		t.Errorf("it ended with %v", err)
	}
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		t.Errorf("the pipe ended with %q, %v", rest, err)
	}
}
