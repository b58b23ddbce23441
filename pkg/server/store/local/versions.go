package local

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

// History returns the heads of the versions of a key that are still kept. See
// store.Store.
func (s *Store) History(ctx context.Context, key store.Key, limit int) ([]store.Record, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	if key.Check() != nil {
		return nil, store.ErrNotFound // its rows could be taken for another key's
	}
	found, err := s.heads(ctx, key, limit)
	return found, s.noticed(key, err)
}

func (s *Store) heads(ctx context.Context, key store.Key, limit int) ([]store.Record, error) {
	p, err := s.moment()
	if err != nil {
		return nil, err
	}
	defer p.close()
	it, err := p.rows(recordKey(key, p.view.Current), recordsEnd(key))
	if err != nil {
		return nil, err
	}
	var found []store.Record
	for ok := it.First(); ok && (limit <= 0 || len(found) < limit); ok = it.Next() {
		h, err := headAt(it)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, errors.Join(err, it.Close())
		}
		found = append(found, h.Record)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, store.ErrNotFound
	}
	return found, nil
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
	rec, err := s.exactVersion(key, rev)
	return rec, s.noticed(key, err)
}

func (s *Store) exactVersion(key store.Key, rev store.Revision) (store.Record, error) {
	p, err := s.moment()
	if err != nil {
		return store.Record{}, err
	}
	defer p.close()
	if rev > p.view.Current {
		return store.Record{}, store.ErrFuture
	}
	it, err := p.rows(recordKey(key, rev), recordsEnd(key))
	if err != nil {
		return store.Record{}, err
	}
	rec, err := p.exactly(it, rev)
	if err = errors.Join(err, it.Close()); err != nil {
		return store.Record{}, err
	}
	return rec, nil
}

// exactly is the version rev, or says why there is none. it is over the versions
// up to rev of one key.
func (p *past) exactly(it *pebble.Iterator, rev store.Revision) (store.Record, error) {
	if !it.First() {
		switch {
		case it.Error() != nil:
			return store.Record{}, it.Error()
		case rev <= p.compacted:
			return store.Record{}, store.ErrCompacted
		}
		return store.Record{}, store.ErrNotFound
	}
	h, err := headAt(it)
	if err != nil {
		return store.Record{}, err
	}
	if h.Revision != rev && p.s.lost.contain(rev) {
		return store.Record{}, store.ErrCompacted
	}
	if h.Revision != rev {
		// The oldest versions are the first to go: with an older one here, one of
		// rev would be here too.
		return store.Record{}, store.ErrNotFound
	}
	return complete(p, h)
}
