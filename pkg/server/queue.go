package server

import (
	"context"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// queue lets one at a time write to a key. It keeps writes that the server
// computes itself from conflicting with each other; the guard of the commit is
// what keeps them right.
type queue struct {
	mu   sync.Mutex
	keys map[store.Key]*turn // those somebody is at, guarded by mu
}

// turn is held by whoever is at the key.
type turn struct {
	held  chan struct{} // full while it is held
	users int           // who hold it or wait, guarded by queue.mu
}

// enter waits for the key's turn. leave must be called to pass it on.
func (q *queue) enter(ctx context.Context, key store.Key) (leave func(), err error) {
	t := q.join(key)
	select {
	case t.held <- struct{}{}:
		return func() { <-t.held; q.quit(key, t) }, nil
	case <-ctx.Done():
		q.quit(key, t)
		return nil, ctx.Err()
	}
}

func (q *queue) join(key store.Key) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.keys == nil {
		q.keys = map[store.Key]*turn{}
	}
	t := q.keys[key]
	if t == nil {
		t = &turn{held: make(chan struct{}, 1)}
		q.keys[key] = t
	}
	t.users++
	return t
}

func (q *queue) quit(key store.Key, t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(q.keys, key)
	}
}
