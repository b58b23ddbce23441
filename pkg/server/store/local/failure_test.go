package local

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server/store"
)

var errDisk = errors.New("input/output error")

// faulty is a disk on which operations start to fail when it is told to.
type faulty struct {
	disk *vfs.MemFS
	fs   vfs.FS
	fail atomic.Pointer[func(errorfs.Op) bool]
	err  error // what they fail with; set before fail
}

func newFaulty() *faulty {
	f := &faulty{disk: vfs.NewCrashableMem(), err: errDisk}
	f.fs = errorfs.Wrap(f.disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if p := f.fail.Load(); p != nil && (*p)(op) {
			return f.err
		}
		return nil
	}))
	return f
}

func (f *faulty) failOn(match func(errorfs.Op) bool) { f.fail.Store(&match) }

func (f *faulty) failWith(err error, match func(errorfs.Op) bool) {
	f.err = err
	f.failOn(match)
}

// survivors opens what the disk holds if the machine stops now.
func (f *faulty) survivors(t *testing.T) *Store {
	t.Helper()
	return open(t, mem(f.disk.CrashClone(vfs.CrashCloneCfg{})))
}

// openFaulty opens a store whose end is not checked, because it fails.
func openFaulty(t *testing.T, f *faulty) *Store {
	t.Helper()
	o := mem(f.fs)
	o.memTableSize = 256 << 10
	s, err := Open(o)
	ok(t, err)
	return s
}

// endFailed closes a store that failed, which by itself can't be closed.
func endFailed(t *testing.T, s *Store) {
	t.Helper()
	err := s.Close()
	if !s.fs.isFrozen() {
		return
	}
	if !errors.Is(err, store.ErrFailed) {
		t.Errorf("close of a store that stands still: %v", err)
	}
	s.fs.thaw()
	s.workers.Wait()
	s.ops.Lock()
	defer s.ops.Unlock()
	s.fs.armed.Store(false)
	_ = s.release() // what it says of a broken disk is of no interest
}

// Whatever part of Pebble's log fails: the commit that met it is not
// acknowledged, none after it is taken, reads and the process go on, and what was
// acknowledged before survives.
func TestFailingLogStopsWritesAndNothingElse(t *testing.T) {
	isLog := func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }
	for name, match := range map[string]func(errorfs.Op) bool{
		"write": func(op errorfs.Op) bool { return isLog(op) && op.Kind == errorfs.OpFileWrite },
		"sync": func(op errorfs.Op) bool {
			return isLog(op) && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
		},
		"everything": func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty()
			s := openFaulty(t, f)
			ctx := context.Background()
			w, err := s.Watch(ctx, "", 0)
			ok(t, err)
			before := put(t, s, "a", "1")
			f.failOn(match)

			_, err = s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("2")}}})
			if !errors.Is(err, store.ErrFailed) || !errors.Is(err, errDisk) {
				t.Fatalf("commit on a failing log: %v", err)
			}
			f.fail.Store(nil) // the disk is well again, but nobody knows what was lost
			_, err = s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("3")}}})
			if !errors.Is(err, store.ErrFailed) {
				t.Fatalf("commit after a failure: %v", err)
			}
			if err := s.Compact(ctx, before); !errors.Is(err, store.ErrFailed) {
				t.Errorf("compact after a failure: %v", err)
			}
			if err := s.Healthy(); !errors.Is(err, store.ErrFailed) {
				t.Errorf("health after a failure: %v", err)
			}
			for _, at := range []store.Revision{0, before} {
				if rec, err := s.Get(ctx, "a", at); err != nil || string(rec.Value) != "1" {
					t.Errorf("get at %d after a failure: %s, %v", at, rec.Value, err)
				}
			}
			if records, err := s.History(ctx, "a", 0); err != nil || len(records) != 1 {
				t.Errorf("history after a failure: %v, %v", records, err)
			}
			events, err := w.Next(ctx)
			if err != nil || len(events) != 1 || w.Progress() != before {
				t.Errorf("watch after a failure: %v, %v, progress %d", events, err, w.Progress())
			}
			if s.State().Current != before {
				t.Errorf("current is %d, acknowledged was %d", s.State().Current, before)
			}

			again := f.survivors(t)
			rec, err := again.Get(ctx, "a", before)
			if err != nil || string(rec.Value) != "1" {
				t.Errorf("after the restart: %s, %v", rec.Value, err)
			}
			endFailed(t, s)
		})
	}
}

// The log is changed for a new one while a commit runs; Pebble would bring the
// process down if that failed.
func TestFailingChangeOfLogs(t *testing.T) {
	for name, kind := range map[string]errorfs.OpKind{
		"create": errorfs.OpCreate, "reuse": errorfs.OpReuseForWrite, "directory sync": errorfs.OpFileSync,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty()
			s := openFaulty(t, f)
			f.failOn(func(op errorfs.Op) bool {
				if kind == errorfs.OpFileSync {
					return op.Kind == kind && op.Path == "store"
				}
				return op.Kind == kind && strings.HasSuffix(op.Path, ".log")
			})
			ctx := context.Background()
			value := []byte(strings.Repeat("x", 50_000))
			acknowledged := map[store.Revision]bool{}
			var err error
			for range 500 { // the logs are changed when a memtable is full
				var rev store.Revision
				rev, err = s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "a", Value: value}}})
				if err != nil {
					break
				}
				acknowledged[rev] = true
			}
			if !errors.Is(err, store.ErrFailed) {
				t.Fatalf("the log never changed: %v", err)
			}
			again := f.survivors(t)
			for rev := range acknowledged {
				if _, err := again.Get(ctx, "a", rev); err != nil {
					t.Errorf("acknowledged revision %d: %v", rev, err)
				}
			}
			endFailed(t, s)
		})
	}
}

