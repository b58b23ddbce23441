package etcd

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// cache is what the watch has made of the store: one published state, and what is counted
// in it.
type cache struct {
	view  atomic.Pointer[index.State]
	level level // view.Current, to wait for

	mu     sync.Mutex // guards what follows, and is held while view changes
	usage  *index.Usage
	counts map[store.Collection]int64 // when each collection was last moved, in etcd's revisions
	last   store.Revision             // of the last change; what is between it and Current is others'
	// given is up to where the store itself gave up states. What is kept of the history
	// hangs on it, and not on what others have compacted: states are given up by both.
	given store.Revision
	err   error // why it does not follow; nil while it does

	damaged error // what is wrong with the data that it met

	// doubted tells the one who follows that somebody has waited in vain. It has room for
	// one signal; a second says no more than the first.
	doubted chan struct{}
}

// doubt has it looked into whether the watch is dead.
func (c *cache) doubt() {
	select {
	case c.doubted <- struct{}{}:
	default:
	}
}

func (c *cache) state() index.State {
	if v := c.view.Load(); v != nil {
		return *v
	}
	return index.State{Tree: index.NewTree()}
}

// give notes that the store itself has given up the states before a revision.
func (c *cache) give(compacted store.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = max(c.given, compacted)
	c.lackLocked(compacted)
}

// lack notes that the states before a revision are not there any more.
func (c *cache) lack(compacted store.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lackLocked(compacted)
}

func (c *cache) lackLocked(compacted store.Revision) {
	next := c.state()
	if compacted > next.Compacted {
		next.Compacted = compacted
		c.view.Store(&next)
	}
}

// gaveUp is up to where the store itself has given up states.
func (c *cache) gaveUp() store.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given
}

// clusterCompacted notes that the cluster lacks the states before a revision.
func (s *Store) clusterCompacted(at store.Revision) {
	if s.opts.CompactCluster {
		s.cache.give(at) // it is how the store gives them up
		return
	}
	s.cache.lack(at)
}

// publish shows what the cache has become. mu is held.
func (c *cache) publish(next index.State) {
	next.Compacted = max(next.Compacted, c.state().Compacted)
	c.view.Store(&next)
	c.level.raise(next.Current)
}

// used is what a collection holds.
func (c *cache) used(of store.Collection) store.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usage.Of(of)
}

func (c *cache) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	if errors.Is(err, store.ErrDamaged) {
		c.damaged = err
	}
}

// failure is why the cache does not follow.
func (c *cache) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// load reads the whole of one state: of a later one, if others compact it meanwhile.
func (s *Store) load(ctx context.Context) error {
	for {
		err := s.loadOnce(ctx)
		if !errors.Is(err, store.ErrCompacted) {
			return err
		}
	}
}

func (s *Store) loadOnce(ctx context.Context) error {
	tree, usage, counts := index.NewTree(), &index.Usage{}, map[store.Collection]int64{}
	compacted, last := store.Revision(0), store.Revision(0)
	at, err := s.eachAt(ctx, s.keys.live(), 0, func(kv *mvccpb.KeyValue) error {
		what, rest := s.keys.split(string(kv.Key))
		rev := s.revision(kv.ModRevision)
		last = max(last, rev)
		switch what {
		case isObject:
			v, err := decodeVersion(store.Key(rest), rev, kv.Value)
			if err != nil {
				return err
			}
			item, err := s.item(v)
			if err != nil {
				return err
			}
			tree.Load(item)
		case isCount:
			counts[store.Collection(rest)] = kv.ModRevision
		case isMeta:
			if string(kv.Key) == s.keys.compacted() {
				compacted = parseRevision(kv.Value)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	usage.Count(tree)
	s.cache.mu.Lock()
	s.cache.usage, s.cache.counts, s.cache.last, s.cache.err, s.cache.damaged = usage, counts, last, nil, nil
	s.cache.given = max(s.cache.given, compacted)
	s.cache.publish(index.State{Tree: tree, Current: at, Compacted: compacted})
	s.cache.mu.Unlock()
	return nil
}

// item is the index entry of a version.
func (s *Store) item(v version) (*index.Item, error) {
	if v.Apart {
		return index.NewLarge(v.Head, s.opts.InlineValueSize), nil
	}
	rec, err := v.whole()
	return index.New(rec, s.opts.InlineValueSize), err
}

func parseRevision(text []byte) store.Revision {
	n, _ := strconv.ParseInt(string(text), 10, 64) // only this package writes it
	return store.Revision(n)
}
