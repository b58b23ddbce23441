package retry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/cmctl/pkg/retry"
)

func TestUpdateWritesWhatWasMadeFromAFreshRead(t *testing.T) {
	play(t, updates(set("a", "9")), []scenario{
		{
			name:     "nobody else writes",
			requests: "GET PUT@1", events: "reread(>1) done(1>2)",
			outcome: retry.Written, state: "a=9",
		},
		{
			name:     "a conflict is answered by a fresh read with the edit made anew",
			faults:   script{"PUT": {meanwhile(sets("b", "3"))}},
			requests: "GET PUT@1 GET PUT@2", events: "reread(>1) refused(1>) reread(1>2) done(2>3)",
			outcome: retry.Written, state: "a=9 b=3",
		},
		{
			name:     "each attempt reads anew",
			faults:   script{"PUT": {meanwhile(sets("b", "1")), meanwhile(sets("b", "2")), meanwhile(sets("b", "3"))}},
			requests: "GET PUT@1 GET PUT@2 GET PUT@3 GET PUT@4",
			outcome:  retry.Written, state: "a=9 b=3",
		},
		{
			name:     "another made the same change: nothing is left to write",
			faults:   script{"PUT": {meanwhile(sets("a", "9"))}},
			requests: "GET PUT@1 GET", events: "reread(>1) refused(1>) reread(1>2)",
			outcome: retry.Unchanged, state: "a=9",
		},
		{
			name:     "the cap on attempts",
			faults:   script{"PUT": repeat(meanwhile(sets("b", "3")), 3)},
			options:  attempts(3),
			requests: "GET PUT@1 GET PUT@2 GET PUT@3",
			events:   "reread(>1) refused(1>) reread(1>2) refused(2>) reread(2>3) refused(3>)",
			err:      "exhausted Conflict", state: "a=1 b=3",
		},
		{
			name:     "the cap is five unless told",
			faults:   script{"PUT": repeat(meanwhile(sets("b", "3")), 5)},
			requests: "GET PUT@1 GET PUT@2 GET PUT@3 GET PUT@4 GET PUT@5",
			err:      "exhausted Conflict", state: "a=1 b=3",
		},
		{
			name:     "a refusal that stands is not tried again",
			faults:   script{"PUT": {answers(forbidden())}},
			requests: "GET PUT@1", events: "reread(>1)",
			err: "Forbidden", state: "a=1",
		},
		{
			name:     "501 says that nothing was done",
			faults:   script{"PUT": {answers(status(501, "Unheard", 0))}},
			requests: "GET PUT@1", err: "Unheard", state: "a=1",
		},
		{
			name:     "so does 507",
			faults:   script{"PUT": {answers(status(507, "Unheard", 0))}},
			requests: "GET PUT@1", err: "Unheard", state: "a=1",
		},
		{
			name:     "what is none of the loop's errors ends it",
			faults:   script{"PUT": {answers(errors.New("strange"))}},
			requests: "GET PUT@1", err: "strange", state: "a=1",
		},
	})
}

func TestUpdateStopsWhenTheObjectIsGoneOrAnother(t *testing.T) {
	unheard := status(404, "Unheard", 0)
	play(t, updates(set("a", "9")), []scenario{
		{
			name: "not there", empty: true,
			requests: "GET", err: "NotFound", state: "gone",
		},
		{
			name:     "deleted before the write",
			faults:   script{"PUT": {meanwhile(deletes)}},
			requests: "GET PUT@1", err: "NotFound", state: "gone",
		},
		{
			name:     "deleted after the conflict",
			faults:   script{"PUT": {meanwhile(sets("b", "3")).then(deletes)}},
			requests: "GET PUT@1 GET", err: "NotFound", state: "gone",
		},
		{
			name:     "deleted and recreated",
			faults:   script{"PUT": {meanwhile(replaces)}},
			requests: "GET PUT@1 GET", err: "replaced", state: "a=new",
		},
		{
			name:     "a 404 without the reason NotFound is no absence",
			faults:   script{"GET": {answers(unheard)}},
			requests: "GET", err: "Unheard", state: "a=1",
		},
		{
			name:     "nor is it one on the write",
			faults:   script{"PUT": {answers(unheard)}},
			requests: "GET PUT@1", err: "Unheard", state: "a=1",
		},
	})
}

