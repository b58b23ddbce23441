package local

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

var crashSeed = flag.Uint64("crash.seed", 0, "seed of the crash tests; 0 takes a random one")

func crashRand(t testing.TB) *rand.Rand {
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -crash.seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// ledger is what a store has acknowledged.
type ledger struct {
	mu      sync.Mutex     // guards what follows
	entries []store.Record // in the order in which they were acknowledged
	commits map[store.Revision]store.Record
	last    store.Revision
	newest  map[store.Key]store.Revision
	givenUp store.Revision // states before it may be gone, whatever became of the compaction
}

func newLedger() *ledger {
	return &ledger{commits: map[store.Revision]store.Record{}, newest: map[store.Key]store.Revision{}}
}

func (l *ledger) add(rec store.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, twice := l.commits[rec.Revision]; twice {
		return fmt.Errorf("revision %d was given twice", rec.Revision)
	}
	l.entries = append(l.entries, rec)
	l.commits[rec.Revision] = rec
	l.last = max(l.last, rec.Revision)
	l.newest[rec.Key] = max(l.newest[rec.Key], rec.Revision)
	return nil
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// prefix is what was acknowledged first, so many entries.
func (l *ledger) prefix(n int) *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := newLedger()
	for _, rec := range l.entries[:n] {
		_ = p.add(rec) // it was added before
	}
	return p
}

// copy is what was acknowledged up to now.
func (l *ledger) copy() *ledger { return l.prefix(l.len()) }

// verify demands that everything acknowledged is in s with its exact value: each
// version that is not compacted, and of each key a version no older than the
// newest that was acknowledged. all is what was acknowledged until the writers
// ended: it tells what else may have reached the disk.
func (l *ledger) verify(s *Store, all *ledger) error {
	state := s.State()
	if state.Current < l.last {
		return fmt.Errorf("current is %d, %d was acknowledged", state.Current, l.last)
	}
	for rev, want := range l.commits {
		if rev < max(state.Compacted, l.givenUp) {
			continue
		}
		if err := same(s, want); err != nil {
			return err
		}
	}
	for key, rev := range l.newest {
		if err := l.verifyKey(s, key, rev, all); err != nil {
			return err
		}
	}
	return nil
}

func (l *ledger) verifyKey(s *Store, key store.Key, rev store.Revision, all *ledger) error {
	got, err := s.Get(context.Background(), key, 0)
	switch {
	case errors.Is(err, store.ErrNotFound) && (l.commits[rev].Deleted || all.deletes(key, rev, s.State().Current)):
		return nil
	case err != nil:
		return fmt.Errorf("%s was acknowledged at %d: %w", key, rev, err)
	case got.Revision < rev:
		return fmt.Errorf("%s is at %d, acknowledged at %d", key, got.Revision, rev)
	}
	return nil
}

// deletes says whether a commit after the one and up to the other deleted key.
func (l *ledger) deletes(key store.Key, after, upTo store.Revision) bool {
	for rev := after + 1; rev <= upTo; rev++ {
		if rec, known := l.commits[rev]; known && rec.Key == key && rec.Deleted {
			return true
		}
	}
	return false
}

func same(s *Store, want store.Record) error {
	got, err := s.Get(context.Background(), want.Key, want.Revision)
	if want.Deleted && errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s at %d: %w; acknowledged were %d bytes", want.Key, want.Revision, err, len(want.Value))
	}
	if got.Revision != want.Revision || string(got.Value) != string(want.Value) {
		return fmt.Errorf("%s at %d: revision %d, %d bytes; acknowledged were %d bytes",
			want.Key, want.Revision, got.Revision, len(got.Value), len(want.Value))
	}
	return nil
}

// crash is a store under load whose machine can stop at any time.
type crash struct {
	disk    *vfs.MemFS
	s       *Store
	ledger  *ledger
	acks    atomic.Int64
	stopAt  int64
	reached chan struct{}
	stop    chan struct{}
	work    sync.WaitGroup
}

func crashOptions(fs vfs.FS) Options {
	return Options{Dir: "store", FS: reusingFS{fs}, memTableSize: 128 << 10, HistoryLimit: 2, InlineValueSize: 500, apartAbove: 1000, afterDamage: time.Nanosecond}
}

// reusingFS reuses files in two steps. MemFS does it in one, in which it takes the
// lock for reading that it has, and never gets it if a power cut waits in between.
type reusingFS struct{ vfs.FS }

func (f reusingFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Rename(old, name); err != nil {
		return nil, err
	}
	return f.OpenReadWrite(name, c)
}

func startCrash(t *testing.T, o Options, disk *vfs.MemFS, r *rand.Rand, compact bool) *crash {
	s, err := Open(o)
	ok(t, err)
	c := &crash{
		disk: disk, s: s, ledger: newLedger(), stopAt: 1 + r.Int64N(600),
		reached: make(chan struct{}), stop: make(chan struct{}),
	}
	for i := range 4 {
		rng := rand.New(rand.NewPCG(r.Uint64(), 0))
		c.work.Go(func() { c.write(t, i, rng) })
	}
	if compact {
		c.work.Go(func() { c.compact(t) })
	}
	return c
}

