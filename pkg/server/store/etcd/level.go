package etcd

import (
	"context"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// level is a revision that rises, and can be waited for.
type level struct {
	mu      sync.Mutex
	at      store.Revision
	changed chan struct{} // closed at the next rise; nil if nobody waits
}

func (l *level) get() store.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

func (l *level) raise(to store.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to <= l.at {
		return
	}
	l.at = to
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// wait waits until the level is at rev.
func (l *level) wait(ctx context.Context, rev store.Revision) error {
	for {
		l.mu.Lock()
		if l.at >= rev {
			l.mu.Unlock()
			return nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
