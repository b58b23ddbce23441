package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// crashRounds is CRASH_ROUNDS, which multiplies how much the tests of crashes and
// faults try, for a long run by hand.
func crashRounds() int {
	n, err := strconv.Atoi(os.Getenv("CRASH_ROUNDS"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// cuttingFS calls cut before and after everything that makes something durable.
type cuttingFS struct {
	vfs.FS
	cut func()
}

func (f cuttingFS) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return cuttingFile{file, f.cut}, nil
}

func (f cuttingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.wrap(f.FS.Create(name, c))
}

func (f cuttingFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.wrap(f.FS.OpenReadWrite(name, c, o...))
}

func (f cuttingFS) OpenDir(name string) (vfs.File, error) { return f.wrap(f.FS.OpenDir(name)) }

type cuttingFile struct {
	vfs.File
	cut func()
}

func (f cuttingFile) Sync() error {
	f.cut()
	defer f.cut()
	return f.File.Sync()
}

func (f cuttingFile) SyncData() error {
	f.cut()
	defer f.cut()
	return f.File.SyncData()
}

func (f cuttingFile) SyncTo(length int64) (bool, error) {
	f.cut()
	defer f.cut()
	return f.File.SyncTo(length)
}

// wreck is a disk after a power cut, and what had been acknowledged before.
type wreck struct {
	disk         *vfs.MemFS
	acknowledged int // so many of the ledger's entries
}

// cutter takes a wreck at each cut, three ways: nothing that was not synced is left,
// some of it, or all.
type cutter struct {
	disk   *vfs.MemFS
	ledger *ledger
	mu     sync.Mutex // guards what follows
	rng    *rand.Rand
	wrecks []wreck
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.ledger.len() // first: what comes later may be lost
	percent := []int{0, c.rng.IntN(101), 100}[len(c.wrecks)%3]
	clone := c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng})
	c.wrecks = append(c.wrecks, wreck{clone, n})
}

// A power cut at each point at which anything is made durable, from the first start
// to the close, loses nothing acknowledged.
func TestPowerCutAtEverySyncPoint(t *testing.T) {
	r := crashRand(t)
	cuts := 0
	for range crashRounds() {
		c := &cutter{disk: vfs.NewCrashableMem(), ledger: newLedger(), rng: r}
		work(t, crashOptions(cuttingFS{c.disk, c.cut}), c.ledger, rand.New(rand.NewPCG(r.Uint64(), 0)))
		for i, w := range c.wrecks {
			err := survives(w.disk, c.ledger.prefix(w.acknowledged), c.ledger)
			if w.acknowledged == 0 && errors.Is(err, store.ErrDamaged) {
				continue // of the very first start nothing may be left that fits together
			}
			if err != nil {
				t.Errorf("cut %d: %v", i, err)
			}
		}
		cuts += len(c.wrecks)
	}
	t.Logf("%d power cuts", cuts)
}

// work is a store's life from its making to its close, with few writes of each kind:
// small and large values, deletions, flushes, a compaction.
func work(t *testing.T, o Options, l *ledger, r *rand.Rand) {
	s, err := Open(o)
	ok(t, err)
	seen := map[store.Key]store.Revision{}
	for n := range 60 {
		key := store.Key(fmt.Sprintf("key/%d", r.IntN(5)))
		rec := store.Record{Key: key, Value: []byte(fmt.Sprintf("%d-%s", n, strings.Repeat("x", r.IntN(12_000))))}
		if seen[key] != 0 && r.IntN(5) == 0 {
			rec = store.Record{Key: key, Deleted: true}
		}
		rev, err := s.Commit(context.Background(), store.Txn{
			Guards: []store.Guard{{Key: key, Revision: seen[key]}}, Writes: []store.Record{rec},
		})
		ok(t, err)
		rec.Revision = rev
		ok(t, l.add(rec))
		if seen[key] = rev; rec.Deleted {
			seen[key] = 0
		}
		if n%20 == 19 {
			ok(t, s.Compact(context.Background(), rev-5))
		}
	}
	ok(t, s.Close())
}

// survives opens what a disk holds and demands all that was acknowledged, and that
// what was found once is not lost by the next cut either.
func survives(disk *vfs.MemFS, acknowledged, all *ledger) (err error) {
	s, err := Open(crashOptions(disk))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := errors.Join(acknowledged.verify(s, all), s.Check(context.Background())); err != nil {
		return err
	}
	again, err := Open(crashOptions(disk.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		return fmt.Errorf("after the next cut: %w", err)
	}
	if found, now := s.State().Current, again.State().Current; now != found {
		err = fmt.Errorf("version %d was found after the cut, and %d after the next", found, now)
	}
	return errors.Join(err, again.Close())
}

// The test above would see a loss.
func TestPowerCutsSeeALoss(t *testing.T) {
	c := &cutter{disk: vfs.NewCrashableMem(), ledger: newLedger(), rng: crashRand(t)}
	o := crashOptions(cuttingFS{c.disk, c.cut})
	o.withoutSync = true
	work(t, o, c.ledger, rand.New(rand.NewPCG(1, 0)))
	losses := 0
	for _, w := range c.wrecks {
		if survives(w.disk, c.ledger.prefix(w.acknowledged), c.ledger) != nil {
			losses++
		}
	}
	if losses == 0 {
		t.Errorf("commits were acknowledged without a sync, and none of %d power cuts lost any", len(c.wrecks))
	}
	t.Logf("%d of %d power cuts lost acknowledged commits", losses, len(c.wrecks))
}