func (c *crash) running() bool {
	select {
	case <-c.stop:
		return false
	default:
		return true
	}
}

// write swaps the versions of its own keys, deletes some, and notes what was
// acknowledged.
func (c *crash) write(t *testing.T, id int, r *rand.Rand) {
	seen := map[store.Key]store.Revision{}
	for n := 0; c.running(); n++ {
		key := store.Key(fmt.Sprintf("w%d/%d", id, r.IntN(5)))
		rec := store.Record{Key: key, Value: []byte(fmt.Sprintf("%d-%d-%s", id, n, strings.Repeat("x", r.IntN(2000))))}
		if seen[key] != 0 && r.IntN(8) == 0 {
			rec = store.Record{Key: key, Deleted: true}
		}
		rev, err := c.s.Commit(context.Background(), store.Txn{
			Guards: []store.Guard{{Key: key, Revision: seen[key]}},
			Writes: []store.Record{rec},
		})
		if err != nil {
			t.Errorf("commit: %v", err)
			return
		}
		rec.Revision = rev
		if err := c.ledger.add(rec); err != nil {
			t.Error(err)
		}
		if seen[key] = rev; rec.Deleted {
			seen[key] = 0
		}
		if c.acks.Add(1) == c.stopAt {
			close(c.reached)
		}
	}
}

func (c *crash) compact(t *testing.T) {
	for c.running() {
		if err := c.s.Compact(context.Background(), c.s.State().Current); err != nil {
			t.Errorf("compact: %v", err)
			return
		}
	}
}

// stopMachine is what the disk holds if the machine stops in the midst of it, and
// what had been acknowledged before.
func (c *crash) stopMachine(r *rand.Rand) (*vfs.MemFS, *ledger) {
	<-c.reached
	acknowledged := c.ledger.copy() // first: what comes later may be lost
	return c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r}), acknowledged
}

func (c *crash) end(t *testing.T) {
	close(c.stop)
	c.work.Wait()
	ok(t, c.s.Close())
}

// Whenever the machine stops, whatever the disk kept of what was not synced: every
// acknowledged commit is there, no revision is another than was acknowledged, and
// none is given out again. Each store is crashed several times in a row.
func TestCrashLosesNothingAcknowledged(t *testing.T) {
	r := crashRand(t)
	for range 6 {
		disk := vfs.NewCrashableMem()
		for life := range 3 {
			c := startCrash(t, crashOptions(disk), disk, r, life > 0)
			before := c.s.State()
			after, acknowledged := c.stopMachine(r)
			c.end(t)

			s, err := Open(crashOptions(after))
			ok(t, err)
			if err := acknowledged.verify(s, c.ledger); err != nil {
				t.Errorf("life %d: %v", life, err)
			}
			// What was acknowledged only after the stop may be there, but not as
			// something else.
			for rev, rec := range c.ledger.commits {
				if state := s.State(); rev <= state.Current && rev >= state.Compacted {
					if err := same(s, rec); err != nil {
						t.Errorf("life %d: written after the stop: %v", life, err)
					}
				}
			}
			if now := s.State(); now.Compacted < before.Compacted || now.Current < before.Current {
				t.Errorf("life %d: state went from %+v to %+v", life, before, now)
			}
			ok(t, s.Check(context.Background()))
			if rev := put(t, s, "next", "x"); rev <= acknowledged.last {
				t.Errorf("life %d: revision %d was given again", life, rev)
			}
			ok(t, s.Compact(context.Background(), s.State().Current))
			ok(t, s.Check(context.Background()))
			clear := func(prefix store.Key) {
				page, err := s.List(context.Background(), store.ListOptions{Prefix: prefix})
				ok(t, err)
				for _, rec := range page.Records {
					remove(t, s, rec.Key)
				}
			}
			clear("w") // the next writers begin with absent keys
			ok(t, s.Close())
			disk = after
		}
	}
}

// The tests above would see a loss: a store that acknowledges before it syncs
// loses commits in a crash, and verify says so.
func TestCrashTestsSeeALoss(t *testing.T) {
	r := crashRand(t)
	for range 20 {
		disk := vfs.NewCrashableMem()
		o := crashOptions(disk)
		o.withoutSync = true
		c := startCrash(t, o, disk, r, false)
		<-c.reached
		acknowledged := c.ledger.copy()
		after := disk.CrashClone(vfs.CrashCloneCfg{})
		c.end(t)
		s, err := Open(crashOptions(after))
		ok(t, err)
		err = acknowledged.verify(s, c.ledger)
		ok(t, s.Close())
		if err != nil {
			t.Logf("seen: %v", err)
			return
		}
	}
	t.Fatal("commits were acknowledged without a sync, and no crash lost any")
}

// A crash while the store is made leaves something that can be opened.
func TestCrashDuringFirstOpen(t *testing.T) {
	r := crashRand(t)
	for range 20 {
		disk := vfs.NewCrashableMem()
		s, err := Open(crashOptions(disk))
		ok(t, err)
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
		ok(t, s.Close())
		s, err = Open(crashOptions(after))
		ok(t, err)
		if rev := put(t, s, "a", "1"); rev != 1 {
			t.Errorf("first revision is %d", rev)
		}
		ok(t, s.Close())
	}
}