// A manifest that can't be written stops Pebble's flushing, and thereby writes.
func TestFailingManifest(t *testing.T) {
	f := newFaulty()
	s := openFaulty(t, f)
	f.failOn(func(op errorfs.Op) bool {
		return strings.Contains(op.Path, "MANIFEST") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite
	})
	ctx := context.Background()
	rev := put(t, s, "a", "1")
	value := []byte(strings.Repeat("x", 50_000))
	var err error
	for err == nil {
		_, err = s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "b", Value: value}}})
	}
	if !errors.Is(err, store.ErrFailed) {
		t.Fatal(err)
	}
	if rec, err := s.Get(ctx, "a", rev); err != nil || string(rec.Value) != "1" {
		t.Errorf("get after a failure: %s, %v", rec.Value, err)
	}
	if _, err := f.survivors(t).Get(ctx, "a", rev); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	endFailed(t, s)
}

// Nobody waits for ever for a store that fails under load.
func TestFailureAnswersEveryWriter(t *testing.T) {
	f := newFaulty()
	s := openFaulty(t, f)
	ctx := context.Background()
	var writers sync.WaitGroup
	started := make(chan struct{}, 16)
	for range 16 {
		writers.Go(func() {
			for n := 0; ; n++ {
				_, err := s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("x")}}})
				if n == 0 {
					started <- struct{}{}
				}
				if err != nil {
					if !errors.Is(err, store.ErrFailed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	for range cap(started) {
		<-started
	}
	f.failOn(func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") })
	writers.Wait()
	endFailed(t, s)
}

// Table files are not vital: Pebble repeats what failed, and nobody notices.
func TestFailingTableIsRepeated(t *testing.T) {
	f := newFaulty()
	o := mem(f.fs)
	o.memTableSize = 256 << 10
	s := open(t, o)
	var failures atomic.Int32
	f.failOn(func(op errorfs.Op) bool {
		return strings.HasSuffix(op.Path, ".sst") && op.Kind == errorfs.OpFileWrite && failures.Add(1) <= 3
	})
	value := strings.Repeat("x", 50_000)
	for i := 0; failures.Load() < 4; i++ {
		put(t, s, "a", value)
		if i > 2000 {
			t.Fatal("no table was written")
		}
	}
	ok(t, s.Healthy())
	f.fail.Store(nil)
}

// A full disk lets no table be written, over and over: the log has it once, as one
// line, and writes that still fit go on.
func TestFailingTablesAreLoggedSeldom(t *testing.T) {
	f := newFaulty()
	var log bytes.Buffer
	o := mem(f.fs)
	o.memTableSize = 256 << 10
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, o)
	var failures atomic.Int32
	many := make(chan struct{})
	f.failOn(func(op errorfs.Op) bool {
		if !strings.HasSuffix(op.Path, ".sst") || op.Kind != errorfs.OpFileWrite {
			return false
		}
		if failures.Add(1) == 20 {
			close(many)
		}
		return true
	})
	for range 10 { // fills a memtable, but not all that there may be
		put(t, s, "a", strings.Repeat("x", 50_000))
	}
	<-many
	put(t, s, "a", "1")
	f.fail.Store(nil)
	ok(t, s.Check(t.Context()))
	ok(t, s.Close()) // it logs nothing from here on
	text := log.String()
	if n := strings.Count(text, "background work failed"); n != 1 || !strings.Contains(text, "unreported=0") {
		t.Errorf("it was logged %d times: %.2000s", n, text)
	}
	for _, l := range strings.SplitAfter(text, "\n") {
		if len(l) > 500 {
			t.Errorf("a line of %d bytes: %.500s", len(l), l)
		}
	}
}

// A store that can't be read says where and what.
func TestOpenReportsADamagedRecord(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(mem(fs))
	ok(t, err)
	put(t, s, "a", "1")
	rev := put(t, s, "flags", "2")
	row := recordKey("flags", rev)
	data, closer, err := s.db.Get(row)
	ok(t, err)
	damaged := append([]byte(nil), data...)
	ok(t, closer.Close())
	damaged[len(damaged)-5] ^= 1
	ok(t, s.db.Set(row, damaged, nil))
	if err := s.Check(context.Background()); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("check: %v", err)
	}
	ok(t, s.Close())
	_, err = Open(mem(fs))
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "flags at revision 2") {
		t.Errorf("open: %v", err)
	}
}

func TestOpenRefusesARecordBeyondTheCounter(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(mem(fs))
	ok(t, err)
	put(t, s, "a", "1")
	put(t, s, "a", "2")
	ok(t, s.db.Set(metaCurrent, encodeU64(1), nil))
	ok(t, s.db.Delete(revisionKey(2), nil))
	ok(t, s.Close())
	_, err = Open(mem(fs))
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "a has revision 2") {
		t.Errorf("open: %v", err)
	}
}

func TestDataCorruptionStopsWrites(t *testing.T) {
	s, err := Open(Options{InMemory: true})
	ok(t, err)
	s.fail(store.ErrDamaged)
	_, err = s.Commit(context.Background(), store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("x")}}})
	if !errors.Is(err, store.ErrFailed) || !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
	ok(t, s.Close())
}
