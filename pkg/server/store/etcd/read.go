package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// Get returns the key's version in the state at. See store.Store.
func (s *Store) Get(ctx context.Context, key store.Key, at store.Revision) (store.Record, error) {
	if err := s.begin(ctx); err != nil {
		return store.Record{}, err
	}
	defer s.end()
	if key.Check() != nil {
		return store.Record{}, store.ErrNotFound
	}
	if err := s.needed(at); err != nil {
		return store.Record{}, err
	}
	rec, err := s.get(ctx, key, at)
	if err == nil {
		s.tell(rec.Revision)
	}
	return rec, err
}

func (s *Store) get(ctx context.Context, key store.Key, at store.Revision) (store.Record, error) {
	if at > 0 {
		return s.getAt(ctx, key, at)
	}
	switch err := s.arrive(ctx, at); {
	case errors.Is(err, errBehind):
		return s.getDirect(ctx, key)
	case err != nil:
		return store.Record{}, err
	}
	return s.getCached(ctx, key)
}

// needed is why a read at a point can't be answered now: all but those at Any need the
// cluster.
func (s *Store) needed(at store.Revision) error {
	err := s.health.reachable()
	if at == store.Any && !errors.Is(err, store.ErrFailed) {
		return nil
	}
	return err
}

// errBehind: the cache can't answer, and etcd itself must be asked.
var errBehind = errors.New("the index in memory is behind the cluster")

// arrive waits until the cache may answer a read: at 0 one of the present, at Any one of
// what was told already. It is errBehind if that takes long.
func (s *Store) arrive(ctx context.Context, at store.Revision) error {
	if err := s.cache.damage(); err != nil {
		return err
	}
	if at == store.Any {
		return s.reachSoon(ctx, store.Revision(s.told.Load()))
	}
	if s.mode.isDirect() {
		return errBehind
	}
	rev, err := s.fresh.revision(ctx)
	if err != nil {
		return err
	}
	return s.reachSoon(ctx, rev)
}

// reachSoon waits until the cache has come to a revision, but no longer than for a first
// attempt, and not at all where it can't be expected to.
func (s *Store) reachSoon(ctx context.Context, rev store.Revision) error {
	if rev <= s.cache.level.get() {
		return nil
	}
	if s.mode.isDirect() || s.cache.failure() != nil {
		return errBehind
	}
	soon, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	if s.hasten(soon, rev) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.cache.doubt()
	return errBehind
}

func (s *Store) getCached(ctx context.Context, key store.Key) (store.Record, error) {
	for {
		it := index.Lookup(s.cache.state().Tree, key)
		if it == nil {
			return store.Record{}, store.ErrNotFound
		}
		rec, err := s.complete(ctx, it, store.Whole)
		if errors.Is(err, errSuperseded) {
			if err = s.reach(ctx, it.Record.Revision+1); err == nil {
				continue
			}
		}
		return rec, err
	}
}

// getDirect asks etcd for the object itself.
func (s *Store) getDirect(ctx context.Context, key store.Key) (store.Record, error) {
	for {
		found, err := s.ask(ctx, s.keys.object(key))
		if err != nil {
			return store.Record{}, err
		}
		if len(found.Kvs) == 0 {
			return store.Record{}, store.ErrNotFound
		}
		rec, err := s.decoded(ctx, key, found.Kvs[0], 0)
		if !errors.Is(err, errSuperseded) {
			return rec, err
		}
	}
}

// decoded is the whole record that lies in o.
func (s *Store) decoded(ctx context.Context, key store.Key, kv *mvccpb.KeyValue, at int64) (store.Record, error) {
	rev := s.revision(kv.ModRevision)
	v, err := decodeVersion(key, rev, kv.Value)
	if err != nil {
		return store.Record{}, err
	}
	if value := s.values.get(key, rev); value != nil {
		rec := v.Record
		rec.Value = value
		return rec, nil
	}
	rec, err := s.restOf(ctx, v, at)
	if err == nil && v.Apart {
		s.values.add(key, rev, rec.Value)
	}
	return rec, err
}

func (s *Store) getAt(ctx context.Context, key store.Key, at store.Revision) (store.Record, error) {
	if at < s.cache.state().Compacted {
		return store.Record{}, store.ErrCompacted
	}
	found, err := s.ask(ctx, s.keys.object(key), clientv3.WithRev(s.mod(at)))
	if err != nil {
		return store.Record{}, err
	}
	if len(found.Kvs) == 0 {
		return store.Record{}, store.ErrNotFound
	}
	rec, err := s.decoded(ctx, key, found.Kvs[0], s.mod(at))
	if errors.Is(err, errSuperseded) {
		err = store.ErrCompacted
	}
	return rec, err
}

