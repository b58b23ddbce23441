package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
	"example.com/cmctl/pkg/server/store/record"
)

const (
	maxBatch      = 1024    // transactions that one sync may carry
	maxBatchBytes = 8 << 20 // and their size, below Pebble's bound for a memtable
)

// prepared is a write as Commit hands it over: copied, checked and encoded.
type prepared struct {
	rec     store.Record
	encoded []byte
	apart   []byte // what is not in encoded of the value; nil: all is
}

// request is a transaction on its way. Whoever moves state from waiting decides:
// the committer takes it, or its caller gives it up.
type request struct {
	guards []store.Guard
	limits []store.Limit
	writes []prepared
	size   int
	state  atomic.Int32
	done   chan result // one result, sent by the committer; has room for it
}

const (
	waiting = iota
	taken
	abandoned
)

type result struct {
	rev store.Revision
	err error
}

// Commit makes the writes if every guard holds. See store.Store.
func (s *Store) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	r, err := s.prepare(txn)
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if s.isClosing() {
		return 0, store.ErrClosed
	}
	if err := s.hindrance(); err != nil {
		return 0, err
	}
	select {
	case s.queue <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-s.closing:
		return 0, store.ErrClosed
	case <-s.failed:
		return 0, s.failureErr()
	}
	select {
	case res := <-r.done:
		return res.rev, res.err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return 0, ctx.Err()
		}
	case <-s.failed:
		return s.outcomeAfterFailure(r)
	case <-s.closing:
		// The committer may have left before it saw the request.
		if r.state.CompareAndSwap(waiting, abandoned) {
			return 0, store.ErrClosed
		}
	}
	return s.outcome(ctx, r)
}

// outcome waits for what became of a request that is being written, which is near
// unless the disk hangs.
func (s *Store) outcome(ctx context.Context, r *request) (store.Revision, error) {
	late := time.NewTimer(s.opts.outcomeWait)
	defer late.Stop()
	select {
	case res := <-r.done:
		return res.rev, res.err
	case <-s.failed:
		return s.outcomeAfterFailure(r)
	case <-late.C:
		return 0, fmt.Errorf("%w: %w", store.ErrUnknown, cmp.Or(ctx.Err(), store.ErrClosed))
	}
}

// outcomeAfterFailure prefers the result, if there was one before the failure.
func (s *Store) outcomeAfterFailure(r *request) (store.Revision, error) {
	select {
	case res := <-r.done:
		return res.rev, res.err
	default:
		r.state.CompareAndSwap(waiting, abandoned)
		return 0, s.failureErr()
	}
}

// prepare checks what no caller may get wrong and does all the work that needs no
// state, so that the committer doesn't have to.
func (s *Store) prepare(txn store.Txn) (*request, error) {
	if err := txn.Check(); err != nil {
		return nil, err
	}
	r := &request{guards: txn.Guards, limits: txn.Limits, done: make(chan result, 1), writes: make([]prepared, 0, len(txn.Writes))}
	for _, rec := range txn.Writes {
		rec = rec.Kept()
		w := prepared{rec: rec}
		w.encoded, w.apart = record.Encode(&w.rec, s.opts.apartAbove)
		r.size += len(w.encoded) + 2*len(rec.Key)
		if w.apart != nil {
			r.size += len(w.apart) + len(rec.Key)
		}
		r.writes = append(r.writes, w)
	}
	return r, nil
}

// commitLoop is the committer. All that is written to Pebble once the store is
// open is written here, and always synced, so that a failure is met by the one
// goroutine that acts on it.
func (s *Store) commitLoop() {
	c := committer{s: s, view: *s.view.Load()}
	c.view.Tree = c.view.Tree.Copy()
	for {
		select {
		case <-s.closing:
			return
		case r := <-s.queue:
			c.take(r)
		case m := <-s.maint:
			c.takeMaintenance(m)
		}
		c.gather()
		c.flush()
		if s.failureErr() != nil {
			return
		}
	}
}

// committer builds batches. Its view runs ahead of the published one by the batch
// in the making.
type committer struct {
	s       *Store
	view    index.State
	batch   *pebble.Batch
	taken   int
	bytes   int
	room    level // when this batch was begun, with why it is not roomy
	noRoom  error
	replies []reply
	changes []change
	maint   []*maintenance
}

// reply waits until the batch is durable: a refusal too names a revision, which
// nobody may see before.
type reply struct {
	r *request
	result
}

// change is what an event is made of, if anybody watches.
type change struct {
	rec store.Record
	old *index.Item // nil if the key was absent
}

