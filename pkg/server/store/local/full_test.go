package local

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server/store"
)

// A disk that fills up: writes stop first, deletions later, all of them certain; and
// all go on by themselves.
func TestARoomThatShrinks(t *testing.T) {
	const total = 1 << 30 // the reserve is an eighth
	disk := vfs.NewMem()
	left := func(mib uint64) {
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20, TotalBytes: total})
	}
	left(900)
	s := open(t, mem(disk))
	put(t, s, "a", "1")
	put(t, s, "b", "1")
	commit := func(rec store.Record) error {
		_, err := s.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}})
		return err
	}
	for _, c := range []struct {
		mib                    uint64
		puts, deletes, healthy bool
	}{
		{128, true, true, true},
		{127, false, true, false},
		{64, false, true, false},
		{63, false, false, false},
		{64, false, true, false},
		{500, true, true, true},
	} {
		left(c.mib)
		before := s.State().Current
		if err := commit(store.Record{Key: "a", Value: []byte("2")}); errors.Is(err, store.ErrFull) == c.puts {
			t.Errorf("%d MiB left: put: %v", c.mib, err)
		}
		if err := commit(store.Record{Key: "gone", Deleted: true}); errors.Is(err, store.ErrFull) == c.deletes {
			t.Errorf("%d MiB left: deletion: %v", c.mib, err)
		}
		if err := s.Healthy(); errors.Is(err, store.ErrFull) == c.healthy {
			t.Errorf("%d MiB left: health: %v", c.mib, err)
		}
		if !c.puts && !c.deletes && s.State().Current != before {
			t.Errorf("%d MiB left: refused writes moved the version", c.mib)
		}
		if rec, err := s.Get(t.Context(), "b", 0); err != nil || string(rec.Value) != "1" {
			t.Errorf("%d MiB left: read: %v", c.mib, err)
		}
	}
}

// A log that can't grow in the middle of a commit waits for what it lacks. Meanwhile
// writes are refused for certain and reads go on; then the commit that waited ends
// well, and others do again.
func TestALogThatLacksSomethingGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		lack  error
		kind  errorfs.OpKind
		tells error
	}{
		"space to write":        {syscall.ENOSPC, errorfs.OpFileWrite, store.ErrFull},
		"a quota":               {syscall.EDQUOT, errorfs.OpFileWrite, store.ErrFull},
		"space for a new log":   {syscall.ENOSPC, errorfs.OpCreate, store.ErrFull},
		"files for a new log":   {syscall.EMFILE, errorfs.OpCreate, store.ErrStalled},
		"files of all programs": {syscall.ENFILE, errorfs.OpCreate, store.ErrStalled},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty()
			o := mem(f.fs)
			o.memTableSize = 256 << 10
			s := open(t, o)
			s.fs.repeat = time.Millisecond
			put(t, s, "a", "1")
			f.failWith(c.lack, func(op errorfs.Op) bool { return op.Kind == c.kind && strings.HasSuffix(op.Path, ".log") })
			waits := fillLog(s)
			for !errors.Is(s.Healthy(), c.tells) {
				time.Sleep(time.Millisecond)
			}
			before := s.State()
			if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: "refused", Value: []byte("1")}}}); !errors.Is(err, c.tells) {
				t.Errorf("commit: %v", err)
			}
			if rec, err := s.Get(t.Context(), "a", 0); err != nil || string(rec.Value) != "1" || s.State() != before {
				t.Errorf("read: %v, state %+v", err, s.State())
			}
			f.fail.Store(nil)
			if o := <-waits; o.err != nil {
				t.Errorf("the commit that waited: %v", o.err)
			}
			ok(t, s.Healthy())
			put(t, s, "a", "2")
			if _, err := s.Get(t.Context(), "refused", 0); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("what was refused: %v", err)
			}
		})
	}
}

// fillLog commits enough for a new log and tells how the last commit ended.
func fillLog(s *Store) chan outcome {
	done := make(chan outcome, 1)
	go func() {
		for range 20 {
			rev, err := s.Commit(context.Background(), store.Txn{Writes: []store.Record{{Key: "fill", Value: make([]byte, 50_000)}}})
			if err != nil {
				done <- outcome{rev, err}
				return
			}
		}
		done <- outcome{}
	}()
	return done
}

// A store that is closed while it waits for space says so, and is whole afterwards.
func TestCloseWhileItWaitsForSpace(t *testing.T) {
	f := newFaulty()
	s := openFaulty(t, f)
	rev := put(t, s, "a", "1")
	f.failWith(syscall.ENOSPC, func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") })
	waits := commit(s, store.Txn{Writes: []store.Record{{Key: "b", Value: []byte("1")}}})
	for s.fs.lacks() == nil {
		time.Sleep(time.Millisecond)
	}
	endFailed(t, s)
	if o := <-waits; o.err == nil {
		t.Error("the commit that waited was acknowledged")
	}
	if _, err := f.survivors(t).Get(t.Context(), "a", rev); err != nil {
		t.Error(err)
	}
}

// A disk that hangs: who waits for its own commit is told in time that the outcome is
// open, new writes are refused, reads go on. When the disk goes on, so does all else.
func TestADiskThatHangs(t *testing.T) {
	f := newFaulty()
	o := mem(f.fs)
	o.outcomeWait, o.stalledAfter = time.Millisecond, time.Nanosecond
	s := open(t, o)
	old := put(t, s, "a", "1")
	g := gate{entered: make(chan struct{}), let: make(chan struct{})}
	f.failOn(g.hold)
	ctx, cancel := context.WithCancel(t.Context())
	open := make(chan error)
	go func() {
		_, err := s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("2")}}})
		open <- err
	}()
	<-g.entered
	if err := s.Healthy(); !errors.Is(err, store.ErrStalled) {
		t.Errorf("health: %v", err)
	}
	if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: "b", Value: []byte("1")}}}); !errors.Is(err, store.ErrStalled) {
		t.Errorf("commit behind it: %v", err)
	}
	cancel()
	if err := <-open; !errors.Is(err, store.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("commit under way: %v", err)
	}
	if rec, err := s.Get(t.Context(), "a", 0); err != nil || rec.Revision != old {
		t.Errorf("read: %v", err)
	}
	f.fail.Store(nil)
	g.let <- struct{}{}
	for s.Healthy() != nil {
		time.Sleep(time.Millisecond)
	}
	// It landed after all, once.
	if rec, err := s.Get(t.Context(), "a", 0); err != nil || string(rec.Value) != "2" {
		t.Errorf("what was open: %v", err)
	}
	if _, err := s.Get(t.Context(), "b", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was refused: %v", err)
	}
}

// A start begins by writing out the logs. Without room for that it is refused, and
// nothing is lost.
func TestAStartNeedsRoomForItsLogs(t *testing.T) {
	disk := vfs.NewMem()
	s, err := Open(mem(disk))
	ok(t, err)
	put(t, s, "a", strings.Repeat("x", 4<<20))
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 4 << 20, TotalBytes: 1 << 30})
	ok(t, s.Close())
	if _, err := Open(mem(disk)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("open: %v", err)
	}
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 6 << 20, TotalBytes: 1 << 30})
	s = open(t, mem(disk))
	if rec, err := s.Get(t.Context(), "a", 0); err != nil || len(rec.Value) != 4<<20 {
		t.Errorf("get: %d bytes, %v", len(rec.Value), err)
	}
}
