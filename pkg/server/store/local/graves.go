package local

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

// grave is a deleted key whose last versions are still kept, so that it can be
// brought back.
type grave struct {
	key  store.Key
	at   store.Revision // of the tombstone, which is compacted
	died time.Time      // zero if the tombstone has no time
}

// graves are all of them. They are found at the start, as the keys whose newest
// version is a compacted tombstone, and later by compaction: so nothing on disk
// lists them.
type graves struct {
	mu  sync.Mutex // guards all
	all map[store.Key]grave
}

func (g *graves) add(dead grave) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[store.Key]grave{}
	}
	g.all[dead.key] = dead
}

// drop forgets one, unless its key was deleted again since.
func (g *graves) drop(dead grave) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all[dead.key].at == dead.at {
		delete(g.all, dead.key)
	}
}

// due are those to be given up: expired, or the oldest beyond the limit. Oldest
// first.
func (g *graves) due(expired func(died time.Time) bool, limit int) []grave {
	g.mu.Lock()
	all := slices.Collect(maps.Values(g.all))
	g.mu.Unlock()
	slices.SortFunc(all, func(a, b grave) int { return cmp.Compare(a.at, b.at) })
	beyond := len(all) - limit
	var due []grave
	for i, dead := range all {
		if i < beyond || expired(dead.died) {
			due = append(due, dead)
		}
	}
	return due
}

// expired tells whether what was deleted then need not be kept any longer. Of an
// unknown age is as good as old.
func (s *Store) expired(died time.Time) bool {
	return died.IsZero() || s.opts.now().Sub(died) >= s.opts.DeletedRetention
}

// forget gives up what has been deleted for long enough, in small steps.
// compactMu is held.
func (s *Store) forget(ctx context.Context) error {
	due := s.graves.due(s.expired, s.opts.DeletedLimit)
	for len(due) > 0 {
		n, err := s.forgetStep(ctx, due)
		if err != nil {
			return err
		}
		due = due[n:]
	}
	return nil
}

// forgetStep gives up the first n.
func (s *Store) forgetStep(ctx context.Context, due []grave) (n int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	p, err := s.moment()
	if err != nil {
		return 0, err
	}
	defer p.close()
	b := s.db.NewBatch()
	if n, err = p.digSome(due, b); err != nil {
		return 0, err
	}
	if !b.Empty() {
		if err := s.write(ctx, &maintenance{batch: b}); err != nil {
			return 0, err
		}
	}
	for _, dead := range due[:n] {
		s.graves.drop(dead)
	}
	return n, nil
}

// digSome fills b with the removal of the first n.
func (p *past) digSome(due []grave, b *pebble.Batch) (n int, err error) {
	for n < len(due) && b.Len() < stepBytes {
		if err := p.dig(due[n], b); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// dig adds to b the removal of a deleted key's last versions. A key that was made
// anew since keeps them: they are its history now, of which it keeps the last
// few.
func (p *past) dig(dead grave, b *pebble.Batch) error {
	it, err := p.rows(recordsFrom(dead.key+"\x00"), recordsEnd(dead.key))
	if err != nil {
		return err
	}
	if it.First() {
		h, headErr := headAt(it)
		if err = headErr; err == nil && h.Deleted && h.Revision == dead.at {
			err = deleteFrom(it, dead.key, b)
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}
