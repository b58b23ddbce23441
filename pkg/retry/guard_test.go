package retry_test

import (
	"context"
	"testing"

	"example.com/cmctl/pkg/retry"
)

// on is a condition on a version.
func on(version string) retry.Options {
	return retry.Options{Want: retry.Version{ResourceVersion: version}}
}

// the is a condition on an object.
func the(uid string) retry.Options { return retry.Options{Want: retry.Version{UID: uid}} }

func TestAVersionThatIsWantedIsDecidedByTheServerAndNeverTriedAgain(t *testing.T) {
	play(t, updates(set("a", "2")), []scenario{
		{
			name: "it is the current one", options: on("1"),
			requests: "GET PUT@1", outcome: retry.Written, state: "a=2",
		},
		{
			name: "another writes before the write", faults: script{"PUT": {meanwhile(sets("b", "3"))}}, options: on("1"),
			requests: "GET PUT@1", err: "Conflict", state: "a=1 b=3",
		},
		{
			name: "another wrote before the read", faults: script{"GET": {meanwhile(sets("b", "3"))}}, options: on("1"),
			requests: "GET CHECK@1", err: "Conflict", state: "a=1 b=3",
		},
		{
			name: "another wrote the same: it is refused all the same", faults: script{"GET": {meanwhile(sets("a", "2"))}}, options: on("1"),
			requests: "GET CHECK@1", err: "Conflict", state: "a=2",
		},
		{
			name: "a version to come, which comes after the read", faults: script{"CHECK": {meanwhile(sets("b", "3"))}}, options: on("2"),
			requests: "GET CHECK@2",
			err:      `things "it" was read at version 1, and then the server took version 2 for the current one; nothing was written`,
			state:    "a=1 b=3",
		},
		{
			name: "gone", empty: true, options: on("1"), requests: "GET", err: "NotFound", state: "gone",
		},
		{
			name: "delays are no conflicts", faults: script{"PUT": {answers(tooMany(1))}}, options: on("1"),
			requests: "GET PUT@1 PUT@1", outcome: retry.Written, state: "a=2",
		},
	})
	play(t, updates(func(context.Context, doc) (doc, error) { return doc{}, retry.ErrUnchanged }), []scenario{
		{name: "nothing to change", options: on("1"), requests: "GET", outcome: retry.Unchanged, state: "a=1"},
	})
}

func TestALostAnswerUnderAConditionIsSettledAsEver(t *testing.T) {
	for name, history := range map[string]bool{"with history": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			find := " FIND@1"
			play(t, updates(set("a", "2")), []scenario{
				{
					name: "landed", history: history, faults: script{"PUT": {lostAfter}}, options: on("1"),
					requests: "GET PUT@1 GET" + find, outcome: retry.Written, state: "a=2",
				},
				{
					name: "it did not land: the version is still there", history: history, faults: script{"PUT": {lostBefore}}, options: on("1"),
					requests: "GET PUT@1 GET PUT@1", outcome: retry.Written, state: "a=2",
				},
			})
		})
	}
	play(t, updates(set("a", "2")), []scenario{
		{
			name: "another was faster, as the history proves", history: true, options: on("1"),
			faults:   script{"PUT": {lostBefore.then(sets("b", "3"))}},
			requests: "GET PUT@1 GET FIND@1 CHECK@1", err: "Conflict", state: "a=1 b=3",
		},
		{
			name: "another was faster, and nothing proves it", options: on("1"),
			faults:   script{"PUT": {lostBefore.then(sets("b", "3"))}},
			requests: "GET PUT@1 GET FIND@1 CHECK@1", err: "unknown lost Conflict", state: "a=1 b=3",
		},
	})
}

func TestAnObjectThatIsWantedMayBeAtAnyVersion(t *testing.T) {
	play(t, updates(set("a", "2")), []scenario{
		{
			name: "others write it", faults: script{"PUT": {meanwhile(sets("b", "3"))}}, options: the("u1"),
			requests: "GET PUT@1 GET PUT@2", outcome: retry.Written, state: "a=2 b=3",
		},
		{
			name: "another has its name", options: the("u0"),
			requests: "GET", err: "replaced", state: "a=1",
		},
		{
			name: "made anew meanwhile", faults: script{"PUT": {meanwhile(replaces)}}, options: the("u1"),
			requests: "GET PUT@1 GET", err: "replaced", state: "a=new",
		},
	})
}

func TestNothingIsCreatedUnderACondition(t *testing.T) {
	upserts := func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		return retry.Upsert[doc](ctx, s, func(context.Context) (doc, error) { return doc{}.with("a", "2"), nil }, set("a", "2"), o)
	}
	play(t, upserts, []scenario{
		{name: "a version", empty: true, options: on("1"), requests: "GET", err: "NotFound", state: "gone"},
		{name: "an object", empty: true, options: the("u1"), requests: "GET", err: "NotFound", state: "gone"},
		{name: "deleted meanwhile", faults: script{"PUT": {meanwhile(deletes)}}, options: the("u1"),
			requests: "GET PUT@1 GET", err: "NotFound", state: "gone"},
	})
}

func TestReadRefusesWhatIsNotWanted(t *testing.T) {
	reads := func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		_, err := retry.Read[doc](ctx, s, o)
		return retry.Result[doc]{}, err
	}
	play(t, reads, []scenario{
		{name: "the version", options: on("1"), requests: "GET", state: "a=1"},
		{name: "another version", options: on("0"), requests: "GET CHECK@0", err: "Conflict", state: "a=1"},
		{name: "another object", options: the("u0"), requests: "GET", err: "replaced", state: "a=1"},
	})
}
