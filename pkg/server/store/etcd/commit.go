package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
	"example.com/cmctl/pkg/server/store/record"
)

// Commit makes the writes if every guard holds. See store.Store.
func (s *Store) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if err := txn.Check(); err != nil {
		return 0, err
	}
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	if err := s.health.reachable(); err != nil {
		return 0, err
	}
	var rev store.Revision
	var err error
	switch {
	case s.limited:
		rev, err = s.commitLimited(ctx, txn)
	case len(txn.Limits) > 0:
		rev, err = s.commitWithin(ctx, txn)
	default:
		rev, err = s.commitOnce(func() (*transaction, error) { return s.transactionOf(txn), nil })
	}
	if err != nil {
		return 0, err
	}
	s.tell(rev)
	return rev, nil
}

// transaction is a Txn as one of etcd.
type transaction struct {
	name     string
	witness  string // a key that it writes, and nothing else does
	guards   []store.Guard
	compares []clientv3.Cmp
	writes   []clientv3.Op
	failed   []clientv3.Op // asks for what the guards are about
}

func (s *Store) transactionOf(txn store.Txn) *transaction {
	t := &transaction{name: newName(), guards: txn.Guards}
	t.compares = append(t.compares, clientv3.Compare(clientv3.CreateRevision(s.keys.void(t.name)), "=", 0))
	for _, g := range txn.Guards {
		t.compares = append(t.compares, s.compare(g))
		t.failed = append(t.failed, clientv3.OpGet(s.keys.object(g.Key), clientv3.WithKeysOnly()))
	}
	moved := map[store.Collection]bool{}
	for _, rec := range txn.Writes {
		t.write(s.keys, rec.Kept(), guardsAgainst(txn.Guards, rec.Key))
		if c := store.CollectionOf(rec.Key); !moved[c] {
			moved[c] = true
			t.writes = append(t.writes, clientv3.OpPut(s.keys.count(c), ""))
		}
	}
	t.witness = s.keys.history(txn.Writes[0].Key) + t.name
	return t
}

// compare is a guard in etcd's words.
func (s *Store) compare(g store.Guard) clientv3.Cmp {
	if g.Revision == 0 {
		return clientv3.Compare(clientv3.CreateRevision(s.keys.object(g.Key)), "=", 0)
	}
	return clientv3.Compare(clientv3.ModRevision(s.keys.object(g.Key)), "=", s.mod(g.Revision))
}

// guardsAgainst tells that a key is live before the transaction: it has no tombstone.
func guardsAgainst(guards []store.Guard, key store.Key) bool {
	for _, g := range guards {
		if g.Key == key {
			return g.Revision != 0
		}
	}
	return false
}

func (t *transaction) write(l layout, rec store.Record, live bool) {
	row, rest := record.Encode(&rec, apartAbove)
	data := t.name + string(row)
	if rec.Deleted {
		t.writes = append(t.writes, clientv3.OpDelete(l.object(rec.Key)), clientv3.OpPut(l.tombstone(rec.Key), data))
	} else {
		t.writes = append(t.writes, clientv3.OpPut(l.object(rec.Key), data))
		if !live {
			t.writes = append(t.writes, clientv3.OpDelete(l.tombstone(rec.Key)))
		}
	}
	t.writes = append(t.writes, clientv3.OpPut(l.history(rec.Key)+t.name, data))
	if rest != nil {
		t.writes = append(t.writes, clientv3.OpPut(l.value(rec.Key, t.name), string(encodeRest(rest))))
	}
}

// commitOnce makes a transaction, which build makes anew for each attempt. Once one is on its
// way its outcome is waited for, whatever becomes of its caller, for as long as the bound
// allows, and never for twice as long.
func (s *Store) commitOnce(build func() (*transaction, error)) (store.Revision, error) {
	for end := time.Now().Add(s.opts.Timeout * 2 / attempts); ; {
		t, err := build()
		if err != nil {
			return 0, err
		}
		rev, err := s.send(t)
		if !errors.Is(err, errNotMade) || time.Now().After(end) {
			return rev, err
		}
		s.members.look(s.ctx, s) // so that it doesn't go the same way
	}
}

// errNotMade: the answer of a transaction was lost, and it certainly is not made, nor will be.
var errNotMade = fmt.Errorf("%w: no answer came, and nothing was written", store.ErrUnreachable)

// send sends a transaction once.
func (s *Store) send(t *transaction) (store.Revision, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.opts.Timeout/attempts)
	defer cancel()
	r, err := s.client.Txn(ctx).If(t.compares...).Then(t.writes...).Else(t.failed...).Commit()
	switch {
	case err == nil && r.Succeeded:
		s.health.wrote()
		return s.revision(r.Header.Revision), nil
	case err == nil:
		return 0, s.guardError(t, r)
	case neverSent(err):
		return 0, fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	if refused := refusal(err); refused != nil {
		return 0, refused
	}
	return s.settle(t, err)
}

// errRaced: the guards held, and what is compared besides did not.
var errRaced = errors.New("another transaction came first")

// guardError is the first guard that did not hold.
func (s *Store) guardError(t *transaction, r *clientv3.TxnResponse) error {
	for i, g := range t.guards {
		var current store.Revision
		if kvs := r.Responses[i].GetResponseRange().Kvs; len(kvs) == 1 {
			current = s.revision(kvs[0].ModRevision)
		}
		if current != g.Revision {
			s.tell(current)
			return &store.GuardError{Guard: g, Current: current}
		}
	}
	return errRaced
}

