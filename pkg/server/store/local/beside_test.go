package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// A read blames the damaged object alone, in whatever order things are read.
func TestWhatLiesBesideDamageIsRead(t *testing.T) {
	disk, noise := vfs.NewMem(), rand.NewChaCha8([32]byte{1})
	long := func() string {
		value := make([]byte, 17_000)
		_, _ = noise.Read(value) // it has no error to tell, and does not compress
		return string(value)
	}
	s, err := Open(mem(disk))
	ok(t, err)
	keys := []store.Key{}
	for n := range 20 {
		keys = append(keys, store.Key(fmt.Sprintf("o%02d", n)))
		put(t, s, keys[n], long())
	}
	ok(t, s.db.Flush())
	ok(t, s.Close())
	lost := keys[9]
	file := hurt(t, disk, func(l *sstable.Layout) uint64 {
		value := l.Data[9].Handle // values come before records, each in a block of its own
		return value.Offset + value.Length/2
	})
	o := mem(disk)
	o.verifyRate, o.afterDamage = -1, time.Nanosecond

	for name, read := range map[string]func(*Store) ([]store.Record, error){
		"a list": func(s *Store) ([]store.Record, error) {
			page, err := s.List(t.Context(), store.ListOptions{})
			return page.Records, err
		},
		"a list of a state before": func(s *Store) ([]store.Record, error) {
			page, err := s.listPast(t.Context(), store.ListOptions{At: 20})
			return page.Records, err
		},
		"a watch": func(s *Store) ([]store.Record, error) {
			w, err := s.Watch(t.Context(), "", 1)
			ok(t, err)
			defer w.Close()
			for err == nil {
				_, err = w.Next(t.Context())
			}
			return nil, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(o)
			ok(t, err)
			_, err = read(s)
			isKnown(t, err, lost, file)
			for _, key := range keys {
				if _, err := s.Get(t.Context(), key, 0); (err != nil) != (key == lost) {
					t.Errorf("%s: %v", key, err)
				}
			}
			ok(t, s.Close())
		})
	}

	t.Run("a page that ends before it", func(t *testing.T) {
		s, err := Open(o)
		ok(t, err)
		page, err := s.List(t.Context(), store.ListOptions{Limit: slices.Index(keys, lost)})
		if err != nil || len(page.Records) != slices.Index(keys, lost) {
			t.Errorf("%d records, %v", len(page.Records), err)
		}
		ok(t, s.Healthy()) // it has not even met it
		ok(t, s.Close())
	})

	t.Run("what lies between, in a newer table", func(t *testing.T) {
		s, err := Open(o)
		ok(t, err)
		between := store.Key("o08x")
		put(t, s, between, long())
		page, err := s.List(t.Context(), store.ListOptions{After: "o08", Limit: 1})
		if err != nil || page.Records[0].Key != between {
			t.Errorf("%v", err)
		}
		ok(t, s.Close())
	})
}

// A wrong checksum in a large block is told at once; Pebble would try each bit of it.
func TestAWrongChecksumIsNotSearchedFor(t *testing.T) {
	disk := vfs.NewMem()
	value := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(value) // it has no error to tell
	s, err := Open(mem(disk))
	ok(t, err)
	put(t, s, "a", string(value))
	ok(t, s.db.Flush())
	ok(t, s.Close())
	file := hurt(t, disk, func(l *sstable.Layout) uint64 { return l.Data[0].Offset + 1000 })
	o := mem(disk)
	o.verifyRate = -1
	s, err = Open(o)
	ok(t, err)
	_, err = s.Get(t.Context(), "a", 0)
	isKnown(t, err, "a", file)
	isKnown(t, tableDamage(file, s.validateTable(t.Context(), file, nil)), "", file)
	ok(t, s.Close())
}
