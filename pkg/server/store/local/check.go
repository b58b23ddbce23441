package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
	"example.com/cmctl/pkg/server/store/record"
)

// Check reads everything and reports what does not agree: the index with the
// newest records, the records with the lists of what each revision wrote, both
// with the current and the compacted revision. It may run beside anything else.
func (s *Store) Check(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	// Nothing may be dug or found between the two: both then speak of one moment.
	s.graves.mu.Lock()
	p, err := s.moment()
	known := maps.Clone(s.graves.all)
	s.graves.mu.Unlock()
	if err != nil {
		return err
	}
	defer p.close()
	return checker{past: p, ctx: ctx, graves: known}.run()
}

type checker struct {
	*past
	ctx    context.Context
	graves map[store.Key]grave
}

func (c checker) run() error {
	stored, err := c.s.readMeta(c.past, metaCurrent)
	if err != nil {
		return err
	}
	if store.Revision(stored) < c.view.Current || c.compacted > store.Revision(stored) {
		return fmt.Errorf("current revision is %d on disk and %d in memory, compacted %d", stored, c.view.Current, c.compacted)
	}
	unfinished, err := c.revisions(store.Revision(stored))
	if err != nil {
		return err
	}
	apart, err := c.records(store.Revision(stored), unfinished)
	if err != nil {
		return err
	}
	return c.values(apart)
}

// revisions checks the lists of keys. unfinished means that a compaction has some
// left to remove.
func (c checker) revisions(stored store.Revision) (unfinished bool, err error) {
	it, err := c.rows([]byte{rowRevision}, []byte{rowRevision + 1})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	var last store.Revision
	for ok := it.First(); ok; ok = it.Next() {
		rev, err := splitRevisionKey(it.Key())
		if err != nil {
			return false, err
		}
		keys, err := decodeRevisionKeys(rev, it.Value())
		if err != nil {
			return false, err
		}
		if last != 0 && rev != last+1 {
			return false, fmt.Errorf("the keys of revision %d are gone: %d follows %d", last+1, rev, last)
		}
		last = rev
		if rev <= c.compacted {
			unfinished = true
			continue
		}
		for _, key := range keys {
			if err := c.exists(recordKey(key, rev)); err != nil {
				return false, fmt.Errorf("%s at revision %d: %w", key, rev, err)
			}
		}
	}
	if last == 0 {
		last = c.compacted
	}
	if last != stored {
		return false, fmt.Errorf("the newest revision listed is %d, current is %d", last, stored)
	}
	return unfinished, c.ctx.Err()
}

func (c checker) exists(row []byte) error {
	_, closer, err := c.Get(row)
	if err != nil {
		return err
	}
	return closer.Close()
}

// records checks every record with its value, and the index against the newest
// ones. apart is how many values have a row of their own.
func (c checker) records(stored store.Revision, unfinished bool) (apart int, err error) {
	it, err := c.rows([]byte{rowRecord}, []byte{rowRecord + 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	live := 0
	var newest, oldNewest store.Key // whose newest record, and newest up to compacted, was seen
	for ok := it.First(); ok; ok = it.Next() {
		h, err := headAt(it)
		if err != nil {
			return 0, err
		}
		if h.Apart {
			apart++
		}
		rec, err := complete(c.past, h)
		if err = errors.Join(err, c.ctx.Err()); err != nil {
			return 0, err
		}
		if rec.Revision > stored {
			return 0, fmt.Errorf("%s has revision %d, current is %d", rec.Key, rec.Revision, stored)
		}
		if rec.Revision > c.compacted {
			err = c.listed(&rec)
		} else if oldNewest != rec.Key {
			oldNewest = rec.Key
			if rec.Deleted && !unfinished && newest != rec.Key && c.graves[rec.Key].at != rec.Revision {
				err = fmt.Errorf("%s was deleted at revision %d and compacted at %d, and would be kept for ever", rec.Key, rec.Revision, c.compacted)
			}
		}
		if err != nil {
			return 0, err
		}
		if rec.Revision > c.view.Current || newest == rec.Key {
			continue
		}
		newest = rec.Key
		if !rec.Deleted {
			live++
		}
		if err := c.indexed(&rec); err != nil {
			return 0, err
		}
	}
	if n := c.view.Tree.Len(); n != live {
		return 0, fmt.Errorf("%d live keys on disk, %d in the index", live, n)
	}
	return apart, nil
}

// values checks that there are so many: those that records have. Each of them was
// found, so that one more belongs to none.
func (c checker) values(want int) (err error) {
	it, err := c.rows([]byte{rowValue}, []byte{rowValue + 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Error(), it.Close()) }()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if n != want {
		return fmt.Errorf("%d values have a row of their own, records have %d", n, want)
	}
	return c.ctx.Err()
}

func (c checker) listed(rec *store.Record) error {
	data, closer, err := c.Get(revisionKey(rec.Revision))
	if err != nil {
		return fmt.Errorf("keys of revision %d: %w", rec.Revision, err)
	}
	defer closer.Close()
	keys, err := decodeRevisionKeys(rec.Revision, data)
	if err == nil && !slices.Contains(keys, rec.Key) {
		err = fmt.Errorf("%s is not among the keys of revision %d", rec.Key, rec.Revision)
	}
	return err
}

func (c checker) indexed(rec *store.Record) error {
	it := index.Lookup(c.view.Tree, rec.Key)
	if rec.Deleted || it == nil {
		if rec.Deleted != (it == nil) {
			return fmt.Errorf("%s: deleted on disk is %t, in the index %t", rec.Key, rec.Deleted, it == nil)
		}
		return nil
	}
	if it.Large != (len(rec.Value) > c.s.opts.InlineValueSize) {
		return fmt.Errorf("%s: a value of %d bytes is held in the wrong place", rec.Key, len(rec.Value))
	}
	got, want := it.Record, *rec
	if it.Large {
		want = record.HeadOf(want).Alone(c.s.opts.InlineValueSize)
	}
	if !bytes.Equal(got.Value, want.Value) {
		return fmt.Errorf("%s at revision %d: values differ", rec.Key, rec.Revision)
	}
	got.Value, want.Value = nil, nil
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: the index has %+v, the disk %+v", rec.Key, got, want)
	}
	return nil
}
