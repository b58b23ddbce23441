package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// defaultApartAbove is the length beyond which a value gets its own row. Below, a
// second row would cost more than reading past the value.
const defaultApartAbove = 4096

// part is the record of a head that was read from r, with as much of its value as
// is needed.
func part(r reader, h record.Head, p store.Part) (store.Record, error) {
	switch {
	case !p.Suffices(h.Brief):
		return complete(r, h)
	case p == store.BriefAlone:
		return h.Record, nil
	}
	return h.Alone(h.Size), nil
}

// complete is the whole record of a head that was read from r.
func complete(r reader, h record.Head) (store.Record, error) {
	if h.Deleted {
		return h.Record, nil
	}
	value := append(make([]byte, 0, h.Size), h.Here...) // before r reads on, and the row is gone
	if !h.Apart {
		return h.With(value, nil)
	}
	rest, closer, err := r.Get(valueKey(h.Key, h.Revision))
	if errors.Is(err, pebble.ErrNotFound) {
		err = fmt.Errorf("%w, %w", record.Damaged(h.Key, h.Revision, "its value is gone"), err)
	}
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			return store.Record{}, err // as in readVersion
		}
		return store.Record{}, ofVersion(h.Key, h.Revision, err)
	}
	defer closer.Close()
	return h.With(value, rest)
}

// readVersion is the record of the version rev, which is there.
func readVersion(r reader, key store.Key, rev store.Revision, p store.Part) (store.Record, error) {
	row, closer, err := r.Get(recordKey(key, rev))
	if err != nil {
		if errors.Is(err, pebble.ErrNotFound) {
			return store.Record{}, err // which its caller may know the reason of
		}
		return store.Record{}, ofVersion(key, rev, err)
	}
	defer closer.Close()
	h, err := record.Decode(key, rev, row)
	if err != nil {
		return store.Record{}, err
	}
	return part(r, h, p)
}

// headAt decodes the record that it stands on. What it returns is good until it
// moves.
func headAt(it *pebble.Iterator) (record.Head, error) {
	key, rev, err := splitRecordKey(it.Key())
	if err != nil {
		return record.Head{}, err
	}
	row, err := it.ValueAndErr()
	if err != nil {
		return record.Head{}, ofVersion(key, rev, err)
	}
	return record.Decode(key, rev, row)
}

// recordAt is the whole record that it stands on, whose value r has.
func recordAt(r reader, it *pebble.Iterator) (store.Record, error) {
	h, err := headAt(it)
	if err != nil {
		return store.Record{}, err
	}
	return complete(r, h)
}
