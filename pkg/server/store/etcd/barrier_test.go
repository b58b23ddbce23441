package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// A question that was under way when somebody came may have been answered before.
func TestWhoeverWaitsGetsAnAnswerToAQuestionThatBeganLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked store.Revision
		b := barrier{start: func(f func()) { go f() }}
		b.ask = func() (store.Revision, error) {
			asked++
			mine := asked
			time.Sleep(time.Second)
			return mine, nil
		}
		got := make(chan store.Revision, 10)
		ask := func() {
			rev, err := b.revision(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- rev
		}
		go ask()
		synctest.Wait()
		for range 9 { // while the first question is under way
			go ask()
		}
		if rev := <-got; rev != 1 {
			t.Errorf("the first was told %d, want 1", rev)
		}
		for range 9 {
			if rev := <-got; rev != 2 {
				t.Errorf("one that came later was told %d, want 2", rev)
			}
		}
		synctest.Wait()
		if asked != 2 {
			t.Errorf("%d questions were sent, want 2", asked)
		}
	})
}

func TestWhoLeavesKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := barrier{start: func(f func()) { go f() }, ask: func() (store.Revision, error) {
			time.Sleep(time.Hour)
			return 0, store.ErrUnreachable
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.revision(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who left was told %v", err)
		}
		if _, err := b.revision(t.Context()); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("who stayed was told %v", err)
		}
	})
}

func TestALevelWakesThoseItReaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l level
		l.raise(5)
		reached := make(chan store.Revision, 2)
		for _, rev := range []store.Revision{7, 9} {
			go func() {
				if l.wait(t.Context(), rev) == nil {
					reached <- rev
				}
			}()
		}
		l.raise(8)
		l.raise(3) // it never falls
		synctest.Wait()
		if len(reached) != 1 || <-reached != 7 || l.get() != 8 {
			t.Errorf("at %d, %d more were woken", l.get(), len(reached))
		}
		l.raise(9)
		<-reached
	})
}