// settle finds out what became of a transaction whose answer is lost, or says too little,
// and keeps it from being made where it was not.
func (s *Store) settle(t *transaction, lost error) (store.Revision, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.opts.Timeout*2/attempts)
	defer cancel()
	for {
		rev, err := s.settleOnce(ctx, t, lost)
		if err == nil || errors.Is(err, errNotMade) || errors.Is(err, store.ErrFull) {
			return rev, err
		}
		select {
		case <-time.After(firstPause):
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", store.ErrUnknown, lost)
		}
	}
}

func (s *Store) settleOnce(ctx context.Context, t *transaction, lost error) (store.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout/attempts)
	defer cancel()
	if errors.Is(lost, rpctypes.ErrNoSpace) {
		return s.settleFull(ctx, t, lost)
	}
	r, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(t.witness), "=", 0)).
		Then(clientv3.OpPut(s.keys.void(t.name), time.Now().UTC().Format(time.RFC3339))).
		Else(clientv3.OpGet(t.witness, clientv3.WithKeysOnly())).Commit()
	switch {
	case err != nil:
		return 0, err
	case r.Succeeded:
		return 0, fmt.Errorf("%w: %w", errNotMade, lost)
	}
	return s.revision(r.Responses[0].GetResponseRange().Kvs[0].ModRevision), nil
}

// settleFull finds out what became of a transaction which etcd says it had no space for.
// Where the space ends while several are under way it writes, and says so all the same. With
// that answer it is decided: nothing of it is under way any more.
func (s *Store) settleFull(ctx context.Context, t *transaction, lost error) (store.Revision, error) {
	found, err := s.client.Get(ctx, t.witness, clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	if len(found.Kvs) == 1 {
		return s.revision(found.Kvs[0].ModRevision), nil
	}
	full := fmt.Errorf("%w: %w", store.ErrClusterFull, lost)
	s.health.filled(full)
	return 0, full
}

// commitWithin makes a transaction if the limits allow it. What the collections hold is
// compared by when they were last moved, which each commit to them does. Those of this
// process that share a collection queue up, since of several at once one alone can be first.
func (s *Store) commitWithin(ctx context.Context, txn store.Txn) (store.Revision, error) {
	leave, err := s.turns.enter(ctx, txn.Limits)
	if err != nil {
		return 0, err
	}
	defer leave()
	certain := false // what is compared is what the cluster has
	for {
		rev, err := s.commitOnce(func() (*transaction, error) { return s.withinLimits(ctx, txn, certain) })
		var over *store.LimitError
		switch {
		case errors.Is(err, errRaced), errors.As(err, &over) && !certain:
			certain = true
		default:
			return rev, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// withinLimits is the transaction with all that must be compared so that the limits hold, or
// says which one doesn't. Unless that is certain the cache may be behind.
func (s *Store) withinLimits(ctx context.Context, txn store.Txn, certain bool) (*transaction, error) {
	t := s.transactionOf(txn)
	for _, l := range txn.Limits {
		if certain {
			if err := s.awaitCount(ctx, l.Collection); err != nil {
				return nil, err
			}
		}
		used, added, moved := s.wouldHold(l.Collection, txn.Writes)
		if !l.Allows(used, added) {
			return nil, s.overLimit(ctx, txn.Guards, &store.LimitError{Limit: l, Used: used, Added: added})
		}
		t.compares = append(t.compares, clientv3.Compare(clientv3.ModRevision(s.keys.count(l.Collection)), "=", moved))
	}
	return t, nil
}

// overLimit is the error of a limit that doesn't hold, unless a guard doesn't either: those
// come first.
func (s *Store) overLimit(ctx context.Context, guards []store.Guard, over *store.LimitError) error {
	if err := s.checkGuards(ctx, guards); err != nil {
		return err
	}
	return over
}

// wouldHold is what a collection holds, what it would get besides, and when it was moved: all
// of one state.
func (s *Store) wouldHold(of store.Collection, writes []store.Record) (used, added store.Usage, moved int64) {
	c := &s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usage.Of(of), growth(c.state().Tree, of, writes), c.counts[of]
}

// growth is what a collection gets besides by some writes.
func growth(tree *index.Tree, of store.Collection, writes []store.Record) (added store.Usage) {
	for i := range writes {
		if rec := &writes[i]; store.CollectionOf(rec.Key) == of {
			added = added.Plus(index.Growth(rec, index.Lookup(tree, rec.Key)))
		}
	}
	return added
}

// checkGuards asks the cluster whether guards hold.
func (s *Store) checkGuards(ctx context.Context, guards []store.Guard) error {
	for _, g := range guards {
		found, err := s.ask(ctx, s.keys.object(g.Key), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		var current store.Revision
		if len(found.Kvs) == 1 {
			current = s.revision(found.Kvs[0].ModRevision)
		}
		if current != g.Revision {
			s.tell(current)
			return &store.GuardError{Guard: g, Current: current}
		}
	}
	return nil
}

// awaitCount waits until the cache knows all that was committed to a collection.
func (s *Store) awaitCount(ctx context.Context, c store.Collection) error {
	found, err := s.ask(ctx, s.keys.count(c), clientv3.WithKeysOnly())
	if err != nil || len(found.Kvs) == 0 {
		return err
	}
	return s.reach(ctx, s.revision(found.Kvs[0].ModRevision))
}

// Usage returns what a collection holds. See store.Store.
func (s *Store) Usage(ctx context.Context, c store.Collection) (store.Usage, error) {
	if err := s.begin(ctx); err != nil {
		return store.Usage{}, err
	}
	defer s.end()
	if s.limited {
		tree, err := s.collection(ctx, c)
		if err != nil {
			return store.Usage{}, err
		}
		var usage index.Usage
		usage.Count(tree)
		return usage.Of(c), nil
	}
	if err := s.awaitCount(ctx, c); err != nil {
		return store.Usage{}, err
	}
	used := s.cache.used(c)
	return used, nil
}