// gather takes what else waits, without waiting for it.
func (c *committer) gather() {
	for c.taken < maxBatch && c.bytes < maxBatchBytes {
		select {
		case r := <-c.s.queue:
			c.take(r)
		case m := <-c.s.maint:
			c.takeMaintenance(m)
		default:
			return
		}
	}
}

func (c *committer) take(r *request) {
	if !r.state.CompareAndSwap(waiting, taken) {
		return
	}
	if c.taken++; c.taken == 1 {
		c.room, c.noRoom = c.s.room.look()
	}
	if !c.room.admits(r) {
		c.replies = append(c.replies, reply{r, result{err: c.noRoom}})
		return
	}
	err := c.checkGuards(r.guards)
	if err == nil {
		err = c.checkLimits(r)
	}
	if err != nil {
		c.replies = append(c.replies, reply{r, result{err: err}})
		return
	}
	rev := c.view.Current + 1
	c.view.Current = rev
	c.bytes += r.size
	b := c.writable()
	for i := range r.writes {
		w := &r.writes[i]
		w.rec.Revision = rev
		err = errors.Join(err, b.Set(recordKey(w.rec.Key, rev), w.encoded, nil))
		if w.apart != nil {
			err = errors.Join(err, b.Set(valueKey(w.rec.Key, rev), w.apart, nil))
		}
		c.changes = append(c.changes, change{rec: w.rec, old: c.apply(w.rec)})
	}
	err = errors.Join(err, b.Set(revisionKey(rev), appendRevisionKeys(nil, r.writes), nil))
	if err != nil {
		c.s.fail(err)
	}
	c.replies = append(c.replies, reply{r, result{rev: rev}})
}

func (c *committer) checkGuards(guards []store.Guard) error {
	for _, g := range guards {
		var current store.Revision
		if it := index.Lookup(c.view.Tree, g.Key); it != nil {
			current = it.Record.Revision
		}
		if current != g.Revision {
			return &store.GuardError{Guard: g, Current: current}
		}
	}
	return nil
}

// apply changes the committer's own tree and returns what was there.
func (c *committer) apply(rec store.Record) (old *index.Item) {
	if rec.Deleted {
		old, _ = c.view.Tree.Delete(&index.Item{Record: rec})
	} else {
		old, _ = c.view.Tree.Set(index.New(rec, c.s.opts.InlineValueSize))
	}
	c.s.usage.Add(store.CollectionOf(rec.Key), index.Growth(&rec, old))
	return old
}

func (c *committer) writable() *pebble.Batch {
	if c.batch == nil {
		c.batch = c.s.db.NewBatch()
	}
	return c.batch
}

// flush makes the batch durable and tells everybody: readers first, so that a
// writer finds what it wrote.
func (c *committer) flush() {
	s := c.s
	if c.batch != nil {
		done := s.pace.begin()
		err := c.sync()
		done()
		if err != nil {
			s.fail(err)
			c.refuse()
			return
		}
		s.mark.raise(c.view.Current)
		published := c.view
		published.Tree = c.view.Tree.Copy()
		s.view.Store(&published)
	}
	for _, r := range c.replies {
		r.r.done <- r.result
	}
	for _, m := range c.maint {
		m.done <- nil
	}
	if len(c.changes) > 0 {
		s.hub.Deliver(c.view.Current, func() ([]store.Event, error) { return s.events(c.changes) })
	}
	c.reset()
}

// sync writes the batch. Pebble may have met an error and kept it to itself, as
// the package comment tells, so that its word alone is not enough.
func (c *committer) sync() error {
	err := c.batch.Set(metaCurrent, encodeU64(uint64(c.view.Current)), nil)
	if err = errors.Join(err, c.s.failureErr()); err != nil {
		return err
	}
	// A log that was cut is as long as before once more is written to it.
	c.s.checkPlace()
	if err = c.s.failureErr(); err != nil {
		return err
	}
	options := pebble.Sync
	if c.s.opts.withoutSync {
		options = pebble.NoSync
	}
	err = c.batch.Commit(options)
	// After the sync: a directory that went before it took the batch along.
	c.s.checkPlace()
	if err = errors.Join(err, c.s.failureErr()); err != nil {
		return err
	}
	err = c.batch.Close()
	c.batch = nil
	return err
}

// refuse answers for a batch whose fate is open.
func (c *committer) refuse() {
	for _, r := range c.replies {
		r.r.done <- result{err: c.s.failureErr()}
	}
	for _, m := range c.maint {
		m.done <- c.s.failureErr()
	}
	c.reset()
}

func (c *committer) reset() {
	clear(c.replies)
	clear(c.maint)
	c.taken, c.bytes = 0, 0
	c.replies, c.maint, c.changes = c.replies[:0], c.maint[:0], nil
}
