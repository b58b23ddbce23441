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

// What the version alone can settle is the same for every edit and server.
func TestLostAnswerIsSettledByTheVersion(t *testing.T) {
	for name, call := range map[string]verb{"fixed": updates(set("a", "2")), "computed": computes(increment("a"))} {
		for _, history := range []bool{true, false} {
			scenarios := []scenario{
				{
					name: "not landed: the same body goes out again", faults: script{"PUT": {lostBefore}},
					requests: "GET PUT@1 GET PUT@1",
					events:   "reread(>1) lost(1>) reread(1>1) resend(1>1) done(1>2)",
					outcome:  retry.Written, state: "a=2",
				},
				{
					name: "lost time and again", faults: script{"PUT": repeat(lostBefore, 4)},
					requests: "GET PUT@1 GET PUT@1 GET PUT@1 GET PUT@1 GET PUT@1",
					outcome:  retry.Written, state: "a=2",
				},
				{
					name: "lost up to the cap", faults: script{"PUT": repeat(lostBefore, 3)}, options: attempts(3),
					requests: "GET PUT@1 GET PUT@1 GET PUT@1 GET",
					events: "reread(>1) lost(1>) reread(1>1) resend(1>1) lost(1>) reread(1>1) resend(1>1)" +
						" lost(1>) reread(1>1)",
					err: "unknown exhausted lost", state: "a=1",
				},
				{
					name: "lost up to the cap and landing after all", faults: script{"PUT": {lostLate}}, options: attempts(1),
					requests: "GET PUT@1 GET", err: "unknown exhausted lost", state: "a=2",
				},
				{
					name: "500 and a 503 without a time leave the outcome open too", faults: script{"PUT": {answers(internal()), answers(unavailable(0))}},
					requests: "GET PUT@1 GET PUT@1 GET PUT@1", outcome: retry.Written, state: "a=2",
				},
				{
					name: "an unsent resend settles nothing", faults: script{"PUT": {lostBefore, unsent}},
					requests: "GET PUT@1 GET PUT@1 GET PUT@1", outcome: retry.Written, state: "a=2",
				},
				{
					name: "a refused body never goes out again", faults: script{"PUT": {lostBefore, answers(forbidden())}},
					requests: "GET PUT@1 GET PUT@1 GET", err: "unknown lost Forbidden", state: "a=1",
				},
				{
					name: "nor where a read still shows its version", faults: script{"PUT": {lostBefore, answers(conflict())}},
					requests: "GET PUT@1 GET PUT@1 GET", err: "unknown lost Conflict", state: "a=1",
				},
				{
					name: "the settling read is patient", faults: script{"PUT": {lostBefore},
						"GET": {nil, answers(internal()), unsent, lostBefore}},
					requests: "GET PUT@1 GET GET GET GET PUT@1", outcome: retry.Written, state: "a=2",
				},
				{
					name: "a settling read that is refused leaves it open", faults: script{"PUT": {lostAfter}, "GET": {nil, answers(forbidden())}},
					requests: "GET PUT@1 GET", err: "unknown lost Forbidden", state: "a=2",
				},
				{
					name: "a settling read that meets a 404 of a proxy leaves it open", faults: script{"PUT": {lostAfter}, "GET": {nil, answers(status(404, "Unheard", 0))}},
					requests: "GET PUT@1 GET", err: "unknown lost Unheard", state: "a=2",
				},
				{
					name: "a server that never comes back leaves it open", faults: script{"PUT": {lostAfter}, "GET": {nil, after(20*time.Second, unsent), after(20*time.Second, unsent)}},
					options: settling(30 * time.Second), requests: "GET PUT@1 GET GET", err: "unknown exhausted unsent lost", state: "a=2",
				},
			}
			for i := range scenarios {
				scenarios[i].history = history
			}
			t.Run(name, func(t *testing.T) { play(t, call, scenarios) })
		}
	}
}

