package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

// past reads one moment of Pebble. Compaction writes down the revision before it
// removes anything, and what it removes is not needed to read any state from that
// revision on. So whatever the compacted revision of that moment allows is also
// complete in it, however compaction goes on meanwhile.
//
// It is made of iterators, which see the moment at which the first was made.
// Pebble's snapshots would do too, but closing one waits for whoever writes the
// manifest, and with a failed disk for ever.
//
// That moment may hold commits that are not durable yet: nothing beyond the
// published revision may be returned.
type past struct {
	s         *Store
	it        *pebble.Iterator // over all rows
	view      *index.State     // published before the moment
	compacted store.Revision   // as of the moment; not beyond view.Current
}

func (s *Store) moment() (*past, error) {
	for {
		p, err := s.momentAfter(s.view.Load())
		if !errors.Is(err, errOutdated) {
			return p, err
		}
	}
}

// errOutdated: commits and a compaction came between a view and the moment, so
// that what the view shows may be gone. Only what is published is compacted: there
// is a newer view.
var errOutdated = errors.New("view is outdated")

func (s *Store) momentAfter(v *index.State) (*past, error) {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	p := &past{s: s, it: it, view: v}
	compacted, err := s.readMeta(p, metaCompacted)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("read the compacted revision: %w", err)
	}
	if p.compacted = store.Revision(compacted); p.compacted > v.Current {
		p.close()
		return nil, errOutdated
	}
	return p, nil
}

// past opens a moment in which the state at can be read.
func (s *Store) past(at store.Revision) (*past, error) {
	p, err := s.moment()
	if err != nil {
		return nil, err
	}
	switch {
	case at > p.view.Current:
		err = store.ErrFuture
	case at < p.compacted:
		err = store.ErrCompacted
	default:
		return p, nil
	}
	p.close()
	return nil, err
}

// close drops the error: whatever an iterator met, its reader has been told.
func (p *past) close() { _ = p.it.Close() }

// rows iterates over the rows from lower up to upper.
func (p *past) rows(lower, upper []byte) (*pebble.Iterator, error) {
	return p.it.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{LowerBound: lower, UpperBound: upper}})
}

// Get makes a moment a reader. What it returns is good until the next call.
//
// The bounds keep it in the row's own block: without them a seek begins by stepping
// forward, into what may be damaged and another's. The block of a lower level in which
// the row would lie, if it were there, may be another's as well: Pebble's own Get has
// no need of it.
func (p *past) Get(row []byte) ([]byte, io.Closer, error) {
	p.it.SetBounds(row, append(bytes.Clone(row), 0))
	if !p.it.First() {
		if err := p.it.Error(); err != nil {
			return p.again(row, err)
		}
		return nil, nil, pebble.ErrNotFound
	}
	data, err := p.it.ValueAndErr()
	return data, io.NopCloser(nil), err
}

// again reads a row that has met damage by itself. Of a row that is there now it is
// what was there then: none is changed but those that tell how far the store has come.
func (p *past) again(row []byte, met error) ([]byte, io.Closer, error) {
	data, closer, err := p.s.db.Get(row)
	if errors.Is(err, pebble.ErrNotFound) {
		err = met // it may have been removed since
	}
	return data, closer, err
}

// reader is where single rows come from: Pebble itself, or a moment of it.
type reader interface {
	Get(row []byte) ([]byte, io.Closer, error)
}

// version is the newest version of key with a revision of at most at, tombstone
// or not; ErrNotFound if there is none.
func (p *past) version(key store.Key, at store.Revision) (store.Record, error) {
	it, err := p.rows(recordKey(key, at), recordsEnd(key))
	if err != nil {
		return store.Record{}, err
	}
	rec, err := store.Record{}, store.ErrNotFound
	if it.First() {
		rec, err = recordAt(p, it)
	} else if it.Error() != nil {
		err = it.Error()
	}
	return rec, errors.Join(err, it.Close())
}

// listPast lists a state that no view is kept of.
func (s *Store) listPast(ctx context.Context, o store.ListOptions) (store.Page, error) {
	p, err := s.past(o.At)
	if err != nil {
		return store.Page{}, err
	}
	defer p.close()
	from := o.Prefix
	if o.After >= from && o.After != "" {
		from = o.After + "\x01" // no key with a NUL byte lies between
	}
	it, err := p.rows(recordsFrom(from), []byte{rowRecord + 1})
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{Revision: o.At, Records: []store.Record{}}
	err = errors.Join(p.fillPage(ctx, it, o, &page), it.Error(), it.Close())
	if err != nil {
		return store.Page{}, err
	}
	return page, nil
}

func (p *past) fillPage(ctx context.Context, it *pebble.Iterator, o store.ListOptions, page *store.Page) error {
	steps := 0
	for ok := it.First(); ok; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key, rev, err := splitRecordKey(it.Key())
		if err != nil || !strings.HasPrefix(string(key), string(o.Prefix)) {
			return err
		}
		if rev > o.At {
			ok = it.SeekGE(recordKey(key, o.At)) // of this key if it was there then, else of the next
			continue
		}
		h, err := headAt(it)
		switch {
		case err != nil:
			return err
		case h.Deleted:
		case o.Limit > 0 && len(page.Records) == o.Limit:
			page.Remaining++
		default:
			rec, err := part(p, h, o.Part)
			if err != nil {
				return err
			}
			page.Records = append(page.Records, rec)
		}
		ok = it.SeekGE(recordsEnd(key))
	}
	return nil
}
