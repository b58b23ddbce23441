package etcd

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// kine knows transactions on one key, in three forms. With it a write is still compared with
// the version that it was made from; what would have to be true or written besides is
// looked at before, and written one after the other. There is no history but what kine
// keeps for a while, and nobody tells who deleted something.

func (s *Store) commitLimited(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if err := s.checkGuards(ctx, txn.Guards); err != nil {
		return 0, err
	}
	for _, l := range txn.Limits {
		if err := s.awaitCount(ctx, l.Collection); err != nil {
			return 0, err
		}
		if used, added, _ := s.growth(l.Collection, txn.Writes); !l.Allows(used, added) {
			return 0, &store.LimitError{Limit: l, Used: used, Added: added}
		}
	}
	var rev store.Revision
	// What comes along with a write is there before it: a namespace before its object.
	for _, rec := range slices.Backward(txn.Writes) {
		var err error
		if rev, err = s.writeOne(ctx, rec.Kept(), txn.Guards); err != nil {
			return 0, err
		}
	}
	return rev, nil
}

// writeOne writes one key on what its guard says, or on what is there.
func (s *Store) writeOne(ctx context.Context, rec store.Record, guards []store.Guard) (store.Revision, error) {
	at := slices.IndexFunc(guards, func(g store.Guard) bool { return g.Key == rec.Key })
	for {
		g := store.Guard{Key: rec.Key}
		if at >= 0 {
			g = guards[at]
		} else if found, err := s.ask(ctx, s.keys.object(rec.Key)); err != nil {
			return 0, err
		} else if len(found.Kvs) == 1 {
			g.Revision = s.revision(found.Kvs[0].ModRevision)
		}
		rev, err := s.swapOne(rec, g)
		var moved *store.GuardError
		if at < 0 && errors.As(err, &moved) && ctx.Err() == nil {
			continue
		}
		return rev, err
	}
}

func (s *Store) swapOne(rec store.Record, g store.Guard) (store.Revision, error) {
	if rec.Deleted && g.Revision == 0 {
		return s.cache.state().Current, nil // there is nothing to delete
	}
	key := s.keys.object(rec.Key)
	row, _ := record.Encode(&rec, record.MaxValue)
	var mod int64
	if g.Revision != 0 {
		mod = s.mod(g.Revision)
	}
	write := clientv3.OpPut(key, newName()+string(row))
	if rec.Deleted {
		write = clientv3.OpDelete(key)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.opts.Timeout)
	defer cancel()
	r, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", mod)).Then(write).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		if refused := refusal(err); refused != nil {
			return 0, refused
		}
		return 0, errors.Join(store.ErrUnknown, err)
	}
	if r.Succeeded {
		return s.revision(r.Header.Revision), nil
	}
	var current store.Revision
	if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) == 1 {
		current = s.revision(kvs[0].ModRevision)
	}
	s.tell(current)
	return 0, &store.GuardError{Guard: g, Current: current}
}

// keptLimited walks back from the newest version for as long as old states can be read.
func (s *Store) keptLimited(ctx context.Context, key store.Key) (past, error) {
	p := past{compacted: s.cache.state().Compacted}
	var ops []clientv3.OpOption
	for {
		found, err := s.ask(ctx, s.keys.object(key), ops...)
		if errors.Is(err, store.ErrCompacted) {
			return p, nil
		}
		if err != nil {
			return past{}, err
		}
		p.current = max(p.current, s.revision(found.Header.Revision))
		if len(found.Kvs) == 0 {
			return p, nil
		}
		kv := found.Kvs[0]
		v, err := decodeVersion(key, s.revision(kv.ModRevision), kv.Value)
		if err != nil {
			return past{}, err
		}
		p.versions = append(p.versions, v)
		if kv.ModRevision == kv.CreateRevision || len(p.versions) == s.opts.HistoryLimit {
			return p, nil
		}
		ops = []clientv3.OpOption{clientv3.WithRev(kv.ModRevision - 1)}
	}
}
