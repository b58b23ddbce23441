package local

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// However many ranges the records are read in, a start finds every live key once,
// at its newest version: keys of one version and of many, deleted ones, and keys
// that begin as others do.
func TestIndexIsTheSameHoweverItIsRead(t *testing.T) {
	fs := vfs.NewMem()
	o := mem(fs)
	o.memTableSize = 256 << 10 // many tables
	s := open(t, o)
	random := rand.NewChaCha8([32]byte{})
	want := map[store.Key]store.Revision{}
	for round := range 19 {
		var writes []store.Record
		for n := range 400 {
			if round > n%7*3 {
				continue
			}
			key := store.Key(fmt.Sprintf("configmaps/default/n%d", n/2))
			if n%2 == 1 {
				key += "/x"
			}
			value := make([]byte, 4000)
			_, _ = random.Read(value) // so that it takes room
			writes = append(writes, store.Record{Key: key, Value: value})
		}
		rev, err := s.Commit(t.Context(), store.Txn{Writes: writes})
		ok(t, err)
		for _, w := range writes {
			want[w.Key] = rev
		}
	}
	for n := range 40 {
		key := store.Key(fmt.Sprintf("configmaps/default/n%d", n*5))
		remove(t, s, key)
		delete(want, key)
	}
	ok(t, s.Close())
	s = open(t, o)
	for _, n := range []int{1, 2, 3, 4, 16} {
		bounds, err := s.recordRanges(n)
		ok(t, err)
		if n == 4 && len(bounds) != 5 {
			t.Errorf("the premise of this test no longer holds: %d bounds", len(bounds))
		}
		got, last := map[store.Key]store.Revision{}, store.Key("")
		for i := range len(bounds) - 1 {
			items, err := s.loadItems(bounds[i], bounds[i+1], s.view.Load())
			ok(t, err)
			for _, it := range items {
				if it.Record.Key <= last {
					t.Fatalf("%d ranges: %s comes after %s", n, it.Record.Key, last)
				}
				last = it.Record.Key
				got[it.Record.Key] = it.Record.Revision
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("in %d ranges: %d keys, want %d", n, len(got), len(want))
		}
	}
	if got := s.view.Load().Tree.Len(); got != len(want) {
		t.Errorf("the index has %d keys, want %d", got, len(want))
	}
}
