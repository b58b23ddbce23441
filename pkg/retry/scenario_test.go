package retry_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/retry"
)

// scenario is one call of a verb against a server that misbehaves, and what
// must come of it.
type scenario struct {
	name    string
	empty   bool // the object is not there at first
	history bool
	faults  script
	options retry.Options

	requests string // what the server saw, with the version that each names
	events   string // step(sent>current) of each event; empty is not checked
	outcome  retry.Outcome
	err      string // as kinds tells it
	state    string // of the server at the end, late requests included
}

type verb func(context.Context, *server, retry.Options) (retry.Result[doc], error)

func play(t *testing.T, call verb, scenarios []scenario) {
	t.Helper()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sc.play(t, call) })
		})
	}
}

func (sc scenario) play(t *testing.T, call verb) {
	s := newServer(sc.faults, sc.history)
	if sc.empty {
		s = emptyServer(sc.faults, sc.history)
	}
	var events []string
	o := sc.options
	o.Observe = func(e retry.Event) {
		events = append(events, fmt.Sprintf("%s(%s>%s)", e.Step, e.Sent, e.Current))
	}
	res, err := call(t.Context(), s, o)
	if res.Outcome != sc.outcome {
		t.Errorf("outcome %q, want %q", res.Outcome, sc.outcome)
	}
	if got := kinds(err); got != sc.err {
		t.Errorf("error is %q, want %q; it says: %v", got, sc.err, err)
	}
	if got := strings.Join(s.requests, " "); got != sc.requests {
		t.Errorf("requests\n  %s, want\n  %s", got, sc.requests)
	}
	if got := strings.Join(events, " "); sc.events != "" && got != sc.events {
		t.Errorf("events\n  %s, want\n  %s", got, sc.events)
	}
	if got := s.state(); got != sc.state {
		t.Errorf("the server holds %q, want %q", got, sc.state)
	}
	s.checkUsed(t)
}

// kinds names all that an error is, from the outermost on.
func kinds(err error) string {
	var found []string
	add := func(is bool, name string) {
		if is {
			found = append(found, name)
		}
	}
	add(errors.As(err, new(*retry.OutcomeUnknownError)), "unknown")
	add(errors.As(err, new(*retry.DeletedError)), "deleted")
	add(errors.As(err, new(*retry.ReplacedError)), "replaced")
	add(errors.As(err, new(*retry.ExhaustedError)), "exhausted")
	add(errors.Is(err, context.Canceled), "canceled")
	add(errors.Is(err, context.DeadlineExceeded), "deadline")
	add(errors.As(err, new(*retry.UnsentError)), "unsent")
	add(errors.As(err, new(*retry.LostError)), "lost")
	add(errors.As(err, new(*retry.UnreadError)), "unread")
	add(errors.As(err, new(*retry.RefusedError)), "refused")
	add(errors.Is(err, errOwn), "own")
	for _, reason := range []metav1.StatusReason{"Conflict", "AlreadyExists", "NotFound", "Forbidden",
		"TooManyRequests", "ServiceUnavailable", "InternalError", "Unheard"} {
		add(has(err, reason), string(reason))
	}
	if err != nil && found == nil {
		return err.Error()
	}
	return strings.Join(found, " ")
}

// has looks for a reason in the whole tree of an error.
func has(err error, reason metav1.StatusReason) bool {
	if s, ok := err.(apierrors.APIStatus); ok && s.Status().Reason == reason {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return has(e.Unwrap(), reason)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if has(part, reason) {
				return true
			}
		}
	}
	return false
}

// set is an edit to a fixed value.
func set(key, value string) retry.Edit[doc] {
	return func(_ context.Context, fresh doc) (doc, error) {
		if fresh.data[key] == value {
			return doc{}, retry.ErrUnchanged
		}
		return fresh.with(key, value), nil
	}
}

// increment is a computed edit.
func increment(key string) retry.Edit[doc] {
	return func(_ context.Context, fresh doc) (doc, error) {
		n := 0
		if text := fresh.data[key]; text != "" {
			n = number(text)
		}
		return fresh.with(key, strconv.Itoa(n+1)), nil
	}
}

func updates(edit retry.Edit[doc]) verb {
	return func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		return retry.Update[doc](ctx, s, edit, o)
	}
}

// computes is updates for an edit that must not be made twice.
func computes(edit retry.Edit[doc]) verb {
	return func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		o.Computed = true
		return retry.Update[doc](ctx, s, edit, o)
	}
}

// attempts caps a loop.
func attempts(n int) retry.Options { return retry.Options{MaxAttempts: n} }

// settling bounds how long a lost answer is settled.
func settling(d time.Duration) retry.Options { return retry.Options{MaxSettling: d} }

// calm is a backoff without jitter, so that only what the server asks is waited.
var calm = retry.Backoff{Rand: func(int64) int64 { return 0 }}

// took tells how long an action took on the test's clock.
func took(act func()) time.Duration {
	began := time.Now()
	act()
	return time.Since(began)
}
