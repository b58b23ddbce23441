package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

// load reads what a start needs, or writes what a new store begins with.
func (s *Store) load() (*view, error) {
	format, err := s.readMeta(s.db, metaFormat)
	if errors.Is(err, pebble.ErrNotFound) && !s.opts.readOnly {
		return s.create()
	}
	if err != nil {
		return nil, fmt.Errorf("read the format: %w", err)
	}
	if err = checkFormat(format); err == nil && format < formatVersion && !s.opts.readOnly {
		// Its rows are those of this format. A release that knows the older one alone
		// must not meet the rows that are written from here on.
		if err = s.db.Set(metaFormat, encodeU64(formatVersion), pebble.Sync); err == nil {
			s.log.Info("store: it has a newer format now, which earlier releases refuse", "was", format, "is", formatVersion)
		}
	}
	if err != nil {
		return nil, err
	}
	current, err := s.readMeta(s.db, metaCurrent)
	if err != nil {
		return nil, fmt.Errorf("read the current revision: %w", err)
	}
	compacted, err := s.readMeta(s.db, metaCompacted)
	if err != nil {
		return nil, fmt.Errorf("read the compacted revision: %w", err)
	}
	if s.lost, err = readLost(s.db); err != nil {
		return nil, err
	}
	v := &view{current: store.Revision(current), compacted: store.Revision(compacted)}
	if err := s.checkRevisions(v); err != nil {
		return nil, err
	}
	if v.tree, err = s.loadTree(v); err != nil {
		return nil, err
	}
	return v, checkMark(s.opts.FS, s.opts.Dir, v.current)
}

// checkRevisions demands the list of each revision that is not given up. A manifest
// that lost its end is whole to Pebble, and the tables that it would have named are
// gone without a word; what they held leaves a gap here.
func (s *Store) checkRevisions(v *view) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: revisionKey(v.compacted + 1), UpperBound: []byte{rowRevision + 1}})
	if err != nil {
		return err
	}
	next := v.compacted + 1
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var rev store.Revision
		if rev, err = splitRevisionKey(it.Key()); err == nil && rev != next {
			err = fmt.Errorf("%w: version %d is missing", store.ErrDamaged, next)
		}
		next++
	}
	if err = errors.Join(err, it.Error(), it.Close()); err == nil && next != v.current+1 {
		err = fmt.Errorf("%w: the newest version found is %d, but the newest commit is said to be %d", store.ErrDamaged, next-1, v.current)
	}
	return err
}

var errForeign = errors.New("the directory holds a Pebble database of another program; name another one")

func checkFormat(format uint64) error {
	if format <= formatVersion {
		return nil
	}
	return fmt.Errorf("%w: it has format %d, this release reads up to %d; start the newer release again, or restore a backup made by this one",
		store.ErrNewerFormat, format, formatVersion)
}

// create marks an empty database as a store. The revisions before the first are
// given up from the start: nobody can resume from a version of an earlier life.
func (s *Store) create() (*view, error) {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	empty := !it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, err
	}
	if !empty {
		return nil, errForeign
	}
	before := s.opts.InitialVersion - 1
	b := s.db.NewBatch()
	defer b.Close()
	err = errors.Join(
		b.Set(metaFormat, encodeU64(formatVersion), nil),
		b.Set(metaCurrent, encodeU64(uint64(before)), nil),
		b.Set(metaCompacted, encodeU64(uint64(before)), nil),
		b.Commit(pebble.Sync),
	)
	if err != nil {
		return nil, err
	}
	return &view{tree: newTree(), current: before, compacted: before}, nil
}

func (s *Store) readMeta(r reader, row []byte) (uint64, error) {
	data, closer, err := r.Get(row)
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	return decodeU64(row[1:], data)
}
