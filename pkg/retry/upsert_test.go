package retry_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

func upserts(edit retry.Edit[doc]) verb {
	return func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		return retry.Upsert[doc](ctx, s, func(ctx context.Context) (doc, error) { return edit(ctx, doc{}) }, edit, o)
	}
}

func TestUpsertEditsOrCreates(t *testing.T) {
	play(t, upserts(set("a", "9")), []scenario{
		{name: "there", requests: "GET PUT@1", outcome: retry.Written, state: "a=9"},
		{name: "not there", empty: true, requests: "GET POST", outcome: retry.Written, state: "a=9"},
		{name: "another creates it meanwhile", empty: true, faults: script{"POST": {meanwhile(anotherCreates)}},
			requests: "GET POST GET PUT@1", events: "reread(>1) done(1>2)", outcome: retry.Written, state: "a=9"},
		{name: "another creates just that", empty: true, faults: script{"POST": {meanwhile(sets("a", "9"))}},
			requests: "GET POST GET", outcome: retry.Unchanged, state: "a=9"},
		{name: "another deletes it meanwhile", faults: script{"PUT": {meanwhile(deletes)}},
			requests: "GET PUT@1 GET POST", events: "reread(>1) done(>3)", outcome: retry.Written, state: "a=9"},
		{name: "deleted, made and deleted again", faults: script{"PUT": {meanwhile(deletes)}, "POST": {meanwhile(anotherCreates)}, "GET": {nil, nil, meanwhile(deletes)}},
			requests: "GET PUT@1 GET POST GET POST", outcome: retry.Written, state: "a=9"},
		{name: "made anew between two attempts", faults: script{"PUT": {meanwhile(replaces)}},
			requests: "GET PUT@1 GET", err: "replaced", state: "a=new"},
		{name: "deletes up to the cap", empty: true, options: attempts(2),
			faults:   script{"POST": {meanwhile(anotherCreates)}, "PUT": {meanwhile(deletes)}},
			requests: "GET POST GET PUT@1", err: "exhausted NotFound", state: "gone"},
		{name: "no attempt left for the edit: nothing was lost", empty: true, options: attempts(1),
			faults:   script{"POST": {meanwhile(anotherCreates)}},
			requests: "GET POST GET", err: "exhausted AlreadyExists", state: "a=theirs"},
		{name: "no attempt left and none needed", empty: true, options: attempts(1),
			faults:   script{"POST": {meanwhile(sets("a", "9"))}},
			requests: "GET POST GET", outcome: retry.Unchanged, state: "a=9"},
		{name: "a failed read is no absence", empty: true, faults: script{"GET": {answers(internal())}},
			requests: "GET", err: "InternalError", state: "gone"},
		{name: "nor is a 404 of a proxy", empty: true, faults: script{"GET": {answers(status(404, "Unheard", 0))}},
			requests: "GET", err: "Unheard", state: "gone"},
		{name: "a refused create", empty: true, faults: script{"POST": {answers(forbidden())}},
			requests: "GET POST", err: "Forbidden", state: "gone"},
	})
}

func TestUpsertsOwnErrorsPassThrough(t *testing.T) {
	fails := func(err error) retry.Edit[doc] {
		return func(context.Context, doc) (doc, error) { return doc{}, err }
	}
	play(t, upserts(fails(errOwn)), []scenario{
		{name: "of the edit", requests: "GET", err: "own", state: "a=1"},
		{name: "of the maker", empty: true, requests: "GET", err: "own", state: "gone"},
	})
	// An edit that looks for something else and does not find it says nothing
	// about the object itself.
	play(t, upserts(fails(notFound())), []scenario{
		{name: "NotFound of the edit", requests: "GET", err: "NotFound", state: "a=1"},
		{name: "NotFound of the maker", empty: true, requests: "GET", err: "NotFound", state: "gone"},
	})
}

func TestLostAnswersOfAnUpsert(t *testing.T) {
	both := []scenario{
		{name: "the update landed, then deleted: it is not made twice", history: true, faults: script{"PUT": {fault(lostAfter).then(deletes)}},
			requests: "GET PUT@1 GET FIND@1", err: "deleted NotFound", state: "gone"},
		{name: "deleted before the update landed", history: true, faults: script{"PUT": {lostBefore.then(deletes)}},
			requests: "GET PUT@1 GET FIND@1 GET POST", outcome: retry.Written, state: "a=1"},
		{name: "no history, and deleted since", faults: script{"PUT": {lostBefore.then(deletes)}},
			requests: "GET PUT@1 GET FIND@1", err: "unknown lost NotFound", state: "gone"},
		{name: "the create landed", empty: true, history: true, faults: script{"POST": {lostAfter}},
			requests: "GET POST GET FIND", outcome: retry.Written, state: "a=1"},
		{name: "the create landed, then deleted: it is not made twice", empty: true, history: true,
			faults: script{"POST": {fault(lostAfter).then(deletes)}}, requests: "GET POST GET FIND GET", err: "deleted NotFound", state: "gone"},
		{name: "another's create was faster", empty: true, history: true, faults: script{"POST": {lostBefore.then(sets("a", "0"))}},
			requests: "GET POST GET FIND PUT@1", outcome: retry.Written, state: "a=1"},
	}
	play(t, upserts(set("a", "1")), both[3:])
	computed := func(ctx context.Context, s *server, o retry.Options) (retry.Result[doc], error) {
		o.Computed = true
		return upserts(increment("a"))(ctx, s, o)
	}
	play(t, computed, both)

	play(t, computed, []scenario{
		{name: "no history: what is there may be its own", empty: true, faults: script{"POST": {lostAfter}},
			requests: "GET POST GET FIND", err: "unknown lost", state: "a=1"},
		{name: "no history: nothing is there any more", empty: true, faults: script{"POST": {fault(lostAfter).then(deletes)}},
			requests: "GET POST GET FIND", err: "unknown lost NotFound", state: "gone"},
	})
	play(t, upserts(set("a", "9")), []scenario{
		{name: "no history: the values are there", empty: true, faults: script{"POST": {lostAfter}},
			requests: "GET POST GET FIND", outcome: retry.Written, state: "a=9"},
		{name: "no history: changed since, merged again", empty: true, faults: script{"POST": {fault(lostAfter).then(sets("a", "2"))}},
			requests: "GET POST GET FIND PUT@2", outcome: retry.Written, state: "a=9"},
		{name: "no history: changed since, and the merge is refused", empty: true,
			faults:   script{"POST": {fault(lostAfter).then(sets("a", "2"))}, "PUT": {answers(forbidden())}},
			requests: "GET POST GET FIND PUT@2", err: "unknown lost Forbidden", state: "a=2"},
		{name: "no history: changed since, and deleted before the merge", empty: true,
			faults:   script{"POST": {fault(lostAfter).then(sets("a", "2"))}, "PUT": {meanwhile(deletes)}},
			requests: "GET POST GET FIND PUT@2", err: "unknown lost NotFound", state: "gone"},
	})
}

func TestEightUpsertsAtOnceAllLand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := fault(func(_ context.Context, r request) (doc, error) {
			time.Sleep(time.Second)
			return r.land()
		})
		s := emptyServer(script{"POST": repeat(slow, 8)}, true)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				o := retry.Options{MaxAttempts: 20, Computed: true}
				if _, err := upserts(increment("n"))(t.Context(), s, o); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if s.state() != "n=8" || s.uids != 1 {
			t.Errorf("the server holds %s, in the object number %d", s.state(), s.uids)
		}
	})
}
