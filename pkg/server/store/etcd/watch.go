package etcd

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/feed"
)

// Watch returns the changes under prefix after the revision from. See store.Store.
func (s *Store) Watch(ctx context.Context, prefix store.Key, from store.Revision) (store.Watcher, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	if from == 0 {
		var err error
		if from, err = s.fresh.revision(ctx); err != nil {
			return nil, err
		}
		s.tell(from)
	}
	if from < s.cache.state().Compacted {
		return nil, store.ErrCompacted
	}
	ctx, cancel := context.WithCancel(s.ctx)
	return s.hub.Watch(prefix, from, feed.Limits{Events: s.opts.WatchBuffer, Bytes: watchBytes}, &backlog{s: s, prefix: prefix, ctx: ctx, cancel: cancel})
}

// backlog reads what a watcher has missed by a watch of its own, until it has come to where
// the cache is.
type backlog struct {
	s      *Store
	prefix store.Key
	ctx    context.Context // ends with the backlog
	cancel context.CancelFunc
	watch  clientv3.WatchChan // nil until it is needed
}

func (b *backlog) Close() { b.cancel() }

// Read returns the events of the next answer of etcd.
func (b *backlog) Read(ctx context.Context, after store.Revision) ([]store.Event, store.Revision, error) {
	s := b.s
	current, last := s.cache.reached()
	switch {
	case after >= current:
		return nil, after, nil
	case after >= last: // what is between is others'
		return nil, current, nil
	}
	if b.watch == nil {
		streams := clientv3.WithRequireLeader(b.ctx)
		b.watch = s.client.Watch(streams, s.keys.live(), clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(s.mod(after+1)))
	}
	select {
	case r, ok := <-b.watch:
		switch {
		case r.CompactRevision > 0:
			s.clusterCompacted(s.revision(r.CompactRevision))
			return nil, 0, store.ErrCompacted
		case !ok, r.Err() != nil:
			return nil, after, b.again(ctx)
		}
		return b.eventsOf(ctx, r, after)
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// again has the watch begun anew, after a pause: as one that feeds the cache it bears with a
// cluster that is away for a time.
func (b *backlog) again(ctx context.Context) error {
	b.watch = nil
	select {
	case <-time.After(lastPause):
		return nil
	case <-b.ctx.Done():
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *backlog) eventsOf(ctx context.Context, r clientv3.WatchResponse, after store.Revision) ([]store.Event, store.Revision, error) {
	s := b.s
	if len(r.Events) == 0 {
		return nil, after, nil // and it is asked again, for it is not at the cache's end
	}
	changes, err := s.changesOf(r.Events)
	if err == nil {
		err = s.addOld(changes, r.Events)
	}
	if err != nil {
		return nil, 0, err
	}
	wanted := changes[:0:0]
	for _, c := range changes {
		if c.key != "" && strings.HasPrefix(string(c.key), string(b.prefix)) {
			wanted = append(wanted, c)
		}
		if c.value != nil {
			s.values.add(c.key, c.rev, c.value)
		}
	}
	events, err := s.events(ctx, wanted)
	return events, s.revision(r.Events[len(r.Events)-1].Kv.ModRevision), err
}

// addOld finds what there was before each change.
func (s *Store) addOld(changes []change, events []*clientv3.Event) error {
	type place struct {
		key string
		mod int64
	}
	old := map[place]*clientv3.Event{}
	for _, e := range events {
		if e.PrevKv != nil {
			old[place{string(e.Kv.Key), e.Kv.ModRevision}] = e
		}
	}
	for i := range changes {
		c := &changes[i]
		e := old[place{s.keys.object(c.key), c.mod}]
		if c.key == "" || e == nil {
			continue
		}
		v, err := decodeVersion(c.key, s.revision(e.PrevKv.ModRevision), e.PrevKv.Value)
		if err != nil {
			return err
		}
		if c.old, err = s.item(v); err != nil {
			return err
		}
	}
	return nil
}

// reached is where the cache is, and when the store has changed last.
func (c *cache) reached() (current, last store.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state().Current, c.last
}

// damage is why nothing can be read: what is stored is not what was written.
func (c *cache) damage() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.damaged
}
