package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

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

const (
	pageKeys = 1000
	// pauses between two attempts to follow
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

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

// eachAt reads what begins with prefix, in the state at, 0: in the newest. Long values of
// objects are left out. It returns the revision of that state.
func (s *Store) eachAt(ctx context.Context, prefix string, at store.Revision, f func(*mvccpb.KeyValue) error) (store.Revision, error) {
	ranges := []string{prefix}
	if prefix == s.keys.live() { // all but the values
		ranges = []string{s.keys.objects(), s.keys.collections(), s.keys.live() + "meta/"}
	}
	for _, r := range ranges {
		from, end := r, clientv3.GetPrefixRangeEnd(r)
		for {
			ops := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(pageKeys)}
			if at != 0 {
				ops = append(ops, clientv3.WithRev(s.mod(at)))
			}
			page, err := s.ask(ctx, from, ops...)
			if err != nil {
				return 0, err
			}
			if at == 0 {
				at = s.revision(page.Header.Revision)
			}
			for _, kv := range page.Kvs {
				if err := f(kv); err != nil {
					return 0, err
				}
			}
			if !page.More || len(page.Kvs) == 0 {
				break
			}
			from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
	}
	return at, nil
}

// ask reads from etcd, within the bound.
func (s *Store) ask(ctx context.Context, key string, ops ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return attempt(ctx, s, func(ctx context.Context) (*clientv3.GetResponse, error) { return s.client.Get(ctx, key, ops...) })
}

// attempt makes a request that changes nothing, within the bound. Where a member stands
// still, the next attempt goes to another.
func attempt[R any](ctx context.Context, s *Store, request func(context.Context) (R, error)) (R, error) {
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	for n := 1; n < attempts; n++ {
		soon, cancel := context.WithTimeout(bounded, s.patience())
		r, err := request(soon)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || bounded.Err() != nil {
			return r, s.readError(ctx, err)
		}
		s.members.doubt()
	}
	r, err := request(bounded)
	return r, s.readError(ctx, err)
}

// streams is the context of the watch that feeds the cache. Requests for progress need
// the same. No other watch has it: etcd tells how far the watches of a stream have come only
// once all of them have come as far.
func (s *Store) streams() context.Context {
	return clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(s.ctx, "cmserver-watch", "cache"))
}

// follow feeds the cache, until the store is closed.
func (s *Store) follow() {
	for pause := firstPause; s.ctx.Err() == nil; {
		began := time.Now()
		err := s.followOnce()
		if s.ctx.Err() != nil {
			return
		}
		if errors.Is(err, store.ErrCompacted) || errors.Is(err, store.ErrDamaged) {
			err = s.reload(err)
		}
		if err != nil {
			if s.cache.failure() == nil {
				s.log.Warn("store: the watch of etcd was interrupted, and is begun again and again", "error", err)
			}
			s.cache.failed(err)
		}
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
}

// reload begins anew where what came between can't be known any more. Whoever watches has
// to do the same.
func (s *Store) reload(cause error) error {
	s.log.Warn("store: the index is read anew, and watches end", "error", cause)
	err := s.load(s.ctx)
	if err == nil {
		s.hub.Deliver(s.cache.state().Current, func() ([]store.Event, error) { return nil, store.ErrCompacted })
	}
	return err
}

// silence is for how long a watch may say nothing while somebody waits for it.
const silence = 2 * time.Second

// errSilent: a watch says nothing, while there is something to say.
var errSilent = errors.New("nothing comes through")

// followOnce goes on from what the cache has, until the watch breaks, or falls silent.
func (s *Store) followOnce() error {
	ctx, cancel := context.WithCancel(s.streams())
	defer cancel()
	from := s.cache.state().Current
	watch := s.client.Watch(ctx, s.keys.live(), clientv3.WithPrefix(), clientv3.WithRev(s.mod(from+1)), clientv3.WithProgressNotify(), clientv3.WithCreatedNotify())
	for heard := time.Now(); ; {
		select {
		case r, ok := <-watch:
			if !ok {
				return errors.New("the watch has ended")
			}
			heard = time.Now()
			if err := s.take(r); err != nil {
				return err
			}
		case <-s.cache.doubted:
			if time.Since(heard) >= silence {
				return errSilent
			}
		}
	}
}

// take makes of the cache what an answer of the watch says.
func (s *Store) take(r clientv3.WatchResponse) error {
	if r.CompactRevision > 0 {
		s.clusterCompacted(s.revision(r.CompactRevision))
		return store.ErrCompacted
	}
	if err := r.Err(); err != nil {
		return err
	}
	if s.cache.failure() != nil {
		s.cache.failed(nil)
		s.log.Info("store: the watch of etcd goes on")
	}
	if r.Created {
		return nil
	}
	return s.apply(r)
}

// apply brings the cache, and those who watch, to where an answer of the watch is.
func (s *Store) apply(r clientv3.WatchResponse) error {
	c := &s.cache
	next := c.state()
	if r.IsProgressNotify() {
		// Where it is no proof, a change that is older may still come.
		if rev := s.revision(r.Header.Revision); rev > next.Current && !s.mode.isDirect() {
			next.Current = rev
			c.mu.Lock()
			c.publish(next)
			c.mu.Unlock()
			s.hub.Deliver(rev, func() ([]store.Event, error) { return nil, nil })
		}
		return nil
	}
	changes, err := s.changesOf(r.Events)
	if err != nil {
		return err
	}
	c.mu.Lock()
	next.Tree = next.Tree.Copy()
	for i := range changes {
		change := &changes[i]
		next.Current = max(next.Current, change.rev)
		next.Compacted = max(next.Compacted, change.compacted)
		c.given = max(c.given, change.compacted)
		s.applyLocked(next.Tree, change)
	}
	c.last = next.Current
	c.publish(next)
	c.mu.Unlock()
	s.hub.Deliver(next.Current, func() ([]store.Event, error) { return s.events(s.ctx, changes) })
	return nil
}

// applyLocked makes one change in the tree that is about to be published.
func (s *Store) applyLocked(tree *index.Tree, change *change) {
	if change.moved != "" {
		s.cache.counts[change.moved] = change.mod
		return
	}
	if change.key == "" {
		return
	}
	if change.item == nil {
		change.old, _ = tree.Delete(&index.Item{Record: store.Record{Key: change.key}})
	} else {
		change.old, _ = tree.Set(change.item)
	}
	if change.value != nil {
		s.values.add(change.key, change.rev, change.value)
	}
	growth := index.Growth(&store.Record{Deleted: true}, change.old)
	if change.item != nil {
		growth = growth.Plus(store.Usage{Records: 1, Bytes: int64(change.item.Size)})
	}
	s.cache.usage.Add(store.CollectionOf(change.key), growth)
}

// change is what a transaction has made of one key.
type change struct {
	rev       store.Revision
	key       store.Key        // of an object; empty: it is something else
	item      *index.Item      // nil: it was deleted
	value     []byte           // of a large item, if all of it came along
	tombstone store.Record     // of a deletion
	old       *index.Item      // what was there
	moved     store.Collection // this was moved along
	mod       int64
	compacted store.Revision // this was given up
}

// changesOf makes changes of what etcd tells, which has all of a transaction together.
func (s *Store) changesOf(events []*clientv3.Event) ([]change, error) {
	var changes []change
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].Kv.ModRevision == events[0].Kv.ModRevision {
			n++
		}
		var err error
		if changes, err = s.transaction(changes, events[:n]); err != nil {
			return nil, err
		}
		events = events[n:]
	}
	return changes, nil
}

