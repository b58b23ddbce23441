package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// pauses between two attempts to follow
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

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
