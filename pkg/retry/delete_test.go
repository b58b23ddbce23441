package retry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"example.com/cmctl/pkg/retry"
)

func deletesIt(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
	return retry.Delete[doc](ctx, s, retry.Version{}, o)
}

func deletesWhen(want retry.Version) verb {
	return func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		return retry.Delete[doc](ctx, s, want, o)
	}
}

func TestDeleteDeletesTheObjectThatItRead(t *testing.T) {
	play(t, deletesIt, []scenario{
		{name: "there", requests: "GET DELETE", events: "reread(>1) done(1>)", outcome: retry.Written, state: "gone"},
		{name: "not there", empty: true, requests: "GET", err: "NotFound", state: "gone"},
		{name: "changed meanwhile: still the same object", faults: script{"DELETE": {meanwhile(sets("b", "3"))}},
			requests: "GET DELETE", outcome: retry.Written, state: "gone"},
		{name: "deleted meanwhile", faults: script{"DELETE": {meanwhile(deletes)}}, requests: "GET DELETE", err: "NotFound", state: "gone"},
		{name: "made anew meanwhile", faults: script{"DELETE": {meanwhile(replaces)}},
			requests: "GET DELETE GET", err: "replaced", state: "a=new"},
		{name: "made anew and deleted again", faults: script{"DELETE": {meanwhile(replaces).then(deletes)}},
			requests: "GET DELETE GET", err: "NotFound", state: "gone"},
		{name: "429", faults: script{"DELETE": {answers(tooMany(1))}}, requests: "GET DELETE DELETE", outcome: retry.Written, state: "gone"},
		{name: "unsent", faults: script{"DELETE": {unsent}}, requests: "GET DELETE DELETE", outcome: retry.Written, state: "gone"},
		{name: "refused", faults: script{"DELETE": {answers(forbidden())}}, requests: "GET DELETE", err: "Forbidden", state: "a=1"},
		{name: "a 404 of a proxy is no absence", faults: script{"DELETE": {answers(status(404, "Unheard", 0))}},
			requests: "GET DELETE", err: "Unheard", state: "a=1"},
		{name: "429 up to the cap", faults: script{"DELETE": repeat(answers(tooMany(1)), 2)}, options: attempts(2),
			requests: "GET DELETE DELETE", err: "exhausted TooManyRequests", state: "a=1"},
	})
}

func TestConditionalDelete(t *testing.T) {
	play(t, deletesWhen(retry.Version{ResourceVersion: "1"}), []scenario{
		{name: "still at that version", requests: "GET DELETE@1", events: "reread(>1) done(1>)", outcome: retry.Written, state: "gone"},
		{name: "moved: a Conflict is not tried again", faults: script{"DELETE": {meanwhile(sets("b", "3"))}},
			requests: "GET DELETE@1", err: "Conflict", state: "a=1 b=3"},
		{name: "lost and moved: the refusal of the resend stands", history: true, faults: script{"DELETE": {lostBefore.then(sets("b", "3"))}},
			requests: "GET DELETE@1 GET DELETE@1 GET", err: "Conflict", state: "a=1 b=3"},
		{name: "lost and moved, and no attempt is left", history: true, faults: script{"DELETE": {lostBefore.then(sets("b", "3"))}},
			options: attempts(1), requests: "GET DELETE@1 GET", err: "exhausted lost", state: "a=1 b=3"},
		{name: "lost and gone: by its own hand", history: true, faults: script{"DELETE": {lostAfter}},
			requests: "GET DELETE@1 GET FIND@1", outcome: retry.Written, state: "gone"},
		{name: "lost and gone: by another's", history: true, faults: script{"DELETE": {lostBefore.then(sets("b", "3"), deletes)}},
			requests: "GET DELETE@1 GET FIND@1", err: "NotFound", state: "gone"},
		{name: "lost and gone: whose hand it was can't be told", faults: script{"DELETE": {lostBefore.then(sets("b", "3"), deletes)}},
			requests: "GET DELETE@1 GET FIND@1", err: "unknown lost NotFound", state: "gone"},
	})
	play(t, deletesWhen(retry.Version{ResourceVersion: "0"}), []scenario{
		{name: "another version from the start", faults: script{"DELETE": {answers(tooMany(1))}},
			requests: "GET DELETE@0 DELETE@0", events: "reread(>1) waiting(0>)", err: "Conflict", state: "a=1"},
	})
	play(t, deletesWhen(retry.Version{UID: "u0"}), []scenario{
		{name: "another object from the start", requests: "GET", err: "replaced", state: "a=1"},
	})
	play(t, deletesWhen(retry.Version{UID: "u1"}), []scenario{
		{name: "the object that was meant", requests: "GET DELETE", outcome: retry.Written, state: "gone"},
	})
}

