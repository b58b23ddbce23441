package retry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

func TestDelaysAreCappedApartFromAttempts(t *testing.T) {
	play(t, updates(set("a", "9")), []scenario{
		{
			name: "429 on the write: the same body waits", faults: script{"PUT": {answers(tooMany(1))}},
			requests: "GET PUT@1 PUT@1", events: "reread(>1) waiting(1>) done(1>2)", outcome: retry.Written, state: "a=9",
		},
		{
			name: "unsent: nothing is open", faults: script{"PUT": {unsent}},
			requests: "GET PUT@1 PUT@1", outcome: retry.Written, state: "a=9",
		},
		{
			name: "as many delays as attempts, beside as many conflicts",
			faults: script{"GET": repeat(answers(tooMany(1)), 3),
				"PUT": {meanwhile(sets("b", "1")), meanwhile(sets("b", "2"))}},
			options:  attempts(3),
			requests: "GET GET GET GET PUT@1 GET PUT@2 GET PUT@3", outcome: retry.Written, state: "a=9 b=2",
		},
		{
			name: "one delay too many", faults: script{"GET": repeat(answers(unavailable(1)), 4)}, options: attempts(3),
			requests: "GET GET GET GET", events: "waiting(>) waiting(>) waiting(>)",
			err: "exhausted ServiceUnavailable", state: "a=1",
		},
		{
			name: "429 up to the cap on attempts", faults: script{"PUT": repeat(answers(tooMany(1)), 3)}, options: attempts(3),
			requests: "GET PUT@1 PUT@1 PUT@1", events: "reread(>1) waiting(1>) waiting(1>)",
			err: "exhausted TooManyRequests", state: "a=1",
		},
		{
			name: "a 503 that says when to come back stored nothing: so does one for good", faults: script{"PUT": repeat(answers(unavailable(1)), 3)}, options: attempts(3),
			requests: "GET PUT@1 PUT@1 PUT@1", err: "exhausted ServiceUnavailable", state: "a=1",
		},
		{
			name: "a read whose answer breaks off is made again", faults: script{"GET": {unread, answers(tooMany(1)), unread}},
			requests: "GET GET GET GET PUT@1", outcome: retry.Written, state: "a=9",
		},
		{
			name: "not for ever, though there be attempts left", faults: script{"GET": repeat(unread, 6)}, options: attempts(50),
			requests: "GET GET GET GET GET GET", err: "exhausted unread", state: "a=1",
		},
		{
			name: "one that took too long is not", faults: script{"GET": {late}},
			requests: "GET", err: "unread", state: "a=1",
		},
		{
			name: "what stays refused is not tried again", faults: script{"PUT": {answers(&retry.RefusedError{Err: unavailable(1)})}},
			requests: "GET PUT@1", err: "refused ServiceUnavailable", state: "a=1",
		},
		{
			name: "nor is it proof of what became of a lost one", faults: script{"PUT": {lostBefore, answers(&retry.RefusedError{Err: unavailable(1)})}},
			requests: "GET PUT@1 GET PUT@1 GET", err: "unknown lost refused ServiceUnavailable", state: "a=1",
		},
		{
			name: "429 after a conflict", faults: script{"PUT": {meanwhile(sets("b", "3"))}, "GET": {nil, answers(tooMany(1))}},
			requests: "GET PUT@1 GET GET PUT@2", outcome: retry.Written, state: "a=9 b=3",
		},
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		faults script
		want   time.Duration
	}{
		"on a read":                    {script{"GET": {answers(tooMany(7))}}, 7 * time.Second},
		"on a write":                   {script{"PUT": {answers(tooMany(7))}}, 7 * time.Second},
		"on a 503":                     {script{"PUT": {answers(unavailable(7))}}, 7 * time.Second},
		"on a resend after a loss":     {script{"PUT": {lostBefore, answers(tooMany(7))}}, 7 * time.Second},
		"on a settling read":           {script{"PUT": {lostBefore}, "GET": {nil, answers(tooMany(7))}}, 7 * time.Second},
		"on the history":               {script{"PUT": {lostAfter}, "FIND": {answers(tooMany(7))}}, 7 * time.Second},
		"each time":                    {script{"PUT": {answers(tooMany(7)), answers(tooMany(3))}}, 10 * time.Second},
		"and not where nobody asks it": {script{"PUT": {meanwhile(sets("b", "3")), unsent}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(c.faults, true)
				elapsed := took(func() {
					if _, err := retry.Update[doc](t.Context(), s, set("a", "9"), retry.Options{Backoff: calm}); err != nil {
						t.Error(err)
					}
				})
				if elapsed != c.want {
					t.Errorf("waited %v, want %v", elapsed, c.want)
				}
			})
		})
	}
}

func TestJitterComesOnTopOfRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(script{"PUT": {answers(tooMany(7))}}, true)
		var waits []time.Duration
		o := retry.Options{
			Backoff: retry.Backoff{Base: 10 * time.Millisecond, Rand: func(n int64) int64 { return n - 1 }},
			Observe: func(e retry.Event) {
				if e.Step == retry.Waiting {
					waits = append(waits, e.Wait)
				}
			},
		}
		elapsed := took(func() {
			if _, err := retry.Update[doc](t.Context(), s, set("a", "9"), o); err != nil {
				t.Error(err)
			}
		})
		want := 7*time.Second + 10*time.Millisecond - 1
		if elapsed != want || len(waits) != 1 || waits[0] != want {
			t.Errorf("waited %v and told %v, want %v", elapsed, waits, want)
		}
	})
}