// A write whose answer comes too late may have used up the caps. What became of it
// is found out all the same; only whether it goes out again is theirs to say.
func TestSettlingHasATimeOfItsOwn(t *testing.T) {
	const late = 30 * time.Second // what the caps allow as well
	slow := func(f fault) []fault { return []fault{after(late, f)} }
	capped := retry.Options{MaxElapsed: late}
	unwell := append([]fault{nil}, repeat(unsent, 4)...)
	asked := append([]fault{nil}, answers(tooMany(20)), answers(unavailable(20)))
	play(t, computes(increment("a")), []scenario{
		{name: "landed, and the time is up", history: true, faults: script{"PUT": slow(lostAfter)}, options: capped,
			requests: "GET PUT@1 GET FIND@1", outcome: retry.Written, state: "a=2"},
		{name: "landed, the time is up, and the server must be waited for", history: true, faults: script{"PUT": slow(lostAfter), "GET": asked}, options: capped,
			requests: "GET PUT@1 GET GET GET FIND@1", outcome: retry.Written, state: "a=2"},
		{name: "landed with the only attempt, and the server restarts", history: true, faults: script{"PUT": {lostAfter}, "GET": unwell}, options: attempts(1),
			requests: "GET PUT@1 GET GET GET GET GET FIND@1", outcome: retry.Written, state: "a=2"},
		{name: "so does the history", history: true, faults: script{"PUT": {lostAfter}, "FIND": repeat(unsent, 4)}, options: attempts(1),
			requests: "GET PUT@1 GET FIND@1 FIND@1 FIND@1 FIND@1 FIND@1", outcome: retry.Written, state: "a=2"},
		{name: "it waits as long as the answer asks", history: true, faults: script{"PUT": {failsAfter(status(500, "InternalError", 11))}}, options: retry.Options{MaxElapsed: 10 * time.Second},
			requests: "GET PUT@1 GET FIND@1", outcome: retry.Written, state: "a=2"},
		{name: "but not longer than it has", history: true, faults: script{"PUT": {failsAfter(status(500, "InternalError", 31))}}, options: settling(late),
			requests: "GET PUT@1", err: "unknown exhausted InternalError", state: "a=2"},
		{name: "not landed: nothing is sent after the time", faults: script{"PUT": slow(lostBefore)}, options: capped,
			requests: "GET PUT@1 GET", err: "unknown exhausted lost", state: "a=1"},
		{name: "not landed, and there is time", faults: script{"PUT": slow(lostBefore)}, options: retry.Options{MaxElapsed: 2 * late},
			requests: "GET PUT@1 GET PUT@1", outcome: retry.Written, state: "a=2"},
		{name: "another was faster: nothing is sent after the time", history: true, faults: script{"PUT": slow(lostBefore.then(sets("b", "3")))}, options: capped,
			requests: "GET PUT@1 GET FIND@1", err: "exhausted lost", state: "a=1 b=3"},
	})
	play(t, updates(set("a", "2")), []scenario{
		{name: "the values are there", faults: script{"PUT": slow(lostAfter)}, options: capped,
			requests: "GET PUT@1 GET FIND@1", outcome: retry.Written, state: "a=2"},
		{name: "the values are not there: nothing is sent after the time", faults: script{"PUT": slow(lostBefore.then(sets("b", "3")))}, options: capped,
			requests: "GET PUT@1 GET FIND@1", err: "unknown exhausted lost", state: "a=1 b=3"},
	})
	play(t, createsOrGets, []scenario{
		{name: "created", empty: true, history: true, faults: script{"POST": slow(lostAfter)}, options: capped,
			requests: "POST GET FIND", outcome: retry.Written, state: "a=mine"},
	})
	play(t, deletesIt, []scenario{
		{name: "deleted", history: true, faults: script{"DELETE": slow(lostAfter)}, options: capped,
			requests: "GET DELETE GET FIND@1", outcome: retry.Written, state: "gone"},
	})
}

// moved are the ways in which a lost body's version can have moved.
var (
	landedAlone    = script{"PUT": {lostAfter}}
	landedAndMoved = script{"PUT": {fault(lostAfter).then(sets("b", "3"))}}
	overtaken      = script{"PUT": {lostBefore.then(sets("b", "3"))}}
	landedLate     = script{"PUT": {lostLate}}
)

