package local

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
	"example.com/cmctl/pkg/server/store/storetest"
)

// rowsOf holds the rows of one record.
type rowsOf map[string][]byte

func (r rowsOf) Get(row []byte) ([]byte, io.Closer, error) {
	data, found := r[string(row)]
	if !found {
		return nil, nil, pebble.ErrNotFound
	}
	return data, io.NopCloser(nil), nil
}

func encodeRows(rec *store.Record, rev store.Revision, apartAbove int) rowsOf {
	row, apart := record.Encode(rec, apartAbove)
	rows := rowsOf{string(recordKey(rec.Key, rev)): row}
	if apart != nil {
		rows[string(valueKey(rec.Key, rev))] = bytes.Clone(apart)
	}
	return rows
}

func TestRecordsComeBackFromTheirBytes(t *testing.T) {
	for _, apartAbove := range []int{0, defaultApartAbove, 1 << 20} {
		for _, want := range storetest.Samples() {
			rows := encodeRows(&want, 7, apartAbove)
			if apart := len(rows) == 2; apart != (len(want.Value) > apartAbove) {
				t.Errorf("%s: a value of %d bytes in a row of its own: %t", want.Key, len(want.Value), apart)
			}
			got, err := readVersion(rows, want.Key, 7, store.Whole)
			ok(t, err)
			h, err := record.Decode(want.Key, 7, rows[string(recordKey(want.Key, 7))])
			ok(t, err)
			want.Revision = 7
			bare := want
			bare.Value = nil
			for range 2 {
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if !reflect.DeepEqual(h.Record, bare) || h.Size != len(want.Value) {
					t.Errorf("the head is %+v of %d, want %+v", h.Record, h.Size, bare)
				}
				for _, data := range rows {
					clear(data) // nothing in the record may have shared its memory
				}
			}
		}
	}
}

func TestEveryDamagedByteIsSeen(t *testing.T) {
	rec := storetest.Samples()[2]
	rec.Brief = store.Brief{Created: time.Unix(1e9, 0).UTC(), Keys: 1, Head: 10}
	for _, apartAbove := range []int{0, defaultApartAbove} {
		for name, data := range encodeRows(&rec, 42, apartAbove) {
			for i := range data {
				for _, bit := range []byte{1, 0x80} {
					rows := encodeRows(&rec, 42, apartAbove)
					rows[name][i] ^= bit
					_, err := readVersion(rows, rec.Key, 42, store.Whole)
					if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "configmaps/a/b at revision 42") {
						t.Fatalf("byte %d: %v", i, err)
					}
				}
				rows := encodeRows(&rec, 42, apartAbove)
				rows[name] = data[:i]
				if _, err := readVersion(rows, rec.Key, 42, store.Whole); !errors.Is(err, store.ErrDamaged) {
					t.Fatalf("cut at %d: %v", i, err)
				}
			}
			if name[0] == rowValue {
				rows := encodeRows(&rec, 42, apartAbove)
				delete(rows, name)
				if _, err := readVersion(rows, rec.Key, 42, store.Whole); !errors.Is(err, store.ErrDamaged) {
					t.Errorf("without its value: %v", err)
				}
			} else if _, err := record.Decode("another/key", 42, data); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("under another key: %v", err)
			}
		}
	}
}
