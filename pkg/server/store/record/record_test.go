package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/storetest"
)

// What is apart of a value is checked by what is not.
func TestValuesInTwoParts(t *testing.T) {
	for _, want := range storetest.Samples() {
		for _, apartAbove := range []int{0, 10, 1 << 20} {
			row, apart := Encode(&want, apartAbove)
			h, err := Decode(want.Key, 7, row)
			if err != nil {
				t.Fatal(err)
			}
			if h.Apart != (len(want.Value) > apartAbove) || h.Size != len(want.Value) {
				t.Errorf("%s: of %d bytes some are apart: %t", want.Key, h.Size, h.Apart)
			}
			if want.Deleted {
				continue
			}
			got, err := h.With(bytes.Clone(h.Here), apart)
			want.Revision = 7
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s came back as %+v, %v", want.Key, got, err)
			}
			if len(apart) > 0 {
				damaged := bytes.Clone(apart)
				damaged[len(damaged)-1] ^= 1
				for _, bad := range [][]byte{damaged, apart[1:], nil} {
					if _, err := h.With(bytes.Clone(h.Here), bad); !errors.Is(err, store.ErrDamaged) {
						t.Errorf("%s with another rest of %d bytes: %v", want.Key, len(bad), err)
					}
				}
			}
		}
	}
}

// FuzzDecode gives the decoder bytes whose checksum is right, so that the
// fields behind it are reached. It must not panic, and what it accepts must be
// what encoding gives.
func FuzzDecode(f *testing.F) {
	for _, rec := range storetest.Samples() {
		data, _ := Encode(&rec, 20)
		f.Add(string(rec.Key), data[:len(data)-4])
	}
	f.Add("k", []byte{1, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, k string, body []byte) {
		key := store.Key(k)
		_, _ = Decode(key, 1, body) // the checksum is nearly always wrong: no panic
		data := binary.BigEndian.AppendUint32(bytes.Clone(body), sum(key, body))
		h, err := Decode(key, 1, data)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if h.Apart { // only its writer had the value
			return
		}
		rec := h.Record
		if !h.Deleted {
			if rec, err = h.With(bytes.Clone(h.Here), nil); err != nil {
				t.Fatal(err)
			}
		}
		row, _ := Encode(&rec, len(rec.Value))
		again, err := Decode(key, 1, row)
		if err != nil || !reflect.DeepEqual(again.Record, h.Record) || !bytes.Equal(again.Here, h.Here) {
			t.Fatalf("decoded %+v, then %+v, %v", h, again, err)
		}
	})
}
