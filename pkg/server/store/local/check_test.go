package local

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
	"example.com/cmctl/pkg/server/store/record"
)

// Check is at the end of every test, so it must see what it is there to see.
func TestCheckSees(t *testing.T) {
	for name, damage := range map[string]func(s *Store) error{
		"a record that is gone":         func(s *Store) error { return s.db.Delete(recordKey("a", 2), pebble.Sync) },
		"a record that nobody wrote":    func(s *Store) error { return setRecord(s, "x", 2, "1") },
		"a record beyond the counter":   func(s *Store) error { return setRecord(s, "a", 99, "1") },
		"another value than indexed":    func(s *Store) error { return setRecord(s, "a", 2, "other") },
		"a revision that is gone":       func(s *Store) error { return s.db.Delete(revisionKey(2), pebble.Sync) },
		"a revision beyond the counter": func(s *Store) error { return s.db.Set(revisionKey(5), []byte("\x01\x01a"), pebble.Sync) },
		"a counter that went back":      func(s *Store) error { return s.db.Set(metaCurrent, encodeU64(2), pebble.Sync) },
		"a compacted tombstone":         func(s *Store) error { return setTombstone(s, "z") },
		"a value that is gone":          func(s *Store) error { return s.db.Delete(valueKey("long", 4), pebble.Sync) },
		"another value":                 func(s *Store) error { return s.db.Set(valueKey("long", 4), []byte("x"), pebble.Sync) },
		"a value of no record":          func(s *Store) error { return s.db.Set(valueKey("long", 3), []byte("x"), pebble.Sync) },
		"a live key not in the index": func(s *Store) error {
			v := *s.view.Load()
			v.Tree = v.Tree.Copy()
			v.Tree.Delete(&index.Item{Record: store.Record{Key: "b"}})
			s.view.Store(&v)
			return nil
		},
		"an index entry without a record": func(s *Store) error {
			v := *s.view.Load()
			v.Tree = v.Tree.Copy()
			v.Tree.Set(&index.Item{Record: store.Record{Key: "c", Revision: 3}})
			s.view.Store(&v)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(Options{InMemory: true, InitialVersion: 1})
			ok(t, err)
			defer s.Close()
			put(t, s, "a", "1")
			put(t, s, "a", "2")
			put(t, s, "b", "1")
			put(t, s, "long", strings.Repeat("x", 2*defaultApartAbove))
			ok(t, s.Compact(t.Context(), 1))
			ok(t, s.Check(t.Context()))
			ok(t, damage(s))
			if err := s.Check(context.Background()); err == nil {
				t.Error("check saw nothing")
			}
		})
	}
}

func setRecord(s *Store, key store.Key, rev store.Revision, value string) error {
	rec := store.Record{Key: key, Value: []byte(value)}
	row, _ := record.Encode(&rec, defaultApartAbove)
	return s.db.Set(recordKey(key, rev), row, pebble.Sync)
}

func setTombstone(s *Store, key store.Key) error {
	rec := store.Record{Key: key, Deleted: true}
	row, _ := record.Encode(&rec, defaultApartAbove)
	return s.db.Set(recordKey(key, 1), row, pebble.Sync)
}

// The index counts what remains without visiting it; compare with counting.
func TestRemainingIsExact(t *testing.T) {
	r := crashRand(t)
	s := open(t, Options{InMemory: true})
	var keys []store.Key
	for range 3000 {
		key := store.Key(fmt.Sprintf("%c/%c/%d", 'a'+rune(r.IntN(3)), 'a'+rune(r.IntN(3)), r.IntN(200)))
		if i, there := slices.BinarySearch(keys, key); there && r.IntN(2) == 0 {
			keys = slices.Delete(keys, i, i+1)
			remove(t, s, key)
		} else {
			if !there {
				keys = slices.Insert(keys, i, key)
			}
			put(t, s, key, "x")
		}
	}
	for range 300 {
		prefix := store.Key([]string{"", "a", "a/", "b/a", "b/b/", "c/c/1", "d", "a/a/10"}[r.IntN(8)])
		after := store.Key("")
		if r.IntN(2) == 0 {
			after = keys[r.IntN(len(keys))]
		}
		limit := 1 + r.IntN(50)
		var want []store.Key
		for _, k := range keys {
			if strings.HasPrefix(string(k), string(prefix)) && k > after {
				want = append(want, k)
			}
		}
		page, err := s.List(t.Context(), store.ListOptions{Prefix: prefix, After: after, Limit: limit})
		ok(t, err)
		n := min(limit, len(want))
		if len(page.Records) != n || page.Remaining != len(want)-n || (n > 0 && page.Records[n-1].Key != want[n-1]) {
			t.Fatalf("prefix %q after %q limit %d: %d records, %d remaining; want %d and %d",
				prefix, after, limit, len(page.Records), page.Remaining, n, len(want)-n)
		}
	}
}

// Pages of a state whose view is not kept any more come from disk.
func TestPagesWithoutAPinnedView(t *testing.T) {
	s := open(t, Options{InMemory: true})
	var want []string
	for i := range 30 {
		key := fmt.Sprintf("k%02d", i)
		put(t, s, store.Key(key), "1")
		want = append(want, key)
	}
	first, err := s.List(t.Context(), store.ListOptions{Limit: 7})
	ok(t, err)
	for range index.MaxPins + 1 {
		put(t, s, "k05", "2")
		remove(t, s, "k20")
		_, err := s.List(t.Context(), store.ListOptions{Limit: 1})
		ok(t, err)
	}
	if s.pins.Get(first.Revision) != nil {
		t.Fatal("the view is still kept")
	}
	var got []string
	for page := first; ; {
		for _, rec := range page.Records {
			got = append(got, string(rec.Key))
		}
		if len(got)+page.Remaining != 30 {
			t.Errorf("%d read, %d remaining", len(got), page.Remaining)
		}
		if page.Remaining == 0 {
			break
		}
		page, err = s.List(t.Context(), store.ListOptions{Limit: 7, At: first.Revision, After: store.Key(got[len(got)-1])})
		ok(t, err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
