package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server/store"
)

// ruined is a disk with the contents of "lost" damaged, which no start reads, and
// "kept" whole. file is the table in which that is.
func ruined(t *testing.T) (disk *vfs.MemFS, file string) {
	t.Helper()
	disk = vfs.NewMem()
	value := make([]byte, 17_000)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(value) // it has no error to tell, and does not compress
	s, err := Open(mem(disk))
	ok(t, err)
	for _, key := range []store.Key{"lost", "kept"} {
		_, err := s.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: key, Value: value}}})
		ok(t, err)
	}
	ok(t, s.db.Flush())
	ok(t, s.Close())
	return disk, hurt(t, disk, func(l *sstable.Layout) uint64 {
		last := l.Data[len(l.Data)-2].Handle // the value of "lost"; records, then "kept", come before
		return last.Offset + last.Length/2
	})
}

// hurt flips a bit of the largest table.
func hurt(t *testing.T, disk *vfs.MemFS, where func(*sstable.Layout) uint64) (file string) {
	t.Helper()
	var data string
	for name, bytes := range bytesOf(t, disk) {
		if strings.HasSuffix(name, ".sst") && len(bytes) > len(data) {
			file, data = name, bytes
		}
	}
	f, err := disk.Open("store/" + file)
	ok(t, err)
	var readable objstorage.Readable
	readable, err = sstable.NewSimpleReadable(f)
	ok(t, err)
	o := (&Store{opts: mem(disk).withDefaults()}).pebbleOptions(nil, true)
	o.FS = disk
	o.EnsureDefaults()
	r, err := sstable.NewReader(t.Context(), readable, o.MakeReaderOptions())
	ok(t, err)
	layout, err := r.Layout()
	ok(t, errors.Join(err, r.Close()))
	changed := []byte(data)
	changed[where(layout)] ^= 4
	rewrite(t, disk, "store/"+file, changed)
	return file
}

// isKnown demands an error that tells where the damage is.
func isKnown(t *testing.T, err error, key store.Key, file string) {
	t.Helper()
	var damage *store.DamageError
	if !errors.As(err, &damage) || !errors.Is(err, store.ErrDamaged) || damage.Key != key || damage.File != file {
		t.Errorf("got %#v, %v; want damage to %q in %s", damage, err, key, file)
	}
	if err != nil && strings.Contains(err.Error(), "carrier") {
		t.Errorf("Pebble's own got out: %v", err)
	}
}

// A read that meets damage says where. Then writes end, which the log says once, with
// what to do; other reads go on.
func TestAReadThatMeetsDamage(t *testing.T) {
	for name, read := range map[string]func(*Store) error{
		"get":  func(s *Store) error { _, err := s.Get(t.Context(), "lost", 0); return err },
		"then": func(s *Store) error { _, err := s.Get(t.Context(), "lost", 1); return err },
		"list": func(s *Store) error { _, err := s.List(t.Context(), store.ListOptions{}); return err },
		"version": func(s *Store) error {
			_, err := s.Version(t.Context(), "lost", 1)
			return err
		},
		"backup": func(s *Store) error { _, err := s.Backup(t.Context(), io.Discard); return err },
		"watch": func(s *Store) error {
			w, err := s.Watch(t.Context(), "", 1)
			ok(t, err)
			defer w.Close()
			for err == nil {
				_, err = w.Next(t.Context())
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk, file := ruined(t)
			var log bytes.Buffer
			o := mem(disk)
			o.verifyRate, o.afterDamage, o.InitialVersion = -1, time.Nanosecond, 1
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s, err := Open(o)
			ok(t, err)
			if name == "watch" { // it needs what the change replaced
				put(t, s, "lost", "2")
				ok(t, s.Healthy())
			}
			for range 2 {
				isKnown(t, read(s), "lost", file)
			}
			if err := s.Healthy(); !errors.Is(err, store.ErrFailed) || !errors.Is(err, store.ErrDamaged) {
				t.Errorf("health: %v", err)
			}
			_, err = s.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("x")}}})
			if !errors.Is(err, store.ErrFailed) || !errors.Is(err, store.ErrDamaged) {
				t.Errorf("commit: %v", err)
			}
			if rec, err := s.Get(t.Context(), "kept", 0); err != nil || len(rec.Value) != 17_000 {
				t.Errorf("another read: %v", err)
			}
			ok(t, s.Close())
			text := log.String()
			if strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "file="+file) || !strings.Contains(text, "cmserver check --data-dir store") {
				t.Errorf("log: %s", text)
			}
		})
	}
}

