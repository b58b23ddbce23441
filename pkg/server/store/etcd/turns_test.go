package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/server/store"
)

func limits(on ...store.Collection) (all []store.Limit) {
	for _, c := range on {
		all = append(all, store.Limit{Collection: c})
	}
	return all
}

func TestOneAtATimeIsAtACollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q turns
		at := map[store.Collection]*int{"a/": new(int), "b/": new(int)} // each is of who is there alone
		for i := range 20 {
			// In either order, and twice: none waits for one that waits for it.
			on := [][]store.Collection{{"a/", "b/"}, {"b/", "a/"}, {"a/", "a/"}, {"b/"}}[i%4]
			go func() {
				leave, err := q.enter(t.Context(), limits(on...))
				if err != nil {
					t.Error(err)
					return
				}
				seen := map[store.Collection]bool{}
				for _, c := range on {
					seen[c] = true
				}
				for c := range seen {
					if *at[c]++; *at[c] > 1 {
						t.Errorf("%d are at %s", *at[c], c)
					}
				}
				time.Sleep(time.Second)
				for c := range seen {
					*at[c]--
				}
				leave()
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(q.at) != 0 {
			t.Errorf("%d collections are still held", len(q.at))
		}
	})
}

func TestWhoLeavesTheQueueHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q turns
		leave, err := q.enter(t.Context(), limits("b/"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.enter(ctx, limits("a/", "b/")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is let in, %v", err)
		}
		leave()
		if len(q.at) != 0 {
			t.Errorf("%d collections are still held", len(q.at))
		}
	})
}
