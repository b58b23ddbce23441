package retry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

var mine = doc{data: map[string]string{"a": "mine"}}

func sameAsMine(found doc) bool { return found.String() == mine.String() }

func creates(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
	return retry.Create[doc](ctx, s, mine, sameAsMine, o)
}

func createsOrGets(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
	return retry.CreateOrGet[doc](ctx, s, mine, o)
}

// anotherCreates is somebody else's create.
func anotherCreates(s *server) {
	s.another(func(doc) doc { return doc{data: map[string]string{"a": "theirs"}} })
}

func TestCreateReportsWhatIsThere(t *testing.T) {
	play(t, creates, []scenario{
		{name: "nothing there", empty: true, requests: "POST", events: "done(>1)", outcome: retry.Written, state: "a=mine"},
		{name: "somebody else's", requests: "POST", err: "AlreadyExists", state: "a=1"},
		{name: "429", empty: true, faults: script{"POST": {answers(tooMany(1))}}, requests: "POST POST",
			events: "waiting(>) done(>1)", outcome: retry.Written, state: "a=mine"},
		{name: "a server that was never reached", empty: true, faults: script{"POST": {unsent}}, requests: "POST", err: "unsent", state: "gone"},
		{name: "unsent to a server that answered before", empty: true, faults: script{"POST": {answers(tooMany(1)), unsent}},
			requests: "POST POST POST", outcome: retry.Written, state: "a=mine"},
		{name: "refused", empty: true, faults: script{"POST": {answers(forbidden())}}, requests: "POST", err: "Forbidden", state: "gone"},
		{name: "429 up to the cap", empty: true, faults: script{"POST": repeat(answers(tooMany(1)), 2)}, options: attempts(2),
			requests: "POST POST", err: "exhausted TooManyRequests", state: "gone"},
	})
}

func TestLostCreateIsSettledByHistory(t *testing.T) {
	both := []scenario{
		{name: "landed", faults: script{"POST": {lostAfter}}, requests: "POST GET FIND",
			events: "lost(>) reread(>1) settled(>1)", outcome: retry.Written, state: "a=mine"},
		{name: "not landed", faults: script{"POST": {lostBefore}}, requests: "POST GET FIND POST",
			events: "lost(>) resend(>) done(>1)", outcome: retry.Written, state: "a=mine"},
		{name: "landed between the settling read and the resend", faults: script{"POST": {lostLate}},
			requests: "POST GET FIND POST GET FIND", outcome: retry.Written, state: "a=mine"},
		{name: "a 500 that stored it", faults: script{"POST": {failsAfter(internal())}}, requests: "POST GET FIND",
			outcome: retry.Written, state: "a=mine"},
		{name: "landed between the settling read and the history", faults: script{"POST": {lostLate}, "FIND": {afterWhatIsLate}},
			requests: "POST GET FIND GET", events: "lost(>) reread(>1) settled(>1)", outcome: retry.Written, state: "a=mine"},
		{name: "landed, then deleted", faults: script{"POST": {fault(lostAfter).then(deletes)}}, requests: "POST GET FIND GET",
			err: "deleted NotFound", state: "gone"},
		{name: "lost up to the cap", faults: script{"POST": repeat(lostBefore, 2)}, options: attempts(2),
			requests: "POST GET FIND POST GET FIND", err: "unknown exhausted lost", state: "gone"},
		{name: "lost with the only attempt, landing after all", faults: script{"POST": {lostLate}}, options: attempts(1),
			requests: "POST GET FIND", err: "unknown exhausted lost", state: "a=mine"},
		{name: "landed with the only attempt", faults: script{"POST": {lostAfter}}, options: attempts(1),
			requests: "POST GET FIND", outcome: retry.Written, state: "a=mine"},
		{name: "a refused body never goes out again", faults: script{"POST": {lostBefore, answers(forbidden())}},
			requests: "POST GET FIND POST GET FIND", err: "unknown lost Forbidden", state: "gone"},
		{name: "a 404 of a proxy is no absence", faults: script{"POST": {lostAfter}, "GET": {answers(status(404, "Unheard", 0))}},
			requests: "POST GET", err: "unknown lost Unheard", state: "a=mine"},
	}
	for i := range both {
		both[i].empty, both[i].history = true, true
	}
	play(t, creates, both)
	play(t, createsOrGets, both)

	play(t, creates, []scenario{
		{name: "another was faster", empty: true, history: true, faults: script{"POST": {lostBefore.then(anotherCreates)}},
			requests: "POST GET FIND", err: "AlreadyExists", state: "a=theirs"},
		{name: "another was faster than the resend", empty: true, history: true, faults: script{"POST": {lostBefore, meanwhile(anotherCreates)}},
			requests: "POST GET FIND POST GET FIND", err: "AlreadyExists", state: "a=theirs"},
		{name: "the same content of another is another's", empty: true, history: true,
			faults:   script{"POST": {lostBefore.then(func(s *server) { s.another(func(doc) doc { return mine }) })}},
			requests: "POST GET FIND", err: "AlreadyExists", state: "a=mine"},
	})
	play(t, createsOrGets, []scenario{
		{name: "another was faster: its object is the result", empty: true, history: true, faults: script{"POST": {lostBefore.then(anotherCreates)}},
			requests: "POST GET FIND", outcome: retry.Existing, state: "a=theirs"},
	})
}

