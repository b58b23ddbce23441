package local

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
	"example.com/cmctl/pkg/server/store/record"
)

// loadTree makes the index from the newest version of each key, and finds what is
// kept of deleted ones. Ranges of keys are read beside each other: a start on a
// million objects is work for every processor.
func (s *Store) loadTree(v *index.State) (*index.Tree, error) {
	bounds, err := s.recordRanges(runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	parts := make([][]*index.Item, len(bounds)-1)
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { parts[i], errs[i] = s.loadItems(bounds[i], bounds[i+1], v) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t := index.NewTree()
	for _, items := range parts {
		for _, i := range items {
			t.Load(i)
		}
	}
	return t, nil
}

// recordRanges are the bounds of at most n ranges that hold all records, about as
// many in each: the tables that Pebble has say where they are. No bound is between
// two versions of a key.
func (s *Store) recordRanges(n int) ([][]byte, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	var starts [][]byte
	for _, tables := range levels {
		for _, t := range tables {
			if key, _, err := splitRecordKey(t.Smallest.UserKey); err == nil {
				starts = append(starts, recordsFrom(key))
			}
		}
	}
	slices.SortFunc(starts, bytes.Compare)
	bounds := [][]byte{{rowRecord}}
	for i := 1; i < n && len(starts) > 0; i++ {
		at := starts[i*len(starts)/n]
		if !bytes.Equal(at, bounds[len(bounds)-1]) {
			bounds = append(bounds, at)
		}
	}
	return append(bounds, []byte{rowRecord + 1}), nil
}

// loadItems makes the index entries of the live keys in a range, in their order.
func (s *Store) loadItems(from, to []byte, v *index.State) ([]*index.Item, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return nil, err
	}
	var items []*index.Item
	for ok := it.First(); ok; {
		h, err := headAt(it)
		if err == nil && h.Revision > v.Current {
			err = fmt.Errorf("%w: %s has revision %d, but the newest commit is said to be %d; restore a backup",
				store.ErrDamaged, h.Key, h.Revision, v.Current)
		}
		if err == nil && h.Deleted && h.Revision <= v.Compacted {
			s.graves.add(grave{key: h.Key, at: h.Revision, died: h.Time})
		}
		if err == nil && !h.Deleted {
			var i *index.Item
			if i, err = s.loadItem(h); err == nil {
				items = append(items, i)
			}
		}
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		ok = nextKey(it, h.Key)
	}
	return items, errors.Join(it.Error(), it.Close())
}

// stepsToNextKey is how many versions are stepped over before they are jumped over:
// most keys have few, and a step costs a fraction of a jump.
const stepsToNextKey = 4

// nextKey moves beyond all versions of key. It is false at the end.
func nextKey(it *pebble.Iterator, key store.Key) bool {
	for range stepsToNextKey {
		if !it.Next() {
			return false
		}
		// The key of a row is that of its record, and nine bytes.
		if row := it.Key(); len(row) != len(key)+10 || string(row[1:len(row)-9]) != string(key) {
			return true
		}
	}
	return it.SeekGE(recordsEnd(key))
}

// loadItem is the index entry of a live version, with its value, or the head of
// it, if that is small enough to be held.
func (s *Store) loadItem(h record.Head) (*index.Item, error) {
	if h.Size > s.opts.InlineValueSize {
		return index.NewLarge(h, s.opts.InlineValueSize), nil
	}
	rec, err := complete(s.db, h)
	return index.New(rec, s.opts.InlineValueSize), err
}
