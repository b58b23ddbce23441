package index

import (
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// Usage is what each collection holds. Its zero value is that of an empty store. It may be
// used by any number of goroutines.
type Usage struct {
	mu     sync.Mutex
	counts map[store.Collection]store.Usage // guarded by mu; those that hold something
}

// Count begins with what is in a tree.
func (u *Usage) Count(t *Tree) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts = map[store.Collection]store.Usage{}
	var at store.Collection // keys of one collection mostly stand together
	var sum store.Usage
	t.Scan(func(it *Item) bool {
		if c := store.CollectionOf(it.Record.Key); c != at {
			u.addLocked(at, sum)
			at, sum = c, store.Usage{}
		}
		sum = sum.Plus(store.Usage{Records: 1, Bytes: int64(it.Size)})
		return true
	})
	u.addLocked(at, sum)
}

// Add counts more, or less.
func (u *Usage) Add(c store.Collection, more store.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.addLocked(c, more)
}

func (u *Usage) addLocked(c store.Collection, more store.Usage) {
	if sum := u.counts[c].Plus(more); sum != (store.Usage{}) {
		u.counts[c] = sum
	} else {
		delete(u.counts, c)
	}
}

// Of is what a collection holds.
func (u *Usage) Of(c store.Collection) store.Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts[c]
}

// Growth is what a collection gets besides when rec takes the place of old, nil if
// there is none.
func Growth(rec *store.Record, old *Item) store.Usage {
	var g store.Usage
	if !rec.Deleted {
		g = store.Usage{Records: 1, Bytes: int64(len(rec.Value))}
	}
	if old != nil {
		g = g.Plus(store.Usage{Records: -1, Bytes: -int64(old.Size)})
	}
	return g
}