func TestHistorySettlesALostAnswer(t *testing.T) {
	for name, call := range map[string]verb{"fixed": updates(set("a", "2")), "computed": computes(increment("a"))} {
		scenarios := []scenario{
			{
				name: "landed", faults: landedAlone, requests: "GET PUT@1 GET FIND@1",
				events: "reread(>1) lost(1>) reread(1>2) settled(1>2)", outcome: retry.Written, state: "a=2",
			},
			{
				name: "landed with the only attempt", faults: landedAlone, options: attempts(1),
				requests: "GET PUT@1 GET FIND@1", outcome: retry.Written, state: "a=2",
			},
			{
				name: "landed, and another wrote since", faults: landedAndMoved, requests: "GET PUT@1 GET FIND@1",
				outcome: retry.Written, state: "a=2 b=3",
			},
			{
				name: "another was faster: it is merged again", faults: overtaken, requests: "GET PUT@1 GET FIND@1 PUT@2",
				events:  "reread(>1) lost(1>) reread(1>2) done(2>3)",
				outcome: retry.Written, state: "a=2 b=3",
			},
			{
				name: "another was faster and no attempt is left", faults: overtaken, options: attempts(1),
				requests: "GET PUT@1 GET FIND@1", err: "exhausted lost", state: "a=1 b=3",
			},
			{
				name: "landed between the settling read and the resend", faults: landedLate, requests: "GET PUT@1 GET PUT@1 GET FIND@1",
				events:  "reread(>1) lost(1>) reread(1>1) resend(1>1) reread(1>2) settled(1>2)",
				outcome: retry.Written, state: "a=2",
			},
			{
				name: "the resend's Conflict is somebody else's write", faults: script{"PUT": {lostBefore, meanwhile(sets("b", "3"))}},
				requests: "GET PUT@1 GET PUT@1 GET FIND@1 PUT@2", outcome: retry.Written, state: "a=2 b=3",
			},
			{
				name: "that Conflict is the last answer", faults: script{"PUT": {lostBefore, meanwhile(sets("b", "3"))}},
				options: attempts(2), requests: "GET PUT@1 GET PUT@1 GET FIND@1", err: "exhausted Conflict", state: "a=1 b=3",
			},
			{
				name: "landed, then deleted", faults: script{"PUT": {fault(lostAfter).then(deletes)}},
				requests: "GET PUT@1 GET FIND@1", err: "deleted NotFound", state: "gone",
			},
			{
				name: "deleted before it landed", faults: script{"PUT": {lostBefore.then(deletes)}},
				requests: "GET PUT@1 GET FIND@1", err: "NotFound", state: "gone",
			},
			{
				name: "landed, then deleted and recreated", faults: script{"PUT": {fault(lostAfter).then(replaces)}},
				requests: "GET PUT@1 GET FIND@1", err: "deleted replaced", state: "a=new",
			},
			{
				name: "made anew before it landed", faults: script{"PUT": {lostBefore.then(replaces)}},
				requests: "GET PUT@1 GET FIND@1", err: "replaced", state: "a=new",
			},
			{
				name:     "a history that is slow to come is waited for",
				faults:   script{"PUT": {lostAfter}, "FIND": {answers(tooMany(1)), answers(internal()), lostBefore}},
				requests: "GET PUT@1 GET FIND@1 FIND@1 FIND@1 FIND@1", outcome: retry.Written, state: "a=2",
			},
			{
				name: "one that does not come leaves it open", faults: script{"PUT": {lostAfter}, "FIND": repeat(after(20*time.Second, unsent), 2)},
				options: settling(30 * time.Second), requests: "GET PUT@1 GET FIND@1 FIND@1", err: "unknown exhausted unsent lost", state: "a=2",
			},
		}
		for i := range scenarios {
			scenarios[i].history = true
		}
		t.Run(name, func(t *testing.T) { play(t, call, scenarios) })
	}
}

// Where nothing can be sent any more nobody is asked for another edit: behind
// it may be a person.
func TestNoEditIsAskedForInVain(t *testing.T) {
	edits := 0
	counted := func(ctx context.Context, fresh doc) (doc, error) {
		edits++
		return increment("a")(ctx, fresh)
	}
	for name, faults := range map[string]script{
		"after a conflict": {"PUT": {meanwhile(sets("b", "3"))}},
		"after a loss":     overtaken,
		"on the resend":    {"PUT": {lostBefore, meanwhile(sets("b", "3"))}},
	} {
		synctest.Test(t, func(t *testing.T) {
			edits = 0
			s := newServer(faults, true)
			_, err := retry.Update[doc](t.Context(), s, counted, attempts(len(faults["PUT"])))
			var gaveUp *retry.ExhaustedError
			if !errors.As(err, &gaveUp) || edits != 1 {
				t.Fatalf("%s: %d edits, then %v", name, edits, err)
			}
			if conflicts := len(faults["PUT"]) - gaveUp.Delays; gaveUp.Conflicts != conflicts {
				t.Errorf("%s: %d conflicts are told, want %d", name, gaveUp.Conflicts, conflicts)
			}
		})
	}
}

