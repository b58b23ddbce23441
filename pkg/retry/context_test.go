package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

// The context ends in every state that the loop can be in. Whoever interrupts
// must learn whether something may have landed.
func TestContextEnds(t *testing.T) {
	waitLong := answers(tooMany(3600))
	for _, c := range []struct {
		name   string
		call   verb
		empty  bool
		faults script
		want   string // without the context's own error
	}{
		{name: "in the first read", call: updates(set("a", "2")), faults: script{"GET": {hangs}}, want: "lost"},
		{name: "while the server asks to wait", call: updates(set("a", "2")), faults: script{"GET": {waitLong}}, want: "exhausted TooManyRequests"},
		{name: "in the write", call: updates(set("a", "2")), faults: script{"PUT": {hangs}}, want: "unknown exhausted lost"},
		{name: "waiting for the write to be let in", call: updates(set("a", "2")), faults: script{"PUT": {waitLong}}, want: "exhausted TooManyRequests"},
		{name: "waiting after a loss", call: updates(set("a", "2")), faults: script{"PUT": {failsAfter(status(500, "InternalError", 3600))}}, want: "unknown exhausted InternalError"},
		{name: "in the settling read", call: updates(set("a", "2")), faults: script{"PUT": {lostAfter}, "GET": {nil, hangs}}, want: "unknown lost"},
		{name: "waiting for the settling read", call: updates(set("a", "2")), faults: script{"PUT": {lostAfter}, "GET": {nil, waitLong}}, want: "unknown exhausted lost TooManyRequests"},
		{name: "in the history, fixed", call: updates(set("a", "2")), faults: script{"PUT": {lostAfter}, "FIND": {hangs}}, want: "unknown lost"},
		{name: "in the history, computed", call: computes(increment("a")), faults: script{"PUT": {lostAfter}, "FIND": {hangs}}, want: "unknown lost"},
		{name: "waiting for the history", call: updates(set("a", "2")), faults: script{"PUT": {lostAfter}, "FIND": {waitLong}}, want: "unknown exhausted lost TooManyRequests"},
		{name: "in the resend", call: updates(set("a", "2")), faults: script{"PUT": {lostBefore, hangs}}, want: "unknown exhausted lost"},
		{name: "waiting for the resend to be let in", call: updates(set("a", "2")), faults: script{"PUT": {lostBefore, waitLong}}, want: "unknown exhausted TooManyRequests"},
		{name: "in the read after a conflict", call: updates(set("a", "2")), faults: script{"PUT": {meanwhile(sets("b", "3"))}, "GET": {nil, hangs}}, want: "lost"},
		{name: "in the create", call: createsOrGets, empty: true, faults: script{"POST": {hangs}}, want: "unknown exhausted lost"},
		{name: "in the create's settling", call: createsOrGets, empty: true, faults: script{"POST": {lostAfter}, "GET": {hangs}}, want: "unknown lost"},
		{name: "in the create's history", call: createsOrGets, empty: true, faults: script{"POST": {lostAfter}, "FIND": {hangs}}, want: "unknown lost"},
		{name: "waiting for the create's resend", call: createsOrGets, empty: true, faults: script{"POST": {lostBefore, waitLong}}, want: "unknown exhausted TooManyRequests"},
		{name: "waiting for the create", call: createsOrGets, empty: true, faults: script{"POST": {waitLong}}, want: "exhausted TooManyRequests"},
		{name: "in the delete", call: deletesIt, faults: script{"DELETE": {hangs}}, want: "unknown exhausted lost"},
		{name: "in the delete's settling", call: deletesIt, faults: script{"DELETE": {lostAfter}, "GET": {nil, hangs}}, want: "unknown lost"},
		{name: "in the delete's history", call: deletesIt, faults: script{"DELETE": {lostAfter}, "FIND": {hangs}}, want: "unknown lost NotFound"},
		{name: "waiting for the delete's resend", call: deletesIt, faults: script{"DELETE": {lostBefore, waitLong}}, want: "unknown exhausted TooManyRequests"},
		{name: "waiting for the delete", call: deletesIt, faults: script{"DELETE": {waitLong}}, want: "exhausted TooManyRequests"},
	} {
		for ending, with := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"canceled": func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Minute, cancel)
				return ctx, cancel
			},
			"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Minute)
			},
		} {
			t.Run(c.name+", "+ending, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, stop := with(t.Context())
					defer stop()
					s := newServer(c.faults, true)
					if c.empty {
						s = emptyServer(c.faults, true)
					}
					var err error
					elapsed := took(func() { _, err = c.call(ctx, s, retry.Options{MaxSettling: 2 * time.Hour}) })
					if got, want := kinds(err), withEnding(c.want, ending); got != want {
						t.Errorf("error is %q, want %q; it says: %v", got, want, err)
					}
					if elapsed != time.Minute {
						t.Errorf("returned after %v, want as soon as the context ends", elapsed)
					}
					s.checkUsed(t)
				})
			})
		}
	}
}

// withEnding puts the context's error where kinds names it: before what comes
// from the requests.
func withEnding(kinds, ending string) string {
	for _, last := range []string{"unknown exhausted", "exhausted", "unknown"} {
		if len(kinds) >= len(last) && kinds[:len(last)] == last {
			return last + " " + ending + kinds[len(last):]
		}
	}
	return ending + " " + kinds
}

func TestContextThatEndsBeforeTheWriteLeavesNothingOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(nil, true)
	_, err := retry.Update[doc](ctx, s, func(ctx context.Context, fresh doc) (doc, error) {
		cancel()
		return increment("a")(ctx, fresh)
	}, retry.Options{})
	if kinds(err) != "canceled unsent" || s.state() != "a=1" {
		t.Errorf("%v, and the server holds %s", err, s.state())
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newServer(nil, true)
	_, err := retry.Update[doc](ctx, s, set("a", "2"), retry.Options{})
	if kinds(err) != "canceled unsent" || s.state() != "a=1" {
		t.Errorf("%v, and the server holds %s", err, s.state())
	}
}
