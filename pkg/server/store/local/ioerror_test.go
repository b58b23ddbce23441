package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server/store"
)

// brokenAt is a disk on which the operation with this number fails that would change
// something, and with lasting all after it, until it is mended.
type brokenAt struct {
	disk    *vfs.MemFS
	fs      vfs.FS
	err     error
	number  int64
	lasting bool
	count   atomic.Int64
	hit     atomic.Bool
	mended  atomic.Bool
}

func newBroken(number int64, err error, lasting bool) *brokenAt {
	b := &brokenAt{disk: vfs.NewCrashableMem(), err: err, number: number, lasting: lasting}
	b.fs = errorfs.Wrap(b.disk, errorfs.InjectorFunc(b.maybe))
	return b
}

func (b *brokenAt) maybe(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || strings.HasSuffix(op.Path, lockFile) {
		return nil
	}
	n := b.count.Add(1)
	if b.mended.Load() || n < b.number || n > b.number && !b.lasting {
		return nil
	}
	b.hit.Store(true)
	return fmt.Errorf("%s: %w", op.Path, b.err)
}

// attempts is what a workload on a disk that fails has met.
type attempts struct {
	acknowledged *ledger
	patience     time.Duration // for one commit
	refused      []string      // values that were certainly not written
	open         int           // commits of which nobody knows
	compactions  sync.WaitGroup
}

const shortly = 10 * time.Millisecond

func faultyOptions(fs vfs.FS) Options {
	o := crashOptions(fs)
	o.outcomeWait = shortly
	return o
}

// try commits what it can, and stops when the store has failed for good.
func (a *attempts) try(t *testing.T, s *Store, from, to int) {
	for n := from; n < to; n++ {
		rec := store.Record{
			Key:   store.Key(fmt.Sprintf("key/%d", n%5)),
			Value: []byte(fmt.Sprintf("%d-%s", n, strings.Repeat("x", n*997%12_000))),
		}
		ctx, cancel := context.WithTimeout(t.Context(), a.patience)
		rev, err := s.Commit(ctx, store.Txn{Writes: []store.Record{rec}})
		cancel()
		switch {
		case err == nil:
			rec.Revision = rev
			if err := a.acknowledged.add(rec); err != nil {
				t.Error(err)
			}
		case errors.Is(err, store.ErrUnknown):
			a.open++
		case errors.Is(err, store.ErrFailed):
			a.open++
			return
		case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrStalled), errors.Is(err, context.DeadlineExceeded):
			a.refused = append(a.refused, string(rec.Value))
		default:
			t.Errorf("commit: %v", err)
		}
		if n%20 == 19 && err == nil {
			a.acknowledged.givenUp = rev - 5
			a.compactions.Go(func() {
				if err := s.Compact(t.Context(), rev-5); err != nil && !errors.Is(err, store.ErrFailed) {
					t.Errorf("compact: %v", err)
				}
			})
		}
	}
}

// verify demands what was acknowledged and none of what was refused.
func (a *attempts) verify(s *Store) error {
	if err := a.acknowledged.verify(s, a.acknowledged); err != nil {
		return err
	}
	page, err := s.List(context.Background(), store.ListOptions{})
	if err != nil {
		return err
	}
	for _, rec := range page.Records {
		heads, err := s.History(context.Background(), rec.Key, 0)
		if err != nil {
			return err
		}
		for _, h := range heads {
			v, err := s.Version(context.Background(), rec.Key, h.Revision)
			if err != nil && !errors.Is(err, store.ErrCompacted) {
				return err
			}
			if slices.Contains(a.refused, string(v.Value)) {
				return fmt.Errorf("%s at %d was refused, and is there", rec.Key, h.Revision)
			}
		}
	}
	return nil
}

