package supervise_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/supervise"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run is a supervised shell script: its output line by line, and its end.
type run struct {
	environments chan []string
	lines        *bufio.Scanner
	code         int
	err          error
	ended        chan struct{}
}

func start(t *testing.T, grace time.Duration, script string, env ...string) *run {
	t.Helper()
	out, in := io.Pipe()
	r := &run{environments: make(chan []string, 1), lines: bufio.NewScanner(out), ended: make(chan struct{})}
	r.environments <- env
	go func() {
		defer close(r.ended)
		r.code, r.err = supervise.Run(t.Context(), supervise.Program{
			Words: []string{"sh", "-c", script}, Out: in, Err: os.Stderr, Grace: grace,
		}, r.environments)
		in.Close()
	}()
	return r
}

func (r *run) expect(t *testing.T, line string) {
	t.Helper()
	if !r.lines.Scan() || r.lines.Text() != line {
		t.Fatalf("the program says %q, want %q", r.lines.Text(), line)
	}
}

func (r *run) ends(t *testing.T, code int) {
	t.Helper()
	if r.lines.Scan() {
		t.Errorf("the program says %q after its end", r.lines.Text())
	}
	<-r.ended
	if r.err != nil || r.code != code {
		t.Errorf("ended with %d, %v; want %d", r.code, r.err, code)
	}
}

func TestTheExitCodeIsTheProgramsOwn(t *testing.T) {
	for script, code := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -TERM $$": 143} {
		t.Run(script, func(t *testing.T) { start(t, time.Minute, script, "PATH="+os.Getenv("PATH")).ends(t, code) })
	}
}

func TestANewEnvironmentStartsTheProgramAnew(t *testing.T) {
	r := start(t, time.Minute, `trap 'echo over; exit' TERM; echo "n=$n"; test "$n" = 3 && exit 5; while :; do sleep 0.01; done`, "n=1", "PATH="+os.Getenv("PATH"))
	r.expect(t, "n=1")
	r.environments <- []string{"n=2", "PATH=" + os.Getenv("PATH")}
	r.expect(t, "over")
	r.expect(t, "n=2")
	r.environments <- []string{"n=3", "PATH=" + os.Getenv("PATH")}
	r.expect(t, "over")
	r.expect(t, "n=3")
	r.ends(t, 5)
}

// A program that doesn't end when it is asked to is killed, and the new one runs.
func TestAStubbornProgramIsKilled(t *testing.T) {
	r := start(t, time.Millisecond, `test "$n" = 2 && exit 4; trap '' TERM; echo deaf; while :; do sleep 0.01; done`, "n=1", "PATH="+os.Getenv("PATH"))
	r.expect(t, "deaf")
	r.environments <- []string{"n=2", "PATH=" + os.Getenv("PATH")}
	r.ends(t, 4)
}

func TestWithoutFurtherEnvironmentsTheProgramGoesOn(t *testing.T) {
	file := t.TempDir() + "/go"
	r := start(t, time.Minute, `echo up; while ! test -e "$file"; do sleep 0.01; done; exit 6`, "file="+file, "PATH="+os.Getenv("PATH"))
	r.expect(t, "up")
	close(r.environments)
	// Nothing tells that the close was seen; a program that it ended would not
	// come to its own exit code.
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.ends(t, 6)
}

func TestWhatCannotBeStartedIsAnError(t *testing.T) {
	environments := make(chan []string, 1)
	environments <- nil
	_, err := supervise.Run(t.Context(), supervise.Program{Words: []string{"/no/such/program"}}, environments)
	var failed *supervise.StartError
	if !errors.As(err, &failed) || failed.Code() != 127 {
		t.Errorf("no such program: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := supervise.Run(ctx, supervise.Program{Words: []string{"true"}}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted before the first environment: %v", err)
	}
	for range 20 {
		environments <- nil
		if _, err := supervise.Run(ctx, supervise.Program{Words: []string{"true"}}, environments); !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted before the program was started: %v", err)
		}
		<-environments
	}
}
