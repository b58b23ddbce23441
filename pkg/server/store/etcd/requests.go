package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
)

// pageKeys is how many keys are read at once.
const pageKeys = 1000

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
