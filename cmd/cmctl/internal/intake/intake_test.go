package intake_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/intake"
)

func TestInputIsReadWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	text := strings.Repeat("x", 4000)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{4000, 4001} {
		if got, err := intake.File(t.Context(), path, limit); err != nil || string(got) != text {
			t.Errorf("file, limit %d: %d bytes, %v", limit, len(got), err)
		}
		if got, err := intake.All(t.Context(), strings.NewReader(text), limit); err != nil || string(got) != text {
			t.Errorf("stream, limit %d: %d bytes, %v", limit, len(got), err)
		}
	}
}

func TestInputWithoutEndIsRefused(t *testing.T) {
	var large *intake.TooLargeError
	if _, err := intake.File(t.Context(), "/dev/zero", intake.MaxValue); !errors.As(err, &large) || !strings.Contains(err.Error(), "3 MiB") {
		t.Errorf("a device: %v", err)
	}
	if _, err := intake.All(t.Context(), strings.NewReader("12345"), 4); !errors.As(err, &large) {
		t.Errorf("a stream: %v", err)
	}
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	if _, err := intake.File(t.Context(), filepath.Join(t.TempDir(), "no"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := intake.All(t.Context(), nil, 1); err == nil {
		t.Error("nothing was read without an error")
	}
}

// A person who ends the command doesn't wait for what would have been typed, or
// for the program at the other end of a pipe.
func TestTheEndOfTheContextEndsTheWait(t *testing.T) {
	silent, other := io.Pipe()
	defer other.Close()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	for name, read := range map[string]func(context.Context) error{
		"stream": func(ctx context.Context) error { _, err := intake.All(ctx, silent, 1); return err },
		"fifo":   func(ctx context.Context) error { _, err := intake.File(ctx, fifo, 1); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- read(ctx) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if end, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		end.Close() // lets the reader that was left alone end
	}
}
