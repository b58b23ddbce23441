package local

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

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
		if value := valueKey(key, rev); value[0] != rowValue || !bytes.Equal(value[1:], row[1:]) {
			t.Errorf("the value of row %q is at %q", row, value)
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
