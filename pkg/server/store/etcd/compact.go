package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"example.com/cmctl/pkg/server/store"
)

// Compact gives up the states before at. See store.Store. What is no longer needed of the
// history is removed by Sweep.
func (s *Store) Compact(ctx context.Context, at store.Revision) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if at <= s.cache.gaveUp() {
		return nil
	}
	if err := s.reachOrAsk(ctx, at); err != nil {
		return err
	}
	var err error
	if s.opts.CompactCluster {
		s.catchUp(ctx, at)
		err = s.compactCluster(ctx, at)
	} else {
		err = s.note(ctx, at)
	}
	if err != nil {
		return err
	}
	s.cache.give(at)
	s.pins.Drop(at)
	return nil
}

// catchUp gives the watch that feeds the cache a moment to come to a revision: one that is
// behind what is compacted is cut off, and all watches with it.
func (s *Store) catchUp(ctx context.Context, at store.Revision) {
	soon, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	_ = s.hasten(soon, at) // where others alone have written since nothing comes, and nothing is missed
}

// CompactCluster compacts the whole cluster, for everybody on it. The states before at are
// gone then; what is kept of the history is for Compact to say.
func (s *Store) CompactCluster(ctx context.Context, at store.Revision) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	return s.compactCluster(ctx, at)
}

func (s *Store) compactCluster(ctx context.Context, at store.Revision) error {
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	_, err := s.client.Compact(bounded, s.mod(at))
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil // somebody else has come further
	}
	return s.readError(ctx, err)
}

// note writes down which states are given up, for all who have the store open. It is never
// lowered.
func (s *Store) note(ctx context.Context, at store.Revision) error {
	for {
		found, err := s.ask(ctx, s.keys.compacted())
		if err != nil {
			return err
		}
		var mod int64
		if len(found.Kvs) == 1 {
			if mod = found.Kvs[0].ModRevision; parseRevision(found.Kvs[0].Value) >= at {
				return nil
			}
		}
		bounded, cancel := s.bounded(ctx)
		r, err := s.client.Txn(bounded).If(clientv3.Compare(clientv3.ModRevision(s.keys.compacted()), "=", mod)).
			Then(clientv3.OpPut(s.keys.compacted(), decimal(at))).Else(clientv3.OpGet(s.keys.compacted())).Commit()
		cancel()
		if err != nil {
			return s.readError(ctx, err)
		}
		if r.Succeeded {
			return nil
		}
	}
}

const (
	sweepOps = 100 // deletions in one transaction; etcd takes 128 operations
	// voidTime is how long a transaction that is not to be made may still be under way, in a
	// member that stands still.
	voidTime = 24 * time.Hour
)

// Sweep removes what Compact has given up. It is for one process at a time, which Lead
// chooses; two of them do no harm.
func (s *Store) Sweep(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if s.limited {
		return nil // there is nothing beside the objects
	}
	compacted := s.cache.gaveUp()
	// First the others have to know, or they would take what is removed for what never was.
	if err := s.note(ctx, compacted); err != nil {
		return err
	}
	w := &sweeper{s: s, compacted: compacted}
	if err := w.bury(ctx); err != nil {
		return err
	}
	if err := w.trim(ctx); err != nil {
		return err
	}
	if err := w.forgetVoids(ctx); err != nil {
		return err
	}
	return w.flush(ctx)
}

// sweeper gathers what is to be removed.
type sweeper struct {
	s         *Store
	compacted store.Revision
	ops       []clientv3.Op
}

func (w *sweeper) remove(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		w.ops = append(w.ops, clientv3.OpDelete(key))
	}
	if len(w.ops) < sweepOps {
		return nil
	}
	return w.flush(ctx)
}

func (w *sweeper) flush(ctx context.Context) error {
	for len(w.ops) > 0 {
		n := min(len(w.ops), sweepOps)
		bounded, cancel := w.s.bounded(ctx)
		_, err := w.s.client.Txn(bounded).Then(w.ops[:n]...).Commit()
		cancel()
		if err != nil {
			return w.s.readError(ctx, err)
		}
		w.ops = w.ops[n:]
	}
	return nil
}

// grave is a deleted key of which something is kept.
type grave struct {
	version
	mod int64
}

