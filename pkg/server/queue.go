package server

import (
	"context"
	"sync"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// queue lets one at a time write to a key. It keeps writes that the server
// computes itself from conflicting with each other; the guard of the commit is
// what keeps them right.
type queue struct {
	limit int // how many may be at one key
	mu    sync.Mutex
	keys  map[store.Key]*turn // those somebody is at, guarded by mu
}

// turn is held by whoever is at the key.
type turn struct {
	held  chan struct{} // full while it is held
	users int           // who hold it or wait, guarded by queue.mu
}

// enter waits for the key's turn. leave must be called to pass it on. Too many at
// one key are refused, so that it can't take the places of all other writes; and
// who is gone before its turn, as the channel says when it is closed, waits no
// longer.
func (q *queue) enter(ctx context.Context, key store.Key, gone <-chan struct{}) (leave func(), err error) {
	t := q.join(key)
	if t == nil {
		return nil, types.TooManyRequests("too many writes to this object wait for their turn, please try again later", 1)
	}
	leave = func() { <-t.held; q.quit(key, t) }
	select {
	case t.held <- struct{}{}:
		return leave, nil // at once, even if the client has ended its side already
	default:
	}
	select {
	case t.held <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-gone:
		// It may still read the answer.
		err = types.TooManyRequests("the client ended its side of the connection while the write waited for its turn; nothing was stored", 1)
	}
	q.quit(key, t)
	return nil, err
}

// join is nil if too many are at the key.
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
	if t.users == q.limit {
		return nil
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
