package etcd

import (
	"context"
	"slices"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// turns lets one at a time be at a collection.
type turns struct {
	mu sync.Mutex
	at map[store.Collection]*turn // those somebody is at, guarded by mu
}

type turn struct {
	held  chan struct{} // full while somebody is at it
	users int           // who is at it or waits, guarded by turns.mu
}

// enter waits until nobody else is at the collections of some limits. leave lets the next one.
func (q *turns) enter(ctx context.Context, limits []store.Limit) (leave func(), err error) {
	var wanted []store.Collection
	for _, l := range limits {
		wanted = append(wanted, l.Collection)
	}
	slices.Sort(wanted) // all in one order, so that no two wait for each other
	wanted = slices.Compact(wanted)
	for i, c := range wanted {
		if err := q.enterOne(ctx, c); err != nil {
			q.leave(wanted[:i])
			return nil, err
		}
	}
	return func() { q.leave(wanted) }, nil
}

func (q *turns) enterOne(ctx context.Context, c store.Collection) error {
	q.mu.Lock()
	if q.at == nil {
		q.at = map[store.Collection]*turn{}
	}
	t := q.at[c]
	if t == nil {
		t = &turn{held: make(chan struct{}, 1)}
		q.at[c] = t
	}
	t.users++
	q.mu.Unlock()
	select {
	case t.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		q.quit(c, t)
		return ctx.Err()
	}
}

func (q *turns) leave(all []store.Collection) {
	for _, c := range all {
		q.mu.Lock()
		t := q.at[c]
		q.mu.Unlock()
		<-t.held
		q.quit(c, t)
	}
}

func (q *turns) quit(c store.Collection, t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(q.at, c)
	}
}