// Whichever operation on the disk fails, once or from then on: nothing acknowledged
// is lost, nothing refused turns up, reads go on, and nobody waits for ever. A start
// that meets it says so.
func TestAnErrorInEachOperation(t *testing.T) {
	const writes = 60
	count := newBroken(1<<60, nil, false)
	s, err := Open(faultyOptions(count.fs))
	ok(t, err)
	a := &attempts{acknowledged: newLedger(), patience: time.Minute}
	a.try(t, s, 0, writes)
	a.compactions.Wait()
	ok(t, s.Close())
	total := count.count.Load()
	stride := max(1, total*2/int64(60*crashRounds()))
	r := crashRand(t)
	faults := 0
	for _, err := range []error{syscall.EIO, syscall.ENOSPC} {
		for _, lasting := range []bool{false, true} {
			for n := 1 + r.Int64N(stride); n <= total; n += stride {
				b := newBroken(n, err, lasting)
				if e := oneFault(t, b, writes); e != nil {
					t.Errorf("%v at operation %d of %d, lasting %t: %v", err, n, total, lasting, e)
				}
				if b.hit.Load() {
					faults++
				}
			}
		}
	}
	t.Logf("%d faults", faults)
}

func oneFault(t *testing.T, b *brokenAt, writes int) error {
	a := &attempts{acknowledged: newLedger(), patience: time.Minute}
	if b.lasting && lacking(b.err) != nil {
		a.patience = 2 * shortly // nothing comes of it
	}
	s, err := Open(faultyOptions(b.fs))
	if err != nil {
		// A start that failed leaves a directory for the next one.
		if !errors.Is(err, b.err) {
			return fmt.Errorf("the start does not tell the cause: %w", err)
		}
		b.mended.Store(true)
		s, err = Open(faultyOptions(b.fs))
		if err != nil {
			return fmt.Errorf("start after the fault: %w", err)
		}
		return errors.Join(s.Check(t.Context()), s.Close())
	}
	s.fs.repeat = time.Millisecond
	a.try(t, s, 0, writes)
	if err := a.verify(s); err != nil {
		return fmt.Errorf("while it failed: %w", err)
	}
	b.mended.Store(true)
	a.compactions.Wait()
	if s.failureErr() == nil {
		if err := a.recovers(t, s, writes); err != nil {
			return err
		}
	}
	percent := int(b.number%3) * 50
	clone := b.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(b.number), 0))})
	if err := a.after(clone); err != nil {
		return fmt.Errorf("after a restart, %d%% of what was not synced kept: %w", percent, err)
	}
	endFailed(t, s)
	return nil
}

// recovers demands that a store that only lacked something takes writes again.
func (a *attempts) recovers(t *testing.T, s *Store, writes int) error {
	for s.Healthy() != nil { // what was waiting is on its way
		if errors.Is(s.Healthy(), store.ErrFailed) {
			return fmt.Errorf("the disk is well again: %w", s.Healthy())
		}
		time.Sleep(time.Millisecond)
	}
	open := a.open
	a.open, a.patience = 0, time.Minute
	a.try(t, s, writes, writes+10)
	if a.open > 0 || a.acknowledged.len() == 0 {
		return fmt.Errorf("no writes though the disk is well again: %w", s.Healthy())
	}
	a.open = open
	a.compactions.Wait()
	return errors.Join(a.verify(s), s.Check(t.Context()))
}

// after opens what the disk holds, and again what that leaves if nothing more is
// synced: a write that turned up is as durable as any.
func (a *attempts) after(disk *vfs.MemFS) (err error) {
	s, err := Open(crashOptions(disk))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := errors.Join(a.verify(s), s.Check(context.Background())); err != nil {
		return err
	}
	found := s.State().Current
	again, err := Open(crashOptions(disk.CrashClone(vfs.CrashCloneCfg{})))
	if err != nil {
		return err
	}
	if now := again.State().Current; now != found {
		err = fmt.Errorf("version %d was found, and %d after the next power cut", found, now)
	}
	return errors.Join(err, again.Close())
}
