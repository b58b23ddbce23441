package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/retention"
)

// History returns the heads of the versions of a key that are still kept. See store.Store.
func (s *Store) History(ctx context.Context, key store.Key, limit int) ([]store.Record, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	if key.Check() != nil {
		return nil, store.ErrNotFound
	}
	kept, err := s.kept(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(kept.versions) == 0 {
		return nil, store.ErrNotFound
	}
	if limit > 0 && len(kept.versions) > limit {
		kept.versions = kept.versions[:limit]
	}
	heads := make([]store.Record, len(kept.versions))
	for i, v := range kept.versions {
		heads[i] = v.Record
	}
	s.tell(heads[0].Revision)
	return heads, nil
}

// past is what is kept of a key.
type past struct {
	versions  []version // newest first
	current   store.Revision
	compacted store.Revision
}

// kept reads the history of a key, and leaves out what is given up, whether it is removed
// yet or not.
func (s *Store) kept(ctx context.Context, key store.Key) (past, error) {
	if s.limited {
		return s.keptLimited(ctx, key)
	}
	r, err := attempt(ctx, s, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return s.client.Txn(ctx).Then(clientv3.OpGet(s.keys.compacted()),
			clientv3.OpGet(s.keys.history(key), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))).Commit()
	})
	if err != nil {
		return past{}, err
	}
	p := past{current: s.revision(r.Header.Revision), compacted: s.cache.gaveUp()}
	if given := r.Responses[0].GetResponseRange().Kvs; len(given) == 1 {
		p.compacted = max(p.compacted, parseRevision(given[0].Value))
	}
	walk := s.retention(p.compacted)
	for _, kv := range r.Responses[1].GetResponseRange().Kvs {
		v, err := decodeVersion(key, s.revision(kv.ModRevision), kv.Value)
		if err != nil {
			return past{}, err
		}
		if !walk.Keeps(v.Record) {
			break
		}
		p.versions = append(p.versions, v)
	}
	return p, nil
}

func (s *Store) retention(compacted store.Revision) *retention.Walk {
	return &retention.Walk{Compacted: compacted, Limit: s.opts.HistoryLimit, Expired: s.expired}
}

// expired tells whether a deleted key has had its time.
func (s *Store) expired(died time.Time) bool {
	return s.opts.DeletedRetention < 0 || time.Since(died) >= s.opts.DeletedRetention
}

// Version returns what the commit rev made of key. See store.Store.
func (s *Store) Version(ctx context.Context, key store.Key, rev store.Revision) (store.Record, error) {
	if err := s.begin(ctx); err != nil {
		return store.Record{}, err
	}
	defer s.end()
	if key.Check() != nil || rev < 1 {
		return store.Record{}, store.ErrNotFound
	}
	p, err := s.kept(ctx, key)
	if err != nil {
		return store.Record{}, err
	}
	if rev > p.current {
		return store.Record{}, store.ErrFuture
	}
	for _, v := range p.versions {
		if v.Revision == rev {
			rec, err := s.restOf(ctx, v, 0)
			if errors.Is(err, errSuperseded) {
				err = store.ErrCompacted // since it was listed
			}
			return rec, err
		}
	}
	if oldest := len(p.versions) - 1; rev <= p.compacted && (oldest < 0 || p.versions[oldest].Revision > rev) {
		return store.Record{}, store.ErrCompacted
	}
	return store.Record{}, store.ErrNotFound
}
