package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/server/store"
)

// waiter is one that has gone to a queue.
type waiter struct {
	leave func()
	err   error
	back  bool // it has its turn, or was refused
}

func (q *queue) send(ctx context.Context, key store.Key, gone <-chan struct{}) *waiter {
	w := &waiter{}
	go func() {
		w.leave, w.err = q.enter(ctx, key, gone)
		w.back = true
	}()
	synctest.Wait()
	return w
}

// Each has its turn, in which nobody else has one; other keys don't wait for it.
func TestTurnsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{limit: 3}
		first, second, other := q.send(t.Context(), "a", nil), q.send(t.Context(), "a", nil), q.send(t.Context(), "b", nil)
		if !first.back || first.err != nil || second.back || !other.back || other.err != nil {
			t.Fatalf("first %+v, second %+v, other %+v", first, second, other)
		}
		first.leave()
		synctest.Wait()
		if !second.back || second.err != nil {
			t.Fatalf("second %+v", second)
		}
		second.leave()
		other.leave()
		if len(q.keys) != 0 {
			t.Errorf("%d keys are left", len(q.keys))
		}
	})
}

// What ends the wait: too many at the key, the client's end, the request's time.
// None of them changes whose turn it is, and each gives its place back.
func TestWhoGetsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{limit: 2}
		holder := q.send(t.Context(), "a", nil)
		for round := range 3 {
			gone := make(chan struct{})
			w := q.send(t.Context(), "a", gone)
			if w.back {
				t.Fatalf("round %d: %+v", round, w)
			}
			if more := q.send(t.Context(), "a", nil); !apierrors.IsTooManyRequests(more.err) {
				t.Errorf("round %d: one too many: %+v", round, more)
			}
			close(gone)
			synctest.Wait()
			if !apierrors.IsTooManyRequests(w.err) || w.leave != nil {
				t.Errorf("round %d: the client ended: %+v", round, w)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late := q.send(ctx, "a", nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if late.err != context.DeadlineExceeded {
			t.Errorf("the time was over: %+v", late)
		}
		holder.leave()
		ended := make(chan struct{})
		close(ended)
		// Whose turn it is at once has it, even with a half closed connection.
		if w := q.send(t.Context(), "a", ended); w.err != nil {
			t.Errorf("nobody was before: %v", w.err)
		}
	})
}
