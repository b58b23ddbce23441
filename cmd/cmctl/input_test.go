package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// typing is a terminal at which nobody types; the first that reads from it is
// interrupted.
type typing struct {
	interrupt func()
	end       <-chan struct{}
}

func (r typing) Read([]byte) (int, error) {
	r.interrupt()
	<-r.end
	return 0, context.Canceled
}

// One Ctrl-C ends a command that reads its input.
func TestReadingEndsWithTheFirstInterrupt(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	for _, args := range []string{
		"set app --from-file=k=-", "patch app --patch-file=-", "apply -f -", "replace -f -", "delete -f -", "diff -f -",
		"create new --from-file=k=-", "create new --from-env-file=-",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		i := &interrupts{}
		in := typing{func() { i.caught.Store(true); cancel() }, t.Context().Done()}
		var out, errs bytes.Buffer
		if code := run(ctx, strings.Fields(args), streams{In: in, Out: &out, Err: &errs}, i); code != exitInterrupted || strings.Contains(errs.String(), "context") {
			t.Errorf("%s ended with %d:\n%s", args, code, &errs)
		}
	}
	b.holds("a: \"1\"")
}

// What never ends is refused, not gathered.
func TestEndlessInputIsRefused(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	for _, args := range []string{
		"set app --from-file=k=/dev/zero", "patch app --patch-file=/dev/zero", "create new --from-file=k=/dev/zero", "create new --from-env-file=/dev/zero",
	} {
		if e := b.cmctl(strings.Fields(args)...); e.code != exitFailed || !strings.Contains(e.err, "/dev/zero: more than 3 MiB") {
			t.Errorf("%s ended with %d:\n%s", args, e.code, e.err)
		}
	}
}
