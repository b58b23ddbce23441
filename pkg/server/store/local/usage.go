package local

import (
	"context"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// usage is what each collection holds, as the committer sees it: with the batch in
// the making. The committer alone changes it, once the store is open.
type usage struct {
	mu     sync.Mutex
	counts map[store.Collection]store.Usage // guarded by mu; those that hold something
}

// count begins with what is in a tree.
func (u *usage) count(t *tree) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts = map[store.Collection]store.Usage{}
	var at store.Collection // keys of one collection mostly stand together
	var sum store.Usage
	t.Scan(func(it *item) bool {
		if c := store.CollectionOf(it.rec.Key); c != at {
			u.addLocked(at, sum)
			at, sum = c, store.Usage{}
		}
		sum = sum.Plus(store.Usage{Records: 1, Bytes: int64(it.size)})
		return true
	})
	u.addLocked(at, sum)
}

func (u *usage) add(c store.Collection, more store.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.addLocked(c, more)
}

func (u *usage) addLocked(c store.Collection, more store.Usage) {
	if sum := u.counts[c].Plus(more); sum != (store.Usage{}) {
		u.counts[c] = sum
	} else {
		delete(u.counts, c)
	}
}

func (u *usage) of(c store.Collection) store.Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts[c]
}

// growth is what a collection gets besides when rec takes the place of old, nil if
// there is none.
func growth(rec *store.Record, old *item) store.Usage {
	var g store.Usage
	if !rec.Deleted {
		g = store.Usage{Records: 1, Bytes: int64(len(rec.Value))}
	}
	if old != nil {
		g = g.Plus(store.Usage{Records: -1, Bytes: -int64(old.size)})
	}
	return g
}

// checkLimits comes after the guards: what was made from an older version is told so.
func (c *committer) checkLimits(r *request) error {
	for _, l := range r.limits {
		var added store.Usage
		for i := range r.writes {
			if rec := &r.writes[i].rec; store.CollectionOf(rec.Key) == l.Collection {
				added = added.Plus(growth(rec, lookup(c.view.tree, rec.Key)))
			}
		}
		if used := c.s.usage.of(l.Collection); !l.Allows(used, added) {
			return &store.LimitError{Limit: l, Used: used, Added: added}
		}
	}
	return nil
}

// Usage returns what a collection holds. See store.Store.
func (s *Store) Usage(ctx context.Context, c store.Collection) (store.Usage, error) {
	if err := s.begin(ctx); err != nil {
		return store.Usage{}, err
	}
	defer s.end()
	return s.usage.of(c), nil
}