// The last attempt's answer is final: waiting before saying so helps nobody.
func TestGivingUpDoesNotWaitFirst(t *testing.T) {
	for name, call := range map[string]func(*testing.T, *server) error{
		"update": func(t *testing.T, s *server) error {
			_, err := retry.Update[doc](t.Context(), s, set("a", "9"), attempts(1))
			return err
		},
		"create": func(t *testing.T, s *server) error {
			_, err := retry.CreateOrGet[doc](t.Context(), s, doc{}, attempts(1))
			return err
		},
		"delete": func(t *testing.T, s *server) error {
			_, err := retry.Delete[doc](t.Context(), s, retry.Version{}, attempts(1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(script{"PUT": {answers(tooMany(60))}, "POST": {answers(tooMany(60))}, "DELETE": {answers(tooMany(60))}}, true)
				var err error
				if elapsed := took(func() { err = call(t, s) }); elapsed != 0 || kinds(err) != "exhausted TooManyRequests" {
					t.Errorf("%s after %v", kinds(err), elapsed)
				}
			})
		})
	}
}

func TestMaxElapsedEndsTheLoopBeforeTheDelayThatExceedsIt(t *testing.T) {
	for name, c := range map[string]struct {
		faults  script
		want    string
		elapsed time.Duration
	}{
		"asked beyond it":  {script{"GET": {answers(tooMany(11))}}, "exhausted TooManyRequests", 0},
		"asked up to it":   {script{"GET": {answers(tooMany(10))}}, "", 10 * time.Second},
		"used up in parts": {script{"GET": repeat(answers(tooMany(4)), 3)}, "exhausted TooManyRequests", 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(c.faults, true)
				var err error
				elapsed := took(func() {
					_, err = retry.Update[doc](t.Context(), s, set("a", "9"), retry.Options{MaxElapsed: 10 * time.Second, Backoff: calm})
				})
				if kinds(err) != c.want || elapsed != c.elapsed {
					t.Errorf("%q after %v, want %q after %v", kinds(err), elapsed, c.want, c.elapsed)
				}
			})
		})
	}
}

// Conflicts alone decide how long the loop keeps away after a conflict, so
// that a slow server does not make writers slower than they need to be.
func TestBackoffGrowsWithEachKindOfFailureApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bounds []int64
		o := retry.Options{Backoff: retry.Backoff{Base: 8, Max: 1 << 20, Rand: func(n int64) int64 {
			bounds = append(bounds, n)
			return 0
		}}}
		s := newServer(script{"GET": {busy, nil, busy}, "PUT": {meanwhile(sets("b", "1")), meanwhile(sets("b", "2"))}}, true)
		if _, err := retry.Update[doc](t.Context(), s, set("a", "9"), o); err != nil {
			t.Fatal(err)
		}
		want := []int64{8, 8, 16, 16} // delay, conflict, delay, conflict
		if len(bounds) != len(want) {
			t.Fatalf("delays drawn below %v, want %v", bounds, want)
		}
		for i := range want {
			if bounds[i] != want[i] {
				t.Errorf("delays drawn below %v, want %v", bounds, want)
			}
		}
	})
}

var busy = answers(tooMany(0))

// Anything can be read with the patience of the loops.
func TestRepeat(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		reads   int
		want    string
	}{
		"at once":                 {[]error{nil}, 1, ""},
		"put off, and broken off": {[]error{tooMany(1), unavailable(1), &retry.UnreadError{Err: errBroken}, nil}, 4, ""},
		"put off too often":       {[]error{tooMany(1), tooMany(1), tooMany(1), tooMany(1)}, 4, "exhausted TooManyRequests"},
		"refused":                 {[]error{forbidden()}, 1, "Forbidden"},
		"failed":                  {[]error{internal()}, 1, "InternalError"},
		"not reached":             {[]error{&retry.UnsentError{Err: errBroken}}, 1, "unsent"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads := 0
				_, err := retry.Repeat(t.Context(), "them all", func(context.Context) (int, error) {
					reads++
					return reads, c.answers[reads-1]
				}, retry.Options{MaxAttempts: 3})
				if kinds(err) != c.want || reads != c.reads {
					t.Errorf("%d reads, %v", reads, err)
				}
				if c.reads == 4 && err != nil && !strings.HasPrefix(err.Error(), "gave up on reading them all after 4 attempts") {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}

// Giving up on a write says that nothing was written where that is certain, and only
// there.
func TestGivingUpSaysWhetherAnythingWasWritten(t *testing.T) {
	overtaken := func(ctx context.Context, r request) (doc, error) {
		sets("b", "4")(r.server)
		return lostBefore(ctx, r)
	}
	for name, c := range map[string]struct {
		faults script
		claims bool
	}{
		"conflicts":                         {script{"PUT": repeat(meanwhile(sets("b", "3")), 2)}, true},
		"refused for now":                   {script{"PUT": repeat(answers(tooMany(1)), 2)}, true},
		"lost, and proven not to have been": {script{"PUT": {meanwhile(sets("b", "3")), overtaken}}, true},
		"lost":                              {script{"PUT": repeat(lostBefore, 2)}, false},
		"lost, then refused for now":        {script{"PUT": {lostBefore, answers(tooMany(1))}}, false},
		"a read":                            {script{"GET": repeat(answers(tooMany(1)), 3)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(c.faults, true)
				_, err := retry.Update[doc](t.Context(), s, set("a", "9"), retry.Options{MaxAttempts: 2})
				if !errors.As(err, new(*retry.ExhaustedError)) || strings.Contains(err.Error(), "nothing was written") != c.claims {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}
