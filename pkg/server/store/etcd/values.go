package etcd

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// values are those long values that were written or read of late.
type values struct {
	limit int // bytes

	mu    sync.Mutex // guards what follows
	used  int
	order list.List // of *held, the latest first
	at    map[spot]*list.Element
}

type spot struct {
	key store.Key
	rev store.Revision
}

type held struct {
	spot
	value []byte
}

func (v *values) add(key store.Key, rev store.Revision, value []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at == nil {
		v.at = map[spot]*list.Element{}
	}
	where := spot{key, rev}
	if v.at[where] != nil || len(value) > v.limit {
		return
	}
	v.at[where] = v.order.PushFront(&held{where, value})
	for v.used += len(value); v.used > v.limit; {
		oldest := v.order.Remove(v.order.Back()).(*held)
		delete(v.at, oldest.spot)
		v.used -= len(oldest.value)
	}
}

func (v *values) get(key store.Key, rev store.Revision) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.at[spot{key, rev}]
	if e == nil {
		return nil
	}
	v.order.MoveToFront(e)
	return e.Value.(*held).value
}

// errSuperseded: a version is no longer the newest, and nothing of it is left.
var errSuperseded = errors.New("this version is no longer kept")

// complete is the record of an item, with as much of its value as is needed.
func (s *Store) complete(ctx context.Context, it *index.Item, p store.Part) (store.Record, error) {
	if !it.Lacks(p) {
		return it.Record, nil
	}
	if value := s.values.get(it.Record.Key, it.Record.Revision); value != nil {
		rec := it.Record
		rec.Value = value
		return rec, nil
	}
	rec, err := s.fetch(ctx, it.Record.Key, it.Record.Revision)
	if err == nil {
		s.values.add(rec.Key, rec.Revision, rec.Value)
	}
	return rec, err
}

// fetch reads one version from etcd: it is the newest, or in the history, or not yet
// compacted.
func (s *Store) fetch(ctx context.Context, key store.Key, rev store.Revision) (store.Record, error) {
	mod := s.mod(rev)
	for _, place := range []struct {
		key string
		ops []clientv3.OpOption
		at  int64 // the state in which its value is looked for; 0: the newest
	}{
		{s.keys.object(key), nil, 0},
		{s.keys.history(key), []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithMinModRev(mod), clientv3.WithMaxModRev(mod)}, 0},
		{s.keys.object(key), []clientv3.OpOption{clientv3.WithRev(mod)}, mod},
	} {
		found, err := s.ask(ctx, place.key, place.ops...)
		if err != nil && !errors.Is(err, store.ErrCompacted) {
			return store.Record{}, err
		}
		if err != nil || len(found.Kvs) != 1 || found.Kvs[0].ModRevision != mod {
			continue
		}
		v, err := decodeVersion(key, rev, found.Kvs[0].Value)
		if err != nil {
			return store.Record{}, err
		}
		rec, err := s.restOf(ctx, v, place.at)
		if !errors.Is(err, errSuperseded) {
			return rec, err
		}
	}
	return store.Record{}, fmt.Errorf("%s at revision %d: %w", key, rev, errSuperseded)
}

// restOf completes a version, with its value as it was in the state at, 0: as it is now.
func (s *Store) restOf(ctx context.Context, v version, at int64) (store.Record, error) {
	if !v.Apart {
		return v.whole()
	}
	var ops []clientv3.OpOption
	if at != 0 {
		ops = append(ops, clientv3.WithRev(at))
	}
	found, err := s.ask(ctx, s.keys.value(v.Key, v.name), ops...)
	if errors.Is(err, store.ErrCompacted) || err == nil && len(found.Kvs) == 0 {
		return store.Record{}, errSuperseded
	}
	if err != nil {
		return store.Record{}, err
	}
	return v.complete(found.Kvs[0].Value)
}
