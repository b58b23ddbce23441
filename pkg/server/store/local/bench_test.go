package local

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

// BenchmarkSwap is how many writers swapping values of 1 KiB, each its own key,
// get done on the real disk, next to what Pebble does with as many goroutines
// that each sync a batch of one record: x_of_pebble is the share.
func BenchmarkSwap(b *testing.B) {
	for _, writers := range []int{1, 32, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) { benchmarkSwap(b, writers) })
	}
}

func benchmarkSwap(b *testing.B, writers int) {
	raw := rawPebble(b, writers, b.N)
	s, err := Open(Options{Dir: b.TempDir()})
	ok(b, err)
	defer s.Close()
	value := bytes.Repeat([]byte("v"), 1024)
	ctx := context.Background()
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	b.ResetTimer()
	ours := share(writers, b.N, func(id int) func() error {
		key := store.Key(fmt.Sprintf("configmaps/bench/%d", id))
		var seen store.Revision
		return func() (err error) {
			seen, err = s.Commit(ctx, store.Txn{
				Guards: []store.Guard{{Key: key, Revision: seen}},
				Writes: []store.Record{{Key: key, Value: value}},
			})
			return err
		}
	}, b)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/ours.Seconds(), "swaps/s")
	b.ReportMetric(float64(b.N)/raw.Seconds(), "pebble/s")
	b.ReportMetric(raw.Seconds()/ours.Seconds(), "x_of_pebble")
}

func rawPebble(b *testing.B, writers, n int) time.Duration {
	s := &Store{opts: Options{}.withDefaults(), failed: make(chan struct{})}
	s.log = s.opts.Logger
	s.fs = newFreezingFS(s.opts.FS, nil, s.fail)
	db, err := pebble.Open(b.TempDir(), s.pebbleOptions(nil, false))
	ok(b, err)
	defer db.Close()
	value := bytes.Repeat([]byte("v"), 1024)
	return share(writers, n, func(id int) func() error {
		i := store.Revision(0)
		key := store.Key(fmt.Sprintf("configmaps/bench/%d", id))
		return func() error {
			i++
			return db.Set(recordKey(key, i), value, pebble.Sync)
		}
	}, b)
}

// share has n calls made by so many goroutines.
func share(writers, n int, make func(id int) func() error, b *testing.B) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var work sync.WaitGroup
	start := time.Now()
	for id := range writers {
		call := make(id)
		work.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	return time.Since(start)
}

// BenchmarkSwapWatched is a writer under the eyes of 1,000 watchers.
func BenchmarkSwapWatched(b *testing.B) {
	for _, watchers := range []int{0, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			s, err := Open(Options{Dir: b.TempDir()})
			ok(b, err)
			defer s.Close()
			ctx, cancel := context.WithCancel(context.Background())
			var work sync.WaitGroup
			for range watchers {
				w, err := s.Watch(ctx, "configmaps/", 0)
				ok(b, err)
				work.Go(func() {
					for err := error(nil); err == nil; {
						_, err = w.Next(ctx)
					}
				})
			}
			value := bytes.Repeat([]byte("v"), 1024)
			b.ResetTimer()
			for range b.N {
				_, err := s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "configmaps/a/b", Value: value}}})
				ok(b, err)
			}
			b.StopTimer()
			cancel()
			work.Wait()
		})
	}
}

// filled is a store with n keys of so many bytes.
func filled(b *testing.B, n, size int) *Store {
	s, err := Open(Options{InMemory: true})
	ok(b, err)
	b.Cleanup(func() { s.Close() })
	value := bytes.Repeat([]byte("v"), size)
	for i := 0; i < n; i += 1000 {
		var txn store.Txn
		for j := range min(1000, n-i) {
			txn.Writes = append(txn.Writes, store.Record{Key: store.Key(fmt.Sprintf("configmaps/bench/%06d", i+j)), Value: value})
		}
		_, err := s.Commit(context.Background(), txn)
		ok(b, err)
	}
	return s
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{1024, 16 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			s := filled(b, 2000, size)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := s.Get(context.Background(), store.Key(fmt.Sprintf("configmaps/bench/%06d", i%2000)), 0); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkList1000 is a page of 1,000 out of 100,000 keys: of the present, and of
// a state that is read from disk.
func BenchmarkList1000(b *testing.B) {
	s := filled(b, 100_000, 200)
	old := s.State().Current
	put(b, s, "other", "x")
	ctx := context.Background()
	b.Run("now", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			page, err := s.List(ctx, store.ListOptions{Prefix: "configmaps/", Limit: 1000})
			if err != nil || page.Remaining != 99_000 {
				b.Fatal(page.Remaining, err)
			}
		}
	})
	b.Run("past", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			page, err := s.List(ctx, store.ListOptions{Prefix: "configmaps/bench/099", Limit: 1000, At: old})
			if err != nil || len(page.Records) != 1000 {
				b.Fatal(len(page.Records), err)
			}
		}
	})
}

// BenchmarkHistory is of a key with 300 versions of 256 KiB, on disk: the list, and
// one version of it, which was read from a list of whole versions once.
func BenchmarkHistory(b *testing.B) {
	s, err := Open(Options{Dir: b.TempDir()})
	ok(b, err)
	defer s.Close()
	ctx := context.Background()
	value := make([]byte, 256<<10)
	var rev store.Revision
	for i := range 300 {
		for j := range value {
			value[j] = byte('a' + (i+j*j)%26)
		}
		rev, err = s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "configmaps/a/b", Value: bytes.Clone(value), UID: "u"}}})
		ok(b, err)
	}
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if heads, err := s.History(ctx, "configmaps/a/b", 0); err != nil || len(heads) != 300 {
				b.Fatal(len(heads), err)
			}
		}
	})
	b.Run("version", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if rec, err := s.Version(ctx, "configmaps/a/b", rev-150); err != nil || len(rec.Value) != len(value) {
				b.Fatal(err)
			}
		}
	})
}
