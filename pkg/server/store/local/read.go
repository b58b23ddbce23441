package local

import (
	"context"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

// Get returns the key's version in the state at. See store.Store.
func (s *Store) Get(ctx context.Context, key store.Key, at store.Revision) (store.Record, error) {
	if err := s.begin(ctx); err != nil {
		return store.Record{}, err
	}
	defer s.end()
	if checkKey(key) != nil {
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
		it := lookup(s.view.Load().tree, key)
		if it == nil {
			return store.Record{}, store.ErrNotFound
		}
		rec, err := s.record(s.db, it, store.Whole)
		if errors.Is(err, pebble.ErrNotFound) && s.superseded(it) {
			continue
		}
		return rec, ofVersion(key, it.rec.Revision, err)
	}
}

// superseded says whether the item is no longer what the store has of its key.
// Only then can a compaction that ran in between have taken its version away.
func (s *Store) superseded(it *item) bool { return lookup(s.view.Load().tree, it.rec.Key) != it }

// record is the record of an item, with as much of its value as is needed.
func (s *Store) record(r reader, it *item, p store.Part) (store.Record, error) {
	if !it.lacks(p) {
		return it.rec, nil
	}
	if err := s.ruins.find(it); err != nil {
		return store.Record{}, err
	}
	rec, err := readVersion(r, it.rec.Key, it.rec.Revision, p)
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
		if o.At != 0 && o.At < v.compacted {
			return store.Page{}, store.ErrCompacted
		}
		if o.At != 0 && o.At != v.current {
			if v = s.pins.get(o.At); v == nil {
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

func (s *Store) listView(ctx context.Context, v *view, o store.ListOptions) (store.Page, error) {
	items, remaining := v.scan(o.Prefix, o.After, o.Limit)
	page := store.Page{Revision: v.current, Remaining: remaining, Records: make([]store.Record, len(items))}
	var lacking []int
	for i, it := range items {
		page.Records[i] = it.rec
		if it.lacks(o.Part) {
			lacking = append(lacking, i)
		}
	}
	if err := s.readLacking(ctx, v, items, lacking, page.Records, o.Part); err != nil {
		return store.Page{}, err
	}
	if remaining > 0 {
		s.pins.add(v)
	}
	return page, nil
}

// readLacking reads the records of which more is needed than is in the view.
func (s *Store) readLacking(ctx context.Context, v *view, items []*item, lacking []int, records []store.Record, part store.Part) error {
	if len(lacking) == 0 {
		return nil
	}
	p, err := s.moment()
	if err != nil {
		return err
	}
	defer p.close()
	if p.compacted > v.current {
		return store.ErrCompacted
	}
	for _, i := range lacking {
		if err := ctx.Err(); err != nil {
			return err
		}
		if records[i], err = s.record(p, items[i], part); err != nil {
			return ofVersion(items[i].rec.Key, items[i].rec.Revision, err)
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
	if rev > s.view.Load().current {
		return store.ErrFuture
	}
	return nil
}

// pins keeps the views of the last few lists that had more than one page, so that
// their next pages cost as little as the first. What is not pinned any more is
// read from Pebble.
type pins struct {
	mu    sync.Mutex // guards views
	views []*view    // oldest first
}

const maxPins = 16

func (p *pins) add(v *view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.views {
		if w.current == v.current {
			return
		}
	}
	if len(p.views) == maxPins {
		p.views = append(p.views[:0], p.views[1:]...)
	}
	p.views = append(p.views, v)
}

func (p *pins) get(at store.Revision) *view {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.views {
		if v.current == at {
			return v
		}
	}
	return nil
}

// drop forgets the views of states before at.
func (p *pins) drop(at store.Revision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := make([]*view, 0, maxPins)
	for _, v := range p.views {
		if v.current >= at {
			kept = append(kept, v)
		}
	}
	p.views = kept
}

func (p *pins) clear() { p.drop(1<<63 - 1) }
