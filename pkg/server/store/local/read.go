package local

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// Get returns the key's version in the state at. See store.Store.
func (s *Store) Get(ctx context.Context, key store.Key, at store.Revision) (store.Record, error) {
	if err := s.begin(ctx); err != nil {
		return store.Record{}, err
	}
	defer s.end()
	if key.Check() != nil {
		return store.Record{}, store.ErrNotFound // its rows could be taken for another key's
	}
	rec, err := s.getAt(key, at)
	return rec, s.noticed(key, err)
}

func (s *Store) getAt(key store.Key, at store.Revision) (store.Record, error) {
	if at == 0 || at == store.Any {
		return s.getNow(key)
	}
	p, err := s.past(at)
	if err != nil {
		return store.Record{}, err
	}
	defer p.close()
	rec, err := p.version(key, at)
	if err == nil && rec.Deleted {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Record{}, err
	}
	return rec, nil
}

func (s *Store) getNow(key store.Key) (store.Record, error) {
	for {
		it := index.Lookup(s.view.Load().Tree, key)
		if it == nil {
			return store.Record{}, store.ErrNotFound
		}
		rec, err := s.record(s.db, it, store.Whole)
		if errors.Is(err, pebble.ErrNotFound) && s.superseded(it) {
			continue
		}
		return rec, ofVersion(key, it.Record.Revision, err)
	}
}

// superseded says whether the item is no longer what the store has of its key.
// Only then can a compaction that ran in between have taken its version away.
func (s *Store) superseded(it *index.Item) bool {
	return index.Lookup(s.view.Load().Tree, it.Record.Key) != it
}

// record is the record of an item, with as much of its value as is needed.
func (s *Store) record(r reader, it *index.Item, p store.Part) (store.Record, error) {
	if !it.Lacks(p) {
		return it.Record, nil
	}
	if err := s.ruins.find(it); err != nil {
		return store.Record{}, err
	}
	rec, err := readVersion(r, it.Record.Key, it.Record.Revision, p)
	if errors.Is(err, store.ErrDamaged) && !errors.Is(err, pebble.ErrNotFound) {
		s.ruins.add(it, err)
	}
	return rec, err
}

// List returns the live records of one state. See store.Store.
func (s *Store) List(ctx context.Context, o store.ListOptions) (store.Page, error) {
	if err := s.begin(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.end()
	if o.At == store.Any {
		o.At = 0
	}
	page, err := s.list(ctx, o)
	return page, s.noticed("", err)
}

func (s *Store) list(ctx context.Context, o store.ListOptions) (store.Page, error) {
	for {
		v := s.view.Load()
		if o.At != 0 && o.At < v.Compacted {
			return store.Page{}, store.ErrCompacted
		}
		if o.At != 0 && o.At != v.Current {
			if v = s.pins.Get(o.At); v == nil {
				return s.listPast(ctx, o)
			}
		}
		page, err := s.listView(ctx, v, o)
		if o.At == 0 && errors.Is(err, store.ErrCompacted) {
			continue // the state that was the newest has been compacted meanwhile
		}
		return page, err
	}
}

func (s *Store) listView(ctx context.Context, v *index.State, o store.ListOptions) (store.Page, error) {
	items, remaining := v.Scan(o.Prefix, o.After, o.Limit)
	page := store.Page{Revision: v.Current, Remaining: remaining, Records: make([]store.Record, len(items))}
	var lacking []int
	for i, it := range items {
		page.Records[i] = it.Record
		if it.Lacks(o.Part) {
			lacking = append(lacking, i)
		}
	}
	if err := s.readLacking(ctx, v, items, lacking, page.Records, o.Part); err != nil {
		return store.Page{}, err
	}
	if remaining > 0 {
		s.pins.Add(v)
	}
	return page, nil
}

// readLacking reads the records of which more is needed than is in the view.
func (s *Store) readLacking(ctx context.Context, v *index.State, items []*index.Item, lacking []int, records []store.Record, part store.Part) error {
	if len(lacking) == 0 {
		return nil
	}
	p, err := s.moment()
	if err != nil {
		return err
	}
	defer p.close()
	if p.compacted > v.Current {
		return store.ErrCompacted
	}
	for _, i := range lacking {
		if err := ctx.Err(); err != nil {
			return err
		}
		if records[i], err = s.record(p, items[i], part); err != nil {
			return ofVersion(items[i].Record.Key, items[i].Record.Revision, err)
		}
	}
	return nil
}

// Reach tells whether rev is reached. See store.Store.
func (s *Store) Reach(ctx context.Context, rev store.Revision) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	if rev > s.view.Load().Current {
		return store.ErrFuture
	}
	return nil
}