// A failed read must stop the loop before a write, whatever it is.
func TestUpdateWritesNothingAfterAFailedRead(t *testing.T) {
	for name, err := range map[string]error{
		"500": internal(), "403": forbidden(), "lost": &retry.LostError{Err: errBroken},
		"unsent": &retry.UnsentError{Err: errBroken}, "404 of a proxy": status(404, "", 0), "not JSON": errors.New("not JSON"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(script{"GET": {answers(err)}}, true)
			_, got := retry.Update[doc](t.Context(), s, set("a", "9"), retry.Options{})
			if !errors.Is(got, err) || strings.Join(s.requests, " ") != "GET" {
				t.Errorf("%v after %v, want %v after one GET", got, s.requests, err)
			}
		})
	}
}

func TestEditThatChangesNothingWritesNothing(t *testing.T) {
	play(t, updates(set("a", "1")), []scenario{{
		name:     "the value is there already",
		requests: "GET", events: "reread(>1)", outcome: retry.Unchanged, state: "a=1",
	}})
}

func TestEditsOwnErrorPassesThrough(t *testing.T) {
	refuses := func(context.Context, doc) (doc, error) { return doc{}, errOwn }
	play(t, updates(refuses), []scenario{{name: "at once", requests: "GET", err: "own", state: "a=1"}})

	afterB := func(ctx context.Context, fresh doc) (doc, error) {
		if fresh.data["b"] != "" {
			return doc{}, errOwn
		}
		return fresh.with("a", "9"), nil
	}
	play(t, updates(afterB), []scenario{{
		name:     "on a later copy",
		faults:   script{"PUT": {meanwhile(sets("b", "3"))}},
		requests: "GET PUT@1 GET", err: "own", state: "a=1 b=3",
	}})
}

func TestEditMustKeepTheVersion(t *testing.T) {
	for name, spoil := range map[string]func(doc) doc{
		"version": func(d doc) doc { d.version = "7"; return d },
		"uid":     func(d doc) doc { d.uid = "u7"; return d },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(nil, true)
			_, err := retry.Update[doc](t.Context(), s, func(_ context.Context, fresh doc) (doc, error) {
				return spoil(fresh.with("a", "9")), nil
			}, retry.Options{})
			if err == nil || s.state() != "a=1" || len(s.requests) != 1 {
				t.Errorf("got %v, %s after %v; want an error and nothing sent", err, s.state(), s.requests)
			}
		})
	}
}

func TestUpdateFromBeginsAtTheCopyThatTheCallerHas(t *testing.T) {
	from := func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		start := *s.object
		sets("b", "3")(s)
		return retry.UpdateFrom[doc](ctx, s, start, set("a", "9"), o)
	}
	play(t, from, []scenario{{
		name:     "a version that is stale by now is refused, never overwritten",
		requests: "PUT@1 GET PUT@2", events: "refused(1>) reread(1>2) done(2>3)",
		outcome: retry.Written, state: "a=9 b=3",
	}})
}

func TestExhaustedErrorTellsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(script{"GET": {answers(tooMany(2))}, "PUT": repeat(meanwhile(sets("b", "3")), 3)}, true)
		_, err := retry.Update[doc](t.Context(), s, set("a", "9"), retry.Options{MaxAttempts: 3, Backoff: calm})
		var gaveUp *retry.ExhaustedError
		if !errors.As(err, &gaveUp) {
			t.Fatalf("got %v", err)
		}
		if gaveUp.Attempts != 3 || gaveUp.Conflicts != 3 || gaveUp.Delays != 1 || gaveUp.Elapsed.Seconds() != 2 {
			t.Errorf("got %+v", gaveUp)
		}
		for _, part := range []string{`things "it"`, "3 attempts", "2s", "3 conflicts", "1 delay", "modified"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
	})
}

func TestResultHasTheObjectAsTheServerHasIt(t *testing.T) {
	s := newServer(script{"PUT": {meanwhile(sets("b", "3"))}}, true)
	res, err := retry.Update[doc](t.Context(), s, set("a", "9"), retry.Options{WriteID: "mine"})
	if err != nil || res.Object.String() != "a=9 b=3" || res.Object.version != "3" || res.Attempts != 2 {
		t.Errorf("got %+v, %v", res, err)
	}
	if s.landed("mine") != 1 {
		t.Errorf("the write landed %d times under its id", s.landed("mine"))
	}
}

func TestEveryCallHasAWriteIDOfItsOwn(t *testing.T) {
	s := newServer(nil, true)
	for range 2 {
		if _, err := retry.Update[doc](t.Context(), s, increment("n"), retry.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := s.book[1].id, s.book[2].id; a == "" || a == b {
		t.Errorf("write ids %q and %q", a, b)
	}
}
