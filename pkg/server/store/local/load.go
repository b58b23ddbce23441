package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// errEmpty comes from a database in which nothing is yet.
var errEmpty = errors.New("the directory holds a database without a store in it")

// load reads what a start needs, and changes nothing.
func (s *Store) load() (*index.State, error) {
	format, err := s.readMeta(s.db, metaFormat)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, s.missing()
	case err != nil:
		return nil, fmt.Errorf("read the format: %w", err)
	}
	if err := checkFormat(format); err != nil {
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
	v := &index.State{Current: store.Revision(current), Compacted: store.Revision(compacted)}
	if err := s.checkRevisions(v); err != nil {
		return nil, err
	}
	if v.Tree, err = s.loadTree(v); err != nil {
		return nil, err
	}
	return v, s.checkMark(v.Current)
}

// checkRevisions demands the list of each revision that is not given up. A manifest
// that lost its end is whole to Pebble, and the tables that it would have named are
// gone without a word; what they held leaves a gap here.
func (s *Store) checkRevisions(v *index.State) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: revisionKey(v.Compacted + 1), UpperBound: []byte{rowRevision + 1}})
	if err != nil {
		return err
	}
	next := v.Compacted + 1
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var rev store.Revision
		if rev, err = splitRevisionKey(it.Key()); err == nil && rev != next {
			err = fmt.Errorf("%w: version %d is missing", store.ErrDamaged, next)
		}
		next++
	}
	if err = errors.Join(err, it.Error(), it.Close()); err == nil && next != v.Current+1 {
		err = fmt.Errorf("%w: the newest version found is %d, but the newest commit is said to be %d", store.ErrDamaged, next-1, v.Current)
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

// missing tells why a database has no format: the mark outlives whatever else is lost.
func (s *Store) missing() error {
	if _, err := s.opts.FS.Stat(s.opts.FS.PathJoin(s.opts.Dir, markFile)); err == nil {
		return fmt.Errorf("%w: nothing of the store is found any more, though its file %s is there", store.ErrDamaged, markFile)
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	empty := !it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if !empty {
		return errForeign
	}
	return errEmpty
}

// raiseFormat makes a store of an older format one of this. Its rows are read as they
// are, but a release that knows the older one alone must not meet those that are
// written from here on.
func (s *Store) raiseFormat() error {
	format, err := s.readMeta(s.db, metaFormat)
	if err != nil || format == formatVersion {
		return err
	}
	if err := s.db.Set(metaFormat, encodeU64(formatVersion), pebble.Sync); err != nil {
		return err
	}
	s.log.Info("store: it has a newer format now, which earlier releases refuse", "was", format, "is", formatVersion)
	return nil
}

// create marks an empty database as a store. The revisions before the first are
// given up from the start: nobody can resume from a version of an earlier life.
func (s *Store) create() (*index.State, error) {
	before := s.opts.InitialVersion - 1
	b := s.db.NewBatch()
	defer b.Close()
	err := errors.Join(
		b.Set(metaFormat, encodeU64(formatVersion), nil),
		b.Set(metaCurrent, encodeU64(uint64(before)), nil),
		b.Set(metaCompacted, encodeU64(uint64(before)), nil),
		b.Commit(pebble.Sync),
	)
	if err != nil {
		return nil, err
	}
	return &index.State{Tree: index.NewTree(), Current: before, Compacted: before}, nil
}

func (s *Store) readMeta(r reader, row []byte) (uint64, error) {
	data, closer, err := r.Get(row)
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	return decodeU64(row[1:], data)
}
