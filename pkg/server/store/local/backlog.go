package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/feed"
	"example.com/cmctl/pkg/server/store/record"
)

// A chunk is what a watcher reads of its backlog in one go.
const (
	chunkRows   = 2048 // revisions looked at
	chunkEvents = 256
	chunkBytes  = 1 << 20
)

// Watch returns the changes under prefix after the revision from. See store.Store.
func (s *Store) Watch(ctx context.Context, prefix store.Key, from store.Revision) (store.Watcher, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	v := s.view.Load()
	if from != 0 && from < v.Compacted {
		return nil, store.ErrCompacted
	}
	if from == 0 {
		from = v.Current
	}
	return s.hub.Watch(prefix, from, feed.Limits{Events: s.opts.WatchBuffer, Bytes: s.opts.watchBytes}, &backlog{s, prefix})
}

// backlog is the past of one watcher.
type backlog struct {
	s      *Store
	prefix store.Key
}

func (*backlog) Close() {}

// Read reads the next chunk.
func (b *backlog) Read(ctx context.Context, after store.Revision) ([]store.Event, store.Revision, error) {
	if err := b.s.begin(ctx); err != nil {
		return nil, 0, err
	}
	defer b.s.end()
	p, err := b.s.moment()
	if err != nil {
		return nil, 0, err
	}
	defer p.close()
	if after >= p.view.Current {
		return nil, after, nil
	}
	events, upTo, err := b.readChunk(p, after)
	return events, upTo, b.s.noticed("", err)
}

// readChunk returns the events of the revisions that come after one, and the last of
// those.
func (b *backlog) readChunk(p *past, after store.Revision) ([]store.Event, store.Revision, error) {
	if after < p.compacted {
		return nil, 0, store.ErrCompacted
	}
	revisions, err := p.rows(revisionKey(after+1), revisionKey(p.view.Current+1))
	if err != nil {
		return nil, 0, err
	}
	records, err := p.rows([]byte{rowRecord}, []byte{rowRecord + 1})
	if err != nil {
		return nil, 0, errors.Join(err, revisions.Close())
	}
	c := chunk{past: p, prefix: b.prefix, records: records, next: after + 1}
	err = c.read(revisions, p.view.Current)
	if err = errors.Join(err, revisions.Close(), records.Close()); err != nil {
		return nil, 0, err
	}
	return c.events, c.next - 1, nil
}

type chunk struct {
	past    *past
	prefix  store.Key
	records *pebble.Iterator
	next    store.Revision
	rows    int
	bytes   int
	events  []store.Event
}

func (c *chunk) full() bool {
	return c.rows >= chunkRows || len(c.events) >= chunkEvents || c.bytes >= chunkBytes
}

func (c *chunk) read(revisions *pebble.Iterator, last store.Revision) error {
	ok := revisions.First()
	for ; ok && !c.full(); ok = revisions.Next() {
		rev, err := splitRevisionKey(revisions.Key())
		if err != nil {
			return err
		}
		if rev != c.next {
			break
		}
		data, err := revisions.ValueAndErr()
		if err != nil {
			return err
		}
		keys, err := decodeRevisionKeys(rev, data)
		if err != nil {
			return err
		}
		if err := c.addRevision(rev, keys); err != nil {
			return err
		}
		c.next++
		c.rows++
	}
	if err := revisions.Error(); err != nil {
		return err
	}
	if !c.full() && c.next <= last {
		return fmt.Errorf("%w: the keys of revision %d are missing", store.ErrDamaged, c.next)
	}
	return nil
}

func (c *chunk) addRevision(rev store.Revision, keys []store.Key) error {
	for _, key := range keys {
		if !strings.HasPrefix(string(key), string(c.prefix)) {
			continue
		}
		e, err := c.past.eventAt(c.records, key, rev)
		if err != nil {
			return err
		}
		c.events = append(c.events, e)
		c.bytes += len(e.Record.Value)
		if e.Prev != nil {
			c.bytes += len(e.Prev.Value)
		}
	}
	return nil
}

// eventAt makes the event of a version from it and the one before.
func (p *past) eventAt(it *pebble.Iterator, key store.Key, rev store.Revision) (store.Event, error) {
	// The bounds keep it from what may be damaged and another's.
	it.SetBounds(recordKey(key, rev), recordsEnd(key))
	if !it.First() {
		err := cmp.Or(it.Error(), error(record.Damaged(key, rev, "it is missing")))
		return store.Event{}, ofVersion(key, rev, err)
	}
	rec, err := recordAt(p, it)
	if err != nil {
		return store.Event{}, err
	}
	if rec.Revision != rev {
		return store.Event{}, record.Damaged(key, rev, "it is missing")
	}
	e := store.Event{Record: rec}
	if !it.Next() {
		return e, ofVersion(key, rev, it.Error())
	}
	prev, err := recordAt(p, it)
	if err == nil && !prev.Deleted {
		e.Prev = &prev
	}
	return e, err
}

// events makes the events of a batch just written. What a change replaced is
// still there: nothing can have compacted it before this state was published, and
// compaction writes through the committer, which is the caller.
func (s *Store) events(changes []change) ([]store.Event, error) {
	events := make([]store.Event, 0, len(changes))
	for _, c := range changes {
		e := store.Event{Record: c.rec}
		if c.old != nil {
			prev, err := s.record(s.db, c.old, store.Whole)
			if err != nil {
				return nil, s.noticed(c.old.Record.Key, err)
			}
			e.Prev = &prev
		}
		events = append(events, e)
	}
	return events, nil
}