// bury removes all there is of keys that have been deleted for long enough, or are too many.
func (w *sweeper) bury(ctx context.Context) error {
	s := w.s
	var graves []grave
	_, err := s.eachAt(ctx, s.keys.tombstones(), 0, func(kv *mvccpb.KeyValue) error {
		rev := s.revision(kv.ModRevision)
		if rev > w.compacted {
			return nil
		}
		v, err := decodeVersion(store.Key(strings.TrimPrefix(string(kv.Key), s.keys.tombstones())), rev, kv.Value)
		graves = append(graves, grave{v, kv.ModRevision})
		return err
	})
	if err != nil {
		return err
	}
	tooMany := len(graves) - s.opts.DeletedLimit
	cut := oldest(graves, tooMany)
	for _, g := range graves {
		if s.expired(g.Time) || g.mod <= cut {
			if err := w.buryOne(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// oldest is the revision of the last of the n that were deleted first.
func oldest(graves []grave, n int) int64 {
	if n <= 0 {
		return 0
	}
	mods := make([]int64, len(graves))
	for i, g := range graves {
		mods[i] = g.mod
	}
	slices.Sort(mods)
	return mods[n-1]
}

// buryOne removes a key, unless it was made anew.
func (w *sweeper) buryOne(ctx context.Context, g grave) error {
	s := w.s
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	history := s.keys.history(g.Key)
	value := s.keys.value(g.Key, "")
	_, err := s.client.Txn(bounded).If(clientv3.Compare(clientv3.ModRevision(s.keys.tombstone(g.Key)), "=", g.mod)).Then(
		clientv3.OpDelete(s.keys.tombstone(g.Key)),
		clientv3.OpDelete(history, clientv3.WithPrefix()),
		clientv3.OpDelete(value, clientv3.WithPrefix())).Commit()
	return s.readError(ctx, err)
}

// trim removes the versions that the history of a key has too many of.
func (w *sweeper) trim(ctx context.Context) error {
	s := w.s
	var key string
	var group []entry
	from, end := s.keys.histories(), clientv3.GetPrefixRangeEnd(s.keys.histories())
	for {
		page, err := s.ask(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(5*pageKeys))
		if err != nil {
			return err
		}
		for _, kv := range page.Kvs {
			object, name, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), s.keys.histories()), "\x00")
			if object != key {
				if err := w.trimOne(ctx, store.Key(key), group); err != nil {
					return err
				}
				key, group = object, group[:0]
			}
			group = append(group, entry{name, kv.ModRevision})
		}
		if !page.More || len(page.Kvs) == 0 {
			return w.trimOne(ctx, store.Key(key), group)
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// entry is a version in the history of a key.
type entry struct {
	name string
	mod  int64
}

func (w *sweeper) trimOne(ctx context.Context, key store.Key, group []entry) error {
	if len(group) <= w.s.opts.HistoryLimit {
		return nil
	}
	slices.SortFunc(group, func(a, b entry) int { return cmp.Compare(b.mod, a.mod) })
	walk := w.s.retention(w.compacted)
	walk.Expired = func(time.Time) bool { return false } // a deleted key is buried whole
	for i, e := range group {
		if walk.Keeps(store.Record{Revision: w.s.revision(e.mod)}) {
			continue
		}
		for _, old := range group[i:] {
			if err := w.remove(ctx, w.s.keys.history(key)+old.name, w.s.keys.value(key, old.name)); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// forgetVoids removes the marks of transactions that nobody can make any more.
func (w *sweeper) forgetVoids(ctx context.Context) error {
	s := w.s
	_, err := s.eachAt(ctx, s.keys.voids(), 0, func(kv *mvccpb.KeyValue) error {
		made, err := time.Parse(time.RFC3339, string(kv.Value))
		if err != nil || time.Since(made) > voidTime {
			return w.remove(ctx, string(kv.Key))
		}
		return nil
	})
	return err
}

// leaseSeconds is how long a process that was cut off stays the one that leads.
const leaseSeconds = 15

// Lead calls work while this process is the one of all on the store that is to do what one
// alone should. Its context ends when another may be. Lead returns when ctx ends.
func (s *Store) Lead(ctx context.Context, work func(context.Context)) {
	if s.limited {
		work(ctx) // kine has no elections, and cleans up by itself
		return
	}
	for ctx.Err() == nil && s.ctx.Err() == nil {
		if err := s.leadOnce(ctx, work); err != nil && ctx.Err() == nil && s.ctx.Err() == nil {
			s.log.Warn("store: which replica cleans up could not be found out; trying again", "error", err)
		}
		select {
		case <-time.After(lastPause):
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
	}
}

func (s *Store) leadOnce(ctx context.Context, work func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	session, err := concurrency.NewSession(s.client, concurrency.WithTTL(leaseSeconds), concurrency.WithContext(ctx))
	if err != nil {
		return err
	}
	defer s.resign(session)
	host, _ := os.Hostname() // it is for people alone
	if err := concurrency.NewElection(session, s.keys.election()).Campaign(ctx, host); err != nil {
		return err
	}
	s.log.Info("store: this replica cleans up what was given up")
	leading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-session.Done():
			stop()
		case <-leading.Done():
		}
	}()
	work(leading)
	if ctx.Err() == nil {
		return fmt.Errorf("the lease was lost: %w", store.ErrUnreachable)
	}
	return nil
}

// resign lets another lead at once, if etcd can be told.
func (s *Store) resign(session *concurrency.Session) {
	session.Orphan()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = s.client.Revoke(ctx, session.Lease())
}
