package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
)

func sampleRecords() []store.Record {
	return []store.Record{
		{Key: "a", Value: []byte{}},
		{Key: "a", Deleted: true},
		{Key: "configmaps/a/b", Value: []byte(`{"metadata":{}}`), VersionAt: 13, Labels: map[string]string{"x": "y", "": "", "a": "b"},
			Meta: store.Meta{Verb: "update", Manager: "m", User: "u", WriteID: "w", Time: time.UnixMilli(-5).UTC()}},
		{Key: "gone", Deleted: true, Meta: store.Meta{Verb: "delete", Time: time.UnixMilli(1 << 42).UTC()}},
		{Key: "big", Value: bytes.Repeat([]byte("x"), 70_000), VersionAt: 70_000},
	}
}

func TestRecordsComeBackFromTheirBytes(t *testing.T) {
	for _, want := range sampleRecords() {
		data := encodeRecord(&want)
		got, err := decodeRecord(want.Key, 7, data, -1)
		ok(t, err)
		want.Revision = 7
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		clear(data) // nothing in the record may have shared its memory
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s changed with the bytes", want.Key)
		}
	}
}

func TestEveryDamagedByteIsSeen(t *testing.T) {
	rec := sampleRecords()[2]
	data := encodeRecord(&rec)
	for i := range data {
		for _, bit := range []byte{1, 0x80} {
			damaged := bytes.Clone(data)
			damaged[i] ^= bit
			_, err := decodeRecord(rec.Key, 42, damaged, -1)
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "configmaps/a/b at revision 42") {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		if _, err := decodeRecord(rec.Key, 42, data[:i], -1); !errors.Is(err, store.ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if _, err := decodeRecord("another/key", 42, data, -1); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("under another key: %v", err)
	}
}

// FuzzDecodeRecord gives the decoder bytes whose checksum is right, so that the
// fields behind it are reached. It must not panic, and what it accepts must be
// what encoding gives.
func FuzzDecodeRecord(f *testing.F) {
	for _, rec := range sampleRecords()[:4] { // mutating the big one takes long and finds nothing
		data := encodeRecord(&rec)
		f.Add(string(rec.Key), data[:len(data)-4])
	}
	f.Add("k", []byte{1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, k string, body []byte) {
		key := store.Key(k)
		_, _ = decodeRecord(key, 1, body, -1) // the checksum is nearly always wrong: no panic
		data := binary.BigEndian.AppendUint32(bytes.Clone(body), recordSum(key, body))
		rec, err := decodeRecord(key, 1, data, -1)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := decodeRecord(key, 1, encodeRecord(&rec), -1)
		if err != nil || !reflect.DeepEqual(again, rec) {
			t.Fatalf("decoded %+v, then %+v, %v", rec, again, err)
		}
	})
}

// Rows must sort as the reads need it: by key, then newest first.
func TestRowsSortByKeyThenNewestFirst(t *testing.T) {
	keys := []store.Key{"a", "a\x01", "a/b", "ab", "b", "a\xff", "\xff"}
	type version struct {
		key store.Key
		rev store.Revision
	}
	var want []version
	slices.Sort(keys)
	for _, k := range keys {
		for _, r := range []store.Revision{maxRevision, 1 << 40, 256, 255, 1} {
			want = append(want, version{k, r})
		}
	}
	var rows [][]byte
	for _, i := range rand.Perm(len(want)) {
		rows = append(rows, recordKey(want[i].key, want[i].rev))
	}
	slices.SortFunc(rows, bytes.Compare)
	for i, row := range rows {
		key, rev, err := splitRecordKey(row)
		ok(t, err)
		if (version{key, rev}) != want[i] {
			t.Fatalf("row %d is %q at %d, want %v", i, key, rev, want[i])
		}
		if bytes.Compare(row, recordsFrom(key)) < 0 || bytes.Compare(row, recordsEnd(key)) >= 0 {
			t.Errorf("row %q is outside the range of its key", row)
		}
	}
}

func TestDamagedRowsAreRefused(t *testing.T) {
	for _, row := range []string{"", "r", "rk", "r\x00aaaaaaaa", "rk\x00aaaaaaa", "rk\x01aaaaaaaa", "xk\x00aaaaaaaa", "rk\x00\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if key, rev, err := splitRecordKey([]byte(row)); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%q gave %q, %d, %v", row, key, rev, err)
		}
	}
	for _, data := range []string{"", "\x00", "\x01", "\x01\x05a", "\x01\x01ab", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if keys, err := decodeRevisionKeys(3, []byte(data)); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%q gave %q, %v", data, keys, err)
		}
	}
}
