package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

// inOrderOf runs work with buffers for streams.
func inOrderOf(ctx context.Context, n int, do work) (out, notes string, errs []error) {
	var o, e bytes.Buffer
	f := newFactory(streams{In: strings.NewReader(""), Out: &o, Err: &e}, nil)
	errs = f.inOrder(ctx, "apply", results{}, n, do)
	return o.String(), e.String(), errs
}

func TestManyObjectsArePrintedInTheirOrderThoughDoneInAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		var now, most atomic.Int64
		out, notes, errs := inOrderOf(t.Context(), n, func(_ context.Context, f *factory, i int) (outcome, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Duration(n-i) * time.Second) // the first takes longest
			f.note("note %d", i)
			return outcome{verb: "created"}, f.say("object %d", i)
		})
		var wantOut, wantNotes strings.Builder
		for i := range n {
			fmt.Fprintf(&wantOut, "object %d\n", i)
			fmt.Fprintf(&wantNotes, "note %d\n", i)
		}
		fmt.Fprintf(&wantNotes, "40 objects: 40 created\n")
		if out != wantOut.String() || notes != wantNotes.String() || len(errs) > 0 {
			t.Errorf("%v\n%s%s", errs, out, notes)
		}
		if most.Load() != inFlight {
			t.Errorf("%d at once, want %d", most.Load(), inFlight)
		}
	})
}

func TestFailuresAreCountedAndDontStopTheRest(t *testing.T) {
	_, notes, errs := inOrderOf(t.Context(), 5, func(_ context.Context, f *factory, i int) (outcome, error) {
		switch i {
		case 1:
			return outcome{}, &conflictError{what: "both changed it"}
		case 3:
			return outcome{}, errors.New("broken")
		}
		return outcome{verb: "unchanged"}, nil
	})
	if len(errs) != 2 || errs[1].Error() != "broken" {
		t.Errorf("failures: %v", errs)
	}
	if want := "5 objects: 3 unchanged, 1 in conflict, 1 failed\n"; notes != want {
		t.Errorf("summary %q, want %q", notes, want)
	}
}

func TestAnInterruptSaysHowManyWereNotTried(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	_, notes, errs := inOrderOf(ctx, 100, func(context.Context, *factory, int) (outcome, error) {
		interrupt()
		return outcome{verb: "created"}, nil
	})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "99 more were not tried") || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("failures: %v", errs)
	}
	if want := "100 objects: 1 created, 99 not tried\n"; notes != want {
		t.Errorf("summary %q, want %q", notes, want)
	}
}

func TestAServerThatIsNotThereIsAskedOnce(t *testing.T) {
	var asked atomic.Int64
	_, _, errs := inOrderOf(t.Context(), 100, func(context.Context, *factory, int) (outcome, error) {
		asked.Add(1)
		return outcome{}, &retry.UnsentError{Err: io.EOF}
	})
	if asked.Load() != 1 || len(errs) != 2 || errs[1].Error() != "99 more were not tried" {
		t.Errorf("asked %d times: %v", asked.Load(), errs)
	}
}

// failingWriter is a pipe whose reader has gone.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestResultsThatCantBePrintedEndTheRun(t *testing.T) {
	f := newFactory(streams{In: strings.NewReader(""), Out: failingWriter{}, Err: io.Discard}, nil)
	errs := f.inOrder(t.Context(), "apply", results{}, 1000, func(_ context.Context, f *factory, i int) (outcome, error) {
		return outcome{verb: "created"}, f.say("object %d", i)
	})
	last := errs[len(errs)-1].Error()
	if !errors.Is(errs[0], io.ErrClosedPipe) || !strings.HasSuffix(last, "more were not tried") {
		t.Errorf("%d failures, the last is %q", len(errs), last)
	}
}
