package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
	"example.com/cmctl/pkg/server/store/record"
)

// kine knows transactions on one key, in three forms. With it a write is still compared with
// the version that it was made from; what would have to be true or written besides is
// looked at before, and written one after the other. There is no history but what kine
// keeps for a while, and nobody tells who deleted something.

func (s *Store) commitLimited(ctx context.Context, txn store.Txn) (store.Revision, error) {
	leave, err := s.turns.enter(ctx, txn.Limits) // which keeps limits within this process alone
	if err != nil {
		return 0, err
	}
	defer leave()
	if err := s.checkGuards(ctx, txn.Guards); err != nil {
		return 0, err
	}
	if err := s.checkLimits(ctx, txn); err != nil {
		return 0, err
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

func (s *Store) checkLimits(ctx context.Context, txn store.Txn) error {
	for _, l := range txn.Limits {
		tree, err := s.collection(ctx, l.Collection)
		if err != nil {
			return err
		}
		var usage index.Usage
		usage.Count(tree)
		if used, added := usage.Of(l.Collection), growth(tree, l.Collection, txn.Writes); !l.Allows(used, added) {
			return &store.LimitError{Limit: l, Used: used, Added: added}
		}
	}
	return nil
}

// collection asks for what a collection holds: there is no key that each commit moves along.
func (s *Store) collection(ctx context.Context, c store.Collection) (*index.Tree, error) {
	tree := index.NewTree()
	_, err := s.eachAt(ctx, s.keys.object(store.Key(c)), 0, func(kv *mvccpb.KeyValue) error {
		v, err := decodeVersion(s.keys.keyOf(kv), s.revision(kv.ModRevision), kv.Value)
		if err != nil || store.CollectionOf(v.Key) != c {
			return err
		}
		tree.Set(index.NewLarge(v.Head, 0))
		return nil
	})
	return tree, err
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
	name := newName()
	write := clientv3.OpPut(key, name+string(row))
	if rec.Deleted {
		write = clientv3.OpDelete(key)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.opts.Timeout)
	defer cancel()
	r, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", mod)).Then(write).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return s.settleOne(rec.Key, name, err)
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

// settleOne finds out whether a write is there whose answer is lost. That it is not says
// nothing: it may still be under way, or others have written since.
func (s *Store) settleOne(key store.Key, name string, lost error) (store.Revision, error) {
	if neverSent(lost) {
		return 0, fmt.Errorf("%w: %w", store.ErrUnreachable, lost)
	}
	if refused := refusal(lost); refused != nil {
		return 0, refused
	}
	found, err := s.ask(context.WithoutCancel(s.ctx), s.keys.object(key))
	if err == nil && len(found.Kvs) == 1 && strings.HasPrefix(string(found.Kvs[0].Value), name) {
		return s.revision(found.Kvs[0].ModRevision), nil
	}
	return 0, fmt.Errorf("%w: %w", store.ErrUnknown, lost)
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