func TestLostDelete(t *testing.T) {
	play(t, deletesIt, []scenario{
		{name: "landed", history: true, faults: script{"DELETE": {lostAfter}}, requests: "GET DELETE GET FIND@1",
			events: "reread(>1) lost(1>) settled(1>)", outcome: retry.Written, state: "gone"},
		{name: "landed, no history: gone is what was asked for", faults: script{"DELETE": {lostAfter}}, requests: "GET DELETE GET FIND@1",
			events: "reread(>1) lost(1>) gone(1>)", outcome: retry.Written, state: "gone"},
		{name: "not landed", history: true, faults: script{"DELETE": {lostBefore}}, requests: "GET DELETE GET DELETE",
			events: "reread(>1) lost(1>) reread(1>1) resend(1>1) done(1>)", outcome: retry.Written, state: "gone"},
		{name: "landed between the settling read and the resend", history: true, faults: script{"DELETE": {lostLate}},
			requests: "GET DELETE GET DELETE GET FIND@1", outcome: retry.Written, state: "gone"},
		{name: "landed, and another was made since", history: true, faults: script{"DELETE": {fault(lostAfter).then(anotherCreates)}},
			requests: "GET DELETE GET FIND@1", outcome: retry.Written, state: "a=theirs"},
		{name: "gone by another's hand", history: true, faults: script{"DELETE": {lostBefore.then(deletes)}},
			requests: "GET DELETE GET FIND@1", err: "NotFound", state: "gone"},
		{name: "made anew by another's hand", history: true, faults: script{"DELETE": {lostBefore.then(replaces)}},
			requests: "GET DELETE GET FIND@1", err: "replaced", state: "a=new"},
		{name: "lost up to the cap", history: true, faults: script{"DELETE": repeat(lostBefore, 2)}, options: attempts(2),
			requests: "GET DELETE GET DELETE GET", err: "unknown exhausted lost", state: "a=1"},
		{name: "landed with the only attempt", history: true, faults: script{"DELETE": {lostAfter}}, options: attempts(1),
			requests: "GET DELETE GET FIND@1", outcome: retry.Written, state: "gone"},
		{name: "lost, then 429 up to the cap", history: true, faults: script{"DELETE": {lostLate, answers(tooMany(1))}}, options: attempts(2),
			requests: "GET DELETE GET DELETE GET", err: "unknown exhausted TooManyRequests", state: "gone"},
		{name: "lost, then a 404 of a proxy", history: true, faults: script{"DELETE": {lostBefore, answers(status(404, "", 0))}},
			requests: "GET DELETE GET DELETE GET", err: "unknown lost", state: "a=1"},
		{name: "lost, then refused", history: true, faults: script{"DELETE": {lostBefore, answers(forbidden())}},
			requests: "GET DELETE GET DELETE GET", err: "unknown lost Forbidden", state: "a=1"},
		{name: "lost, and the read is refused", history: true, faults: script{"DELETE": {lostAfter}, "GET": {nil, answers(forbidden())}},
			requests: "GET DELETE GET", err: "unknown lost Forbidden", state: "gone"},
	})
}

func TestUnknownDeleteNamesTheVersionThatWasRead(t *testing.T) {
	s := newServer(script{"DELETE": {lostAfter}, "GET": {nil, answers(forbidden())}}, true)
	_, err := retry.Delete[doc](t.Context(), s, retry.Version{}, retry.Options{Backoff: calm})
	var unknown *retry.OutcomeUnknownError
	if !errors.As(err, &unknown) || unknown.Sent != "1" || strings.Contains(err.Error(), "create") {
		t.Errorf("got %v", err)
	}
}