func TestWithoutHistoryAFixedEditIsMergedAgain(t *testing.T) {
	play(t, updates(set("a", "2")), []scenario{
		{
			name: "landed: the values are there", faults: landedAlone, requests: "GET PUT@1 GET FIND@1",
			outcome: retry.Written, state: "a=2",
		},
		{
			name: "landed with the only attempt", faults: landedAlone, options: attempts(1),
			requests: "GET PUT@1 GET FIND@1", outcome: retry.Written, state: "a=2",
		},
		{
			name: "another was faster", faults: overtaken, requests: "GET PUT@1 GET FIND@1 PUT@2",
			outcome: retry.Written, state: "a=2 b=3",
		},
		{
			name: "a history that can't be read is none", faults: script{"PUT": {lostBefore.then(sets("b", "3"))}, "FIND": {answers(forbidden())}},
			history: true, requests: "GET PUT@1 GET FIND@1 PUT@2", outcome: retry.Written, state: "a=2 b=3",
		},
		{
			name: "another was faster and no attempt is left", faults: overtaken, options: attempts(1),
			requests: "GET PUT@1 GET FIND@1", err: "unknown exhausted lost", state: "a=1 b=3",
		},
		{
			name: "the resend's Conflict is its own", faults: landedLate, requests: "GET PUT@1 GET PUT@1 GET FIND@1",
			outcome: retry.Written, state: "a=2",
		},
		{
			name: "deleted since", faults: script{"PUT": {fault(lostAfter).then(deletes)}},
			requests: "GET PUT@1 GET FIND@1", err: "unknown lost NotFound", state: "gone",
		},
		{
			name: "made anew since", faults: script{"PUT": {fault(lostAfter).then(replaces)}},
			requests: "GET PUT@1 GET FIND@1", err: "unknown replaced lost", state: "a=new",
		},
	})
}

// Once a lost body may have landed, no later failure proves that it did not.
func TestWhatMayHaveLandedStaysUnknownToTheEnd(t *testing.T) {
	overwritten := fault(lostAfter).then(sets("a", "7"))
	play(t, updates(set("a", "2")), []scenario{
		{
			name: "refused later", faults: script{"PUT": {overwritten, answers(forbidden())}},
			requests: "GET PUT@1 GET FIND@1 PUT@3", err: "unknown lost Forbidden", state: "a=7",
		},
		{
			name: "conflicts up to the cap", faults: script{"PUT": {overwritten, meanwhile(sets("b", "3"))}},
			options: attempts(2), requests: "GET PUT@1 GET FIND@1 PUT@3", err: "unknown exhausted lost Conflict", state: "a=7 b=3",
		},
		{
			name: "deleted later", faults: script{"PUT": {overwritten, meanwhile(deletes)}},
			requests: "GET PUT@1 GET FIND@1 PUT@3", err: "unknown lost NotFound", state: "gone",
		},
		{
			name: "made anew later", faults: script{"PUT": {overwritten, meanwhile(replaces)}},
			requests: "GET PUT@1 GET FIND@1 PUT@3 GET", err: "unknown replaced lost", state: "a=new",
		},
		{
			name: "lost again, then written", faults: script{"PUT": {overwritten, lostBefore}},
			requests: "GET PUT@1 GET FIND@1 PUT@3 GET PUT@3", outcome: retry.Written, state: "a=2",
		},
	})
	once := func(_ context.Context, fresh doc) (doc, error) {
		if fresh.data["a"] == "7" {
			return doc{}, errOwn
		}
		return fresh.with("a", "2"), nil
	}
	play(t, updates(once), []scenario{{
		name: "the edit refuses the later copy", faults: script{"PUT": {overwritten}},
		requests: "GET PUT@1 GET FIND@1", err: "unknown lost own", state: "a=7",
	}})
}

func TestWithoutHistoryAComputedEditStops(t *testing.T) {
	play(t, computes(increment("a")), []scenario{
		{name: "landed", faults: landedAlone, requests: "GET PUT@1 GET FIND@1", err: "unknown lost", state: "a=2"},
		{name: "another was faster", faults: overtaken, requests: "GET PUT@1 GET FIND@1", err: "unknown lost", state: "a=1 b=3"},
		{name: "the resend's Conflict may be its own", faults: landedLate, requests: "GET PUT@1 GET PUT@1 GET FIND@1",
			err: "unknown lost", state: "a=2"},
		{name: "deleted since", faults: script{"PUT": {fault(lostAfter).then(deletes)}}, requests: "GET PUT@1 GET FIND@1",
			err: "unknown lost NotFound", state: "gone"},
	})
}

func TestUnknownOutcomeNamesBothVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, call := range map[string]verb{
			"computed": computes(increment("a")),
			// The first body is the open one, not the one refused later.
			"fixed": updates(func(_ context.Context, fresh doc) (doc, error) {
				if fresh.data["b"] != "" {
					return doc{}, errOwn
				}
				return fresh.with("a", "2"), nil
			}),
		} {
			s := newServer(landedAndMoved, false)
			_, err := call(t.Context(), s, retry.Options{WriteID: "mine"})
			var unknown *retry.OutcomeUnknownError
			if !errors.As(err, &unknown) {
				t.Fatalf("%s: got %v", name, err)
			}
			if unknown.Sent != "1" || unknown.Current != "3" || unknown.WriteID != "mine" || unknown.Object != s.Object() {
				t.Errorf("%s: got %+v", name, unknown)
			}
			if text := err.Error(); !strings.Contains(text, "version 1") || !strings.Contains(text, "version 3") {
				t.Errorf("%s: %s", name, text)
			}
		}
	})
}
