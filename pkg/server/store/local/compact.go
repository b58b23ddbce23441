package local

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/retention"
)

const (
	// A step of a compaction goes through the committer as one write among others,
	// and is small, so that no other waits for it longer than for those: it ends
	// with the first revision with which it has so many bytes, or revisions.
	stepBytes     = 256 << 10
	stepRevisions = 256
	// rangeFrom is the number of versions from which they are deleted as a range:
	// one entry for all, but one that reads have to look at until Pebble merges it.
	rangeFrom = 32
)

// maintenance is what compaction has the committer write. After it was received
// done gets one answer, for which it has room, unless the store fails. The batch is
// left to the garbage collector: if the store fails, nobody knows whether the
// committer is done with it, and a closed batch is used again.
type maintenance struct {
	batch     *pebble.Batch
	compacted store.Revision // to publish; 0 changes nothing
	done      chan error
}

func (c *committer) takeMaintenance(m *maintenance) {
	if err := c.writable().Apply(m.batch, nil); err != nil {
		c.s.fail(err)
	}
	c.view.Compacted = max(c.view.Compacted, m.compacted)
	c.bytes += m.batch.Len()
	c.maint = append(c.maint, m)
}

// write has the committer make the batch durable.
func (s *Store) write(ctx context.Context, m *maintenance) error {
	m.done = make(chan error, 1)
	select {
	case s.maint <- m:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return store.ErrClosed
	case <-s.failed:
		return s.failureErr()
	}
	select {
	case err := <-m.done:
		return err
	case <-s.failed:
		return s.failureErr()
	}
}

// Compact gives up the states before at. See store.Store.
func (s *Store) Compact(ctx context.Context, at store.Revision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.compactMu <- struct{}{}:
		defer func() { <-s.compactMu }()
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return store.ErrClosed
	}
	if err := s.giveUp(ctx, at); err != nil {
		return err
	}
	return errors.Join(s.sweep(ctx), s.forget(ctx))
}

// giveUp makes the new compacted revision durable and known, before anything goes.
func (s *Store) giveUp(ctx context.Context, at store.Revision) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	v := s.view.Load()
	if at > v.Current {
		return store.ErrFuture
	}
	if at <= v.Compacted {
		return nil
	}
	b := s.db.NewBatch()
	if err := b.Set(metaCompacted, encodeU64(uint64(at)), nil); err != nil {
		return err
	}
	err := s.write(ctx, &maintenance{batch: b, compacted: at})
	s.pins.Drop(at)
	return err
}

// finishCompaction does what an earlier process left undone.
func (s *Store) finishCompaction() {
	select {
	case s.compactMu <- struct{}{}:
		defer func() { <-s.compactMu }()
	case <-s.closing:
		return
	}
	// Nobody waits for it, and closing the store ends it.
	err := s.sweep(context.Background())
	if err != nil && !errors.Is(err, store.ErrClosed) {
		s.log.Warn("store: an interrupted compaction is not finished; the next one will go on with it", "error", line(err))
	}
}

// sweep removes in small steps what the compacted revision has given up. Each step
// is atomic and removes the list of its own work, so that whoever comes next knows
// what is left. compactMu is held.
func (s *Store) sweep(ctx context.Context) error {
	for {
		done, err := s.sweepStep(ctx)
		if done || err != nil {
			return err
		}
	}
}

func (s *Store) sweepStep(ctx context.Context) (done bool, err error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.end()
	p, err := s.moment()
	if err != nil {
		return false, err
	}
	defer p.close()
	b := s.db.NewBatch()
	if err := p.step(b); err != nil || b.Empty() {
		return err == nil, s.noticed("", err)
	}
	return false, s.write(ctx, &maintenance{batch: b})
}

// step fills b with the removal of the oldest revisions that were given up, and of
// what the keys that they wrote no longer need. Only those keys can have versions to
// remove: any other was trimmed when its newest version was given up.
func (p *past) step(b *pebble.Batch) error {
	it, err := p.rows(revisionKey(0), revisionKey(p.compacted+1))
	if err != nil {
		return err
	}
	err = p.fillStep(it, b)
	return errors.Join(err, it.Error(), it.Close())
}

func (p *past) fillStep(it *pebble.Iterator, b *pebble.Batch) error {
	trimmed := map[store.Key]bool{}
	var first, next store.Revision
	for ok, rows := it.First(), 0; ok && rows < stepRevisions && b.Len() < stepBytes; ok, rows = it.Next(), rows+1 {
		rev, err := splitRevisionKey(it.Key())
		if err != nil {
			return err
		}
		written, err := decodeRevisionKeys(rev, it.Value())
		if err != nil {
			return err
		}
		for _, key := range written {
			if trimmed[key] {
				continue
			}
			trimmed[key] = true
			if err := p.trim(key, b); err != nil {
				return err
			}
		}
		if rows == 0 {
			first = rev
		}
		next = rev + 1
	}
	if first == next {
		return nil
	}
	return b.DeleteRange(revisionKey(first), revisionKey(next), nil)
}

// trim adds to b the removal of what the key no longer needs: the versions up to the
// compacted revision that are beyond the history limit, and those of an object that
// has been deleted for long enough. They are the oldest versions, and all of them go
// in one batch, so that no tombstone can leave before what it hides. A deleted key of
// which something stays is remembered.
func (p *past) trim(key store.Key, b *pebble.Batch) error {
	it, err := p.rows(recordsFrom(key+"\x00"), recordsEnd(key))
	if err != nil {
		return err
	}
	err = p.trimFrom(it, key, b)
	return errors.Join(err, it.Error(), it.Close())
}

func (p *past) trimFrom(it *pebble.Iterator, key store.Key, b *pebble.Batch) error {
	walk := retention.Walk{Compacted: p.compacted, Limit: p.s.opts.HistoryLimit, Expired: p.s.expired}
	for ok, newest := it.First(), true; ok; newest = false {
		rec, err := headAt(it)
		if err != nil {
			return err
		}
		old := rec.Revision <= p.compacted
		switch {
		case !walk.Keeps(rec.Record):
			return deleteFrom(it, key, b)
		case newest && old && rec.Deleted:
			p.s.graves.add(grave{key: key, at: rec.Revision, died: rec.Time})
		}
		if !old && walk.Enough() {
			ok = it.SeekGE(recordKey(key, p.compacted)) // newer ones stay, however many
		} else {
			ok = it.Next()
		}
	}
	return nil
}

// deleteFrom removes the version that it stands on and all older ones.
func deleteFrom(it *pebble.Iterator, key store.Key, b *pebble.Batch) error {
	newest, versions := store.Revision(0), 0
	var rows [][]byte
	for ok := true; ok && versions < rangeFrom; ok = it.Next() {
		h, err := headAt(it)
		if err != nil {
			return err
		}
		rows = append(rows, recordKey(key, h.Revision))
		if h.Apart {
			rows = append(rows, valueKey(key, h.Revision))
		}
		newest = max(newest, h.Revision)
		versions++
	}
	if versions == rangeFrom {
		return errors.Join(
			b.DeleteRange(recordKey(key, newest), recordsEnd(key), nil),
			b.DeleteRange(valueKey(key, newest), valuesEnd(key), nil))
	}
	for _, row := range rows {
		if err := b.Delete(row, nil); err != nil {
			return err
		}
	}
	return nil
}