// List returns the live records of one state. See store.Store.
func (s *Store) List(ctx context.Context, o store.ListOptions) (store.Page, error) {
	if err := s.begin(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.end()
	page, err := s.list(ctx, o)
	if err == nil {
		s.tell(page.Revision)
	}
	return page, err
}

func (s *Store) list(ctx context.Context, o store.ListOptions) (store.Page, error) {
	if err := s.needed(o.At); err != nil {
		return store.Page{}, err
	}
	if o.At > 0 {
		return s.listAt(ctx, o)
	}
	switch err := s.arrive(ctx, o.At); {
	case errors.Is(err, errBehind):
		return s.listPresent(ctx, o)
	case err != nil:
		return store.Page{}, err
	}
	for {
		v := s.cache.state()
		page, err := s.listView(ctx, &v, o)
		if errors.Is(err, errSuperseded) {
			if err = s.reach(ctx, v.Current+1); err == nil {
				continue
			}
		}
		return page, err
	}
}

// listAt lists a state that is past, as it is remembered, or as etcd remembers it.
func (s *Store) listAt(ctx context.Context, o store.ListOptions) (store.Page, error) {
	v := s.cache.state()
	if o.At < v.Compacted {
		return store.Page{}, store.ErrCompacted
	}
	pinned := s.pins.Get(o.At)
	if o.At == v.Current {
		pinned = &v
	}
	if pinned != nil {
		page, err := s.listView(ctx, pinned, o)
		if !errors.Is(err, errSuperseded) {
			return page, err
		}
	}
	page, err := s.listDirect(ctx, o)
	if errors.Is(err, errSuperseded) {
		err = store.ErrCompacted
	}
	return page, err
}

// readers is how many long values are read at once for a list.
const readers = 8

func (s *Store) listView(ctx context.Context, v *index.State, o store.ListOptions) (store.Page, error) {
	items, remaining := v.Scan(o.Prefix, o.After, o.Limit)
	page := store.Page{Revision: v.Current, Remaining: remaining, Records: make([]store.Record, len(items))}
	var reading errgroup.Group
	reading.SetLimit(readers)
	for i, it := range items {
		if !it.Lacks(o.Part) {
			page.Records[i] = it.Record
			continue
		}
		reading.Go(func() (err error) {
			page.Records[i], err = s.complete(ctx, it, o.Part)
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return store.Page{}, err
	}
	if remaining > 0 {
		s.pins.Add(v)
	}
	return page, nil
}

// listPresent asks etcd for what is there now. A state that is compacted meanwhile is no
// longer the present one.
func (s *Store) listPresent(ctx context.Context, o store.ListOptions) (store.Page, error) {
	for {
		o.At = 0
		page, err := s.listDirect(ctx, o)
		if !errors.Is(err, errSuperseded) && !errors.Is(err, store.ErrCompacted) {
			return page, err
		}
	}
}

// listDirect asks etcd for the objects themselves.
func (s *Store) listDirect(ctx context.Context, o store.ListOptions) (store.Page, error) {
	page := store.Page{Records: []store.Record{}}
	from := s.keys.object(o.Prefix)
	end := clientv3.GetPrefixRangeEnd(from)
	if o.After != "" {
		from = max(from, s.keys.object(o.After)+"\x00")
	}
	if from >= end {
		from = end + "\x00"
		end = from + "\x00" // nothing, but the revision
	}
	for {
		ops := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(pageKeys)}
		if left := o.Limit - len(page.Records); o.Limit > 0 {
			ops[1] = clientv3.WithLimit(int64(min(left, pageKeys)))
		}
		if o.At > 0 {
			ops = append(ops, clientv3.WithRev(s.mod(o.At)))
		}
		found, err := s.ask(ctx, from, ops...)
		if err != nil {
			return store.Page{}, err
		}
		if o.At <= 0 {
			o.At = s.revision(found.Header.Revision)
		}
		page.Revision = o.At
		if err := s.addAll(ctx, &page, found.Kvs, o); err != nil {
			return store.Page{}, err
		}
		if !found.More || len(found.Kvs) == 0 || o.Limit > 0 && len(page.Records) == o.Limit {
			page.Remaining = int(found.Count) - len(found.Kvs)
			return page, nil
		}
		from = string(found.Kvs[len(found.Kvs)-1].Key) + "\x00"
	}
}

// addAll adds the records that lie in o to a page, with as much as is needed.
func (s *Store) addAll(ctx context.Context, page *store.Page, kvs []*mvccpb.KeyValue, o store.ListOptions) error {
	begin := len(page.Records)
	page.Records = append(page.Records, make([]store.Record, len(kvs))...)
	var reading errgroup.Group
	reading.SetLimit(readers)
	for i, kv := range kvs {
		key := s.keys.keyOf(kv)
		v, err := decodeVersion(key, s.revision(kv.ModRevision), kv.Value)
		if err != nil {
			return err
		}
		where := &page.Records[begin+i]
		switch {
		case v.Apart && o.Part.Suffices(v.Brief):
			*where = v.Alone(v.Size)
		case v.Apart:
			reading.Go(func() (err error) {
				*where, err = s.decoded(ctx, key, kv, s.mod(page.Revision))
				return err
			})
		default:
			if *where, err = v.whole(); err != nil {
				return err
			}
		}
	}
	return reading.Wait()
}

// Reach waits until reads at Any see rev. See store.Store.
func (s *Store) Reach(ctx context.Context, rev store.Revision) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	return s.reachOrAsk(ctx, rev)
}

// reachOrAsk waits for the cache to have a revision; where that takes long, reads at Any ask
// etcd from then on.
func (s *Store) reachOrAsk(ctx context.Context, rev store.Revision) error {
	if rev <= s.cache.level.get() {
		return nil
	}
	current, err := s.fresh.revision(ctx)
	if err != nil {
		return err
	}
	if rev > current {
		return store.ErrFuture
	}
	if err := s.reachSoon(ctx, rev); err != nil && !errors.Is(err, errBehind) {
		return err
	}
	s.tell(rev)
	return nil
}

// reach waits until the cache has come to a revision that there is, within the bound.
func (s *Store) reach(ctx context.Context, rev store.Revision) error {
	if rev <= s.cache.level.get() {
		return nil
	}
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	if err := s.hasten(bounded, rev); err != nil {
		return s.readError(ctx, fmt.Errorf("its changes don't come through: %w", err))
	}
	return nil
}