func TestLostCreateWithoutHistory(t *testing.T) {
	play(t, creates, []scenario{
		{name: "what was asked for is there", empty: true, faults: script{"POST": {lostAfter}},
			requests: "POST GET FIND", outcome: retry.Written, state: "a=mine"},
		{name: "something else is there: it may be ours, changed since", empty: true, faults: script{"POST": {fault(lostAfter).then(sets("a", "2"))}},
			requests: "POST GET FIND", err: "unknown lost", state: "a=2"},
		{name: "nothing is there", empty: true, faults: script{"POST": {lostBefore}},
			requests: "POST GET FIND POST", outcome: retry.Written, state: "a=mine"},
		{name: "there at the resend, gone at the read: it may have been ours", empty: true,
			faults:   script{"POST": {lostBefore, meanwhile(anotherCreates).then(deletes)}},
			requests: "POST GET FIND POST GET FIND", err: "unknown lost AlreadyExists", state: "gone"},
		{name: "nothing is there, but making it twice would be wrong", empty: true, faults: script{"POST": {fault(lostAfter).then(deletes)}},
			options: retry.Options{Computed: true}, requests: "POST GET FIND", err: "unknown lost NotFound", state: "gone"},
	})
	play(t, createsOrGets, []scenario{
		{name: "there it is, whoever made it", empty: true, faults: script{"POST": {lostAfter}},
			requests: "POST GET FIND", outcome: retry.Existing, state: "a=mine"},
	})
}

func TestUnknownCreateSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := emptyServer(script{"POST": {fault(lostAfter).then(sets("a", "2"))}}, false)
		_, err := creates(t.Context(), s, retry.Options{})
		var unknown *retry.OutcomeUnknownError
		if !errors.As(err, &unknown) || unknown.Sent != "" || unknown.Current != "2" {
			t.Errorf("got %#v", err)
		}
	})
}

func TestCreateOrGetGoesOnWithWhatExists(t *testing.T) {
	play(t, createsOrGets, []scenario{
		{name: "nothing there", empty: true, requests: "POST", outcome: retry.Written, state: "a=mine"},
		{name: "something there", requests: "POST GET", events: "reread(>1)", outcome: retry.Existing, state: "a=1"},
		{name: "deleted between the two answers", faults: script{"GET": {meanwhile(deletes)}},
			requests: "POST GET POST", events: "refused(>) done(>3)", outcome: retry.Written, state: "a=mine"},
		{name: "made and deleted up to the cap", empty: true,
			faults: script{"POST": repeat(meanwhile(anotherCreates), 3), "GET": repeat(meanwhile(deletes), 3)}, options: attempts(3),
			requests: "POST GET POST GET POST GET", err: "exhausted AlreadyExists", state: "gone"},
		{name: "an existing one that can't be read is no absence", faults: script{"GET": {answers(forbidden())}},
			requests: "POST GET", err: "Forbidden", state: "a=1"},
	})
}

func TestEightCreateOrGetsAtOnceMakeOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := emptyServer(script{"POST": repeat(func(_ context.Context, r request) (doc, error) {
			time.Sleep(time.Second) // all eight are on their way
			return r.land()
		}, 8)}, true)
		outcomes := make([]retry.Result[doc], 8)
		var all sync.WaitGroup
		for i := range outcomes {
			all.Go(func() {
				var err error
				if outcomes[i], err = createsOrGets(t.Context(), s, retry.Options{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		written := 0
		for _, res := range outcomes {
			if res.Outcome == retry.Written {
				written++
			}
			if res.Object.uid != "u1" {
				t.Errorf("got object %s", res.Object.uid)
			}
		}
		if written != 1 || s.uids != 1 {
			t.Errorf("%d say that they wrote it, and %d were made", written, s.uids)
		}
	})
}
