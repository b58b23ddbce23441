package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe that nobody opens to write to can't even be opened to read.
func TestASignalEndsACommandThatWaitsForAPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", fifo}, {"restore", fifo, "--data-dir", fifo + ".data"}} {
		ctx, signal := context.WithCancelCause(t.Context())
		root := rootCommand(streams{out: fullDevice{}, err: fullDevice{}})
		root.SetArgs(args)
		ended := make(chan error)
		go func() { ended <- root.ExecuteContext(ctx) }()
		signal(interruption{os.Interrupt})
		if err := <-ended; exitCode(err) != 130 {
			t.Errorf("%v: %d, %v", args, exitCode(err), err)
		}
	}
}