// What nobody reads is looked at all the same.
func TestTheVerificationFindsDamage(t *testing.T) {
	disk, file := ruined(t)
	o := mem(disk)
	o.verifyRate = 1 << 40
	s, err := Open(o)
	ok(t, err)
	<-s.failed
	isKnown(t, s.Healthy(), "", file)
	ok(t, s.Close())

	ok(t, disk.Remove("store/"+file))
	err = (&Store{opts: o.withDefaults(), fs: s.fs}).validateTable(t.Context(), file, nil)
	if got := tableDamage(file, err).Error(); !strings.HasSuffix(got, "file "+file+": it is gone") {
		t.Errorf("got %s", got)
	}
}

// It reads no faster than it may, and ends with the store in the midst of it.
func TestTheVerificationIsSlow(t *testing.T) {
	disk, _ := ruined(t)
	o := mem(disk)
	o.verifyRate = 1
	s, err := Open(o)
	ok(t, err)
	for range 1000 {
		if rec, err := s.Get(t.Context(), "kept", 0); err != nil || len(rec.Value) == 0 {
			t.Fatal(err)
		}
	}
	ok(t, s.Healthy())
	ok(t, s.Close())
}

// A whole store is found whole, whatever compaction does meanwhile.
func TestTheVerificationOfAWholeStore(t *testing.T) {
	var log bytes.Buffer
	o := mem(vfs.NewMem())
	o.memTableSize, o.verifyRate = 256<<10, 1<<40
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, o)
	for range 100 {
		put(t, s, "a", strings.Repeat("x", 50_000))
		s.verify()
	}
	ok(t, s.Healthy())
	ok(t, s.Close())
	if !strings.Contains(log.String(), "all tables are verified") {
		t.Errorf("log: %s", &log)
	}
}

// Pebble tries again what damage kept it from. It comes to that ever later.
func TestDamageIsNotMetOverAndOver(t *testing.T) {
	for name, where := range map[string]func(*sstable.Layout) uint64{
		"in what is read for statistics": func(l *sstable.Layout) uint64 { return l.Properties.Offset },
		"in what opens the table":        func(l *sstable.Layout) uint64 { return l.MetaIndex.Offset },
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			o := mem(disk)
			o.verifyRate, o.afterDamage = -1, time.Hour
			s, err := Open(o)
			ok(t, err)
			put(t, s, "a", "1")
			ok(t, s.db.Flush())
			// The store is open: what a start needs is in memory, or it would be refused.
			p, err := s.moment()
			ok(t, err)
			p.close()
			hurt(t, disk, where)
			file := tableNames(t, s)[0]
			err = s.validateTable(t.Context(), file, nil)
			for range 3 { // as Pebble's loop would
				go s.backgroundFailed(err)
			}
			for s.ruins.reports.Load() < 3 {
				runtime.Gosched()
			}
			isKnown(t, s.Healthy(), "", "")
			ok(t, s.Close()) // it does not wait for the hour
		})
	}
}

func tableNames(t *testing.T, s *Store) (names []string) {
	t.Helper()
	all, err := s.tables()
	ok(t, err)
	for name := range all {
		names = append(names, name)
	}
	return names
}

// A table that can't be made for want of files is tried again, and not at once.
func TestAnErrorOnATableComesLate(t *testing.T) {
	f := newFaulty()
	o := mem(f.fs)
	o.memTableSize = 256 << 10
	s := open(t, o)
	s.fs.repeat = time.Hour
	tried := make(chan struct{}, 1000)
	f.failWith(syscall.EMFILE, func(op errorfs.Op) bool {
		if op.Kind != errorfs.OpCreate || !strings.HasSuffix(op.Path, ".sst") {
			return false
		}
		tried <- struct{}{}
		return true
	})
	for range 10 { // fills a memtable, but not all that there may be
		put(t, s, "a", strings.Repeat("x", 50_000))
	}
	<-tried
	for range 100 {
		put(t, s, "b", "1")
	}
	ok(t, s.Healthy())
	if n := len(tried); n > 0 {
		t.Errorf("it was tried %d times more", n)
	}
	f.fail.Store(nil)
	ok(t, s.Close())
	s, err := Open(mem(f.disk))
	ok(t, err)
	if _, err := s.Get(context.Background(), "a", 0); err != nil {
		t.Error(err)
	}
	ok(t, s.Close())
}