// transaction adds what one transaction has changed.
func (s *Store) transaction(changes []change, events []*clientv3.Event) ([]change, error) {
	rev := s.revision(events[0].Kv.ModRevision)
	rests, stones := map[string][]byte{}, map[string][]byte{} // by key of the object
	for _, e := range events {
		if what, rest := s.keys.split(string(e.Kv.Key)); e.Type == clientv3.EventTypePut {
			switch what {
			case isValue:
				key, _, _ := strings.Cut(rest, "\x00")
				rests[key] = e.Kv.Value
			case isTombstone:
				stones[rest] = e.Kv.Value
			}
		}
	}
	made := len(changes)
	for _, e := range events {
		what, rest := s.keys.split(string(e.Kv.Key))
		c := change{rev: rev, mod: e.Kv.ModRevision}
		var err error
		switch {
		case what == isObject && e.Type == clientv3.EventTypePut:
			c.key = store.Key(rest)
			err = s.written(&c, e.Kv.Value, rests[rest])
		case what == isTombstone && e.Type == clientv3.EventTypePut:
			c.key = store.Key(rest)
			err = s.gone(&c, e.Kv.Value)
		case what == isObject && stones[rest] == nil: // somebody else has deleted it
			c.key = store.Key(rest)
			err = s.gone(&c, nil)
		case what == isCount:
			c.moved = store.Collection(rest)
		case string(e.Kv.Key) == s.keys.compacted():
			c.compacted = parseRevision(e.Kv.Value)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	if len(changes) == made { // values and tombstones that were cleaned up
		changes = append(changes, change{rev: rev})
	}
	return changes, nil
}

func (s *Store) written(c *change, data, rest []byte) error {
	v, err := decodeVersion(c.key, c.rev, data)
	if err == nil {
		c.item, err = s.item(v)
	}
	if err != nil || !c.item.Large || v.Apart && rest == nil {
		return err
	}
	rec, err := v.complete(rest)
	c.value = rec.Value
	return err
}

// gone makes a tombstone of a deletion. Somebody else's has none.
func (s *Store) gone(c *change, data []byte) error {
	if data == nil {
		c.tombstone = store.Record{Key: c.key, Revision: c.rev, Deleted: true}
		return nil
	}
	v, err := decodeVersion(c.key, c.rev, data)
	c.tombstone = v.Record
	return err
}

// events are what those who watch get of the changes.
func (s *Store) events(ctx context.Context, changes []change) ([]store.Event, error) {
	var events []store.Event
	for i := range changes {
		c := &changes[i]
		if c.key == "" {
			continue
		}
		e := store.Event{Record: c.tombstone}
		var err error
		if c.item != nil {
			if e.Record, err = s.complete(ctx, c.item, store.Whole); err != nil {
				return nil, fmt.Errorf("read %s for those who watch it: %w", c.key, err)
			}
		}
		if c.old != nil {
			was, err := s.complete(ctx, c.old, store.Whole)
			if err != nil {
				return nil, fmt.Errorf("read %s as it was for those who watch it: %w", c.key, err)
			}
			e.Prev = &was
		}
		events = append(events, e)
	}
	return events, nil
}
