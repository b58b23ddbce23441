package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
	"example.com/cmctl/pkg/server/store/storetest"
)

// Ten thousand versions are handed out after the backup. None of them is handed
// out again, none of them is one at which something can be read or guarded, and
// whoever watches or lists from one is told to begin anew.
func TestNoVersionIsHandedOutAgainAfterARestore(t *testing.T) {
	ctx := t.Context()
	s := open(t, Options{InMemory: true})
	put(t, s, "kept", "before")
	put(t, s, "changed", "before")
	backup, at := backupOf(t, s), s.State().Current
	lost := map[store.Revision]bool{}
	for i := range 10_000 {
		lost[put(t, s, "changed", fmt.Sprint(i))] = true
	}
	if len(lost) != 10_000 || !lost[at+1] || !lost[at+10_000] {
		t.Fatalf("%d versions after %d", len(lost), at)
	}

	again := restored(t, backup, mem(vfs.NewMem()))
	for rev := range lost {
		_, err := again.Commit(ctx, store.Txn{
			Guards: []store.Guard{{Key: "changed", Revision: rev}},
			Writes: []store.Record{{Key: "changed", Value: []byte("wrong")}},
		})
		var moved *store.GuardError
		if !errors.As(err, &moved) || moved.Current != at {
			t.Fatalf("a write on the lost version %d: %v", rev, err)
		}
	}
	for _, rev := range []store.Revision{at - 1, at, at + 1, at + 10_000} {
		if _, err := again.Watch(ctx, "", rev); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("watch from %d: %v", rev, err)
		}
		if _, err := again.List(ctx, store.ListOptions{At: rev}); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("list at %d: %v", rev, err)
		}
		if _, err := again.Get(ctx, "changed", rev); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("get at %d: %v", rev, err)
		}
	}
	// A version from before the backup is worth what it was: nothing else had it.
	if rec, err := again.Version(ctx, "changed", at); err != nil || string(rec.Value) != "before" {
		t.Errorf("version %d: %q, %v", at, rec.Value, err)
	}
	// What a lost version was, nobody can say any more; not even that it never was.
	for rev, want := range map[store.Revision]error{
		at + 1: store.ErrCompacted, again.State().Current: store.ErrCompacted, again.State().Current + 1: store.ErrFuture,
	} {
		if _, err := again.Version(ctx, "changed", rev); !errors.Is(err, want) {
			t.Errorf("version %d: %v, want %v", rev, err, want)
		}
	}
	w := watch(t, again, "", 0)
	for range 1000 {
		if rev := put(t, again, "changed", "new"); lost[rev] || rev <= at+10_000 {
			t.Fatalf("version %d is handed out again", rev)
		}
	}
	if events, err := w.Next(ctx); err != nil || events[0].Prev == nil || events[0].Prev.Revision != at {
		t.Errorf("the first event: %+v, %v", events, err)
	}
}

func TestFromWhereTheCounterGoesOn(t *testing.T) {
	made := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, c := range []struct {
		name           string
		age            time.Duration
		advance, above store.Revision
		want           store.Revision // beyond the backup's; 0: refused
	}{
		{"at once", 0, 0, 0, 2 << 20},
		{"a second later", time.Second, 0, 0, 3 << 20},
		{"a day later", 24 * time.Hour, 0, 0, 86402 << 20},
		{"more is asked for", 0, 5 << 20, 0, 5 << 20},
		{"less is asked for", time.Hour, 5 << 20, 0, 3602 << 20},
		{"above a version", 0, 0, 1 << 40, 1<<40 - 100},
		{"above a version that is passed anyway", time.Second, 0, 1000, 3 << 20},
		{"the clock went back", -time.Second, 0, 0, 0},
		{"the clock went back, and it is known where to go on", -time.Second, 0, 1 << 40, 1<<40 - 100},
		{"the clock went back, and it is known how far to go", -time.Second, 1 << 30, 0, 1 << 30},
		{"too far", 0, HighestBegin, 0, 0},
		{"too high", 0, 0, HighestBegin + 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &BackupReader{Info: BackupInfo{Made: made, Revision: 100}}
			got, err := b.counter(RestoreOptions{
				Now: made.Add(c.age), Advance: c.advance, Above: c.above, random: func() store.Revision { return 0 },
			})
			if (err != nil) != (c.want == 0) || err == nil && got != 100+c.want {
				t.Errorf("got %d, %v; want %d", got, err, 100+c.want)
			}
		})
	}
}

// The second restore of a backup hands out none of what the store of the first did,
// be it in the same second or after one that went further.
func TestRestoringABackupTwice(t *testing.T) {
	s := open(t, Options{InMemory: true})
	put(t, s, "a", "1")
	b, now := backupOf(t, s), time.Now().Add(time.Minute)
	var begins []store.Revision
	for _, o := range []RestoreOptions{{}, {}, {Advance: 100 * LeastAdvance}, {Now: now.Add(40 * time.Second)}} {
		o.Dir, o.FS = "store", vfs.NewMem()
		if o.Now.IsZero() {
			o.Now = now
		}
		current, err := begun(t, b).Restore(t.Context(), o)
		ok(t, err)
		for _, other := range begins {
			if distance := max(current-other, other-current); distance < 1000 { // one in 500 million
				t.Errorf("two restores begin at %d and %d", other, current)
			}
		}
		begins = append(begins, current)
	}
}

// A restored store does all that a store must do.
func TestStoreThatWasRestored(t *testing.T) {
	empty := backupOf(t, open(t, Options{InMemory: true}))
	storetest.Run(t, func(tb testing.TB) store.Store { return restored(tb, empty, mem(vfs.NewMem())) })
}

// A store that came through several restores knows the lost versions of all.
func TestARestoreOfARestore(t *testing.T) {
	s := open(t, Options{InMemory: true})
	first := put(t, s, "a", "1")
	once := restored(t, backupOf(t, s), mem(vfs.NewMem()))
	second := put(t, once, "b", "1")
	twice := restored(t, backupOf(t, once), mem(vfs.NewMem()))
	third := put(t, twice, "a", "2")
	for rev, want := range map[store.Revision]error{
		first: nil, first + 1: store.ErrCompacted, second - 1: store.ErrCompacted, second: store.ErrNotFound,
		second + 1: store.ErrCompacted, third - 1: store.ErrCompacted, third: nil,
	} {
		if _, err := twice.Version(t.Context(), "a", rev); !errors.Is(err, want) {
			t.Errorf("version %d of a: %v, want %v", rev, err, want)
		}
	}
}

// Deleted keys go, as after a compaction; a key that was made anew keeps even what
// was before.
func TestWhatWasDeletedIsNotRestored(t *testing.T) {
	s := open(t, Options{InMemory: true})
	put(t, s, "gone", "1")
	remove(t, s, "gone")
	put(t, s, "again", "1")
	remove(t, s, "again")
	put(t, s, "again", "2")
	got := all(t, restored(t, backupOf(t, s), mem(vfs.NewMem())))
	if len(got) != 1 || len(got["again"]) != 3 {
		t.Errorf("restored: %+v", got)
	}
	if got := restored(t, backupOf(t, s), mem(vfs.NewMem())); got != nil {
		if _, err := got.History(t.Context(), "gone", 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("history of a deleted key: %v", err)
		}
	}
}

func TestAnEmptyStoreIsRestored(t *testing.T) {
	s := restored(t, backupOf(t, open(t, Options{InMemory: true})), mem(vfs.NewMem()))
	put(t, s, "a", "1")
}

// A damaged or cut backup leaves the directory as it was, wherever the damage is.
func TestADamagedBackupLeavesNothing(t *testing.T) {
	s := open(t, Options{InMemory: true})
	lively(t, s, 100)
	backup := backupOf(t, s)
	r := crashRand(t)
	for i := range 24 {
		b := bytes.Clone(backup)
		if at := r.IntN(len(b)); i%2 == 0 {
			b = b[:at]
		} else {
			b[at] ^= 1 << r.IntN(8)
		}
		dir := filepath.Join(t.TempDir(), "data")
		if i%3 == 0 {
			ok(t, os.Mkdir(dir, 0o700))
		}
		restore := func() error {
			br, err := NewBackupReader(bytes.NewReader(b), nil)
			if err != nil {
				return err
			}
			_, err = br.Restore(t.Context(), RestoreOptions{Dir: dir, batchBytes: 3000})
			return err
		}
		if err := restore(); !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, archive.ErrForeign) && !errors.Is(err, archive.ErrNewer) {
			t.Errorf("restored, or failed with %v", err)
		}
		names, err := os.ReadDir(dir)
		if i%3 != 0 && !errors.Is(err, os.ErrNotExist) || i%3 == 0 && (err != nil || len(names) != 0) {
			t.Errorf("left behind: %v, %v", names, err)
		}
	}
}

func TestWhereARestoreMayGo(t *testing.T) {
	s := open(t, Options{InMemory: true})
	put(t, s, "a", "1")
	backup := backupOf(t, s)
	into := func(dir string) error {
		_, err := begun(t, backup).Restore(t.Context(), RestoreOptions{Dir: dir})
		return err
	}
	t.Run("a store", func(t *testing.T) {
		dir := t.TempDir()
		other := open(t, Options{Dir: dir})
		put(t, other, "b", "1")
		if err := into(dir); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("got %v", err)
		}
		put(t, other, "b", "2") // its directory is untouched
	})
	t.Run("a directory with a file", func(t *testing.T) {
		dir := t.TempDir()
		ok(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
		if err := into(dir); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("got %v", err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
			t.Errorf("in it: %v, %v", names, err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		ok(t, os.WriteFile(file, []byte("mine"), 0o600))
		if err := into(file); err == nil {
			t.Error("restored")
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "mine" {
			t.Errorf("the file: %q, %v", got, err)
		}
	})
	t.Run("a file system of its own", func(t *testing.T) {
		dir := t.TempDir()
		ok(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))
		ok(t, into(dir))
		put(t, open(t, Options{Dir: dir}), "b", "1")
	})
	t.Run("what a restore left that was cut off", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{restoreFile, "000004.log", "MANIFEST-000001", "000005.sst"} {
			ok(t, os.WriteFile(filepath.Join(dir, name), []byte("rubbish"), 0o600))
		}
		if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrUnfinished) {
			t.Errorf("open: %v", err)
		}
		if _, err := CheckDir(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrUnfinished) {
			t.Errorf("check: %v", err)
		}
		ok(t, into(dir))
		put(t, open(t, Options{Dir: dir}), "b", "1")
	})
	t.Run("a directory in folders that are not there yet", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		ok(t, into(dir))
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info, err)
		}
	})
	t.Run("a directory that another restore works in", func(t *testing.T) {
		dir := t.TempDir()
		lock, err := lockStore(Options{Dir: dir})
		ok(t, err)
		defer lock.release()
		ok(t, os.WriteFile(filepath.Join(dir, restoreFile), nil, 0o600))
		if err := into(dir); !errors.Is(err, store.ErrLocked) {
			t.Errorf("got %v", err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
			t.Errorf("in it: %v, %v", names, err)
		}
	})
}

// Whenever the machine stops during a restore: there is nothing yet, or a directory
// that nobody opens and that the next restore takes, or the whole store.
func TestCrashDuringRestore(t *testing.T) {
	s := open(t, Options{InMemory: true, apartAbove: 1000})
	lively(t, s, 60)
	want, backup := all(t, s), backupOf(t, s)
	r := crashRand(t)
	var before, during, after int
	for range 40 {
		disk := vfs.NewCrashableMem()
		ops, stopAt := 0, r.IntN(150)
		var left *vfs.MemFS
		watched := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				if ops++; ops == stopAt {
					left = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: rand.New(rand.NewPCG(r.Uint64(), 0))})
				}
			}
			return nil
		}))
		_, err := begun(t, backup).Restore(t.Context(), RestoreOptions{Dir: "store", FS: watched, batchBytes: 3000})
		ok(t, err)
		if left == nil {
			left = disk.CrashClone(vfs.CrashCloneCfg{})
		}
		s, err := Open(crashOptions(left))
		switch {
		case errors.Is(err, ErrUnfinished):
			during++
			s = restored(t, backup, mem(left))
		case err == nil && s.State().Current == 0:
			before++
			ok(t, s.Close())
			continue
		case err != nil:
			t.Fatalf("stopped at operation %d of %d: %v", stopAt, ops, err)
		default:
			after++
		}
		if got := all(t, s); len(got) != len(want) {
			t.Errorf("stopped at operation %d of %d: %d objects, want %d", stopAt, ops, len(got), len(want))
		}
		ok(t, s.Close())
	}
	t.Logf("stopped before %d, during %d, after %d", before, during, after)
	if during == 0 {
		t.Error("no restore was cut off")
	}
}

// Whatever can't be written, from some operation on: the restore fails with the cause,
// and leaves no more than there was.
func TestADiskThatFailsARestoreIsLeftAsItWas(t *testing.T) {
	s := open(t, Options{InMemory: true, apartAbove: 1000})
	lively(t, s, 60)
	for i := range 200 { // enough for several tables of a small disk
		put(t, s, store.Key(fmt.Sprintf("long/%03d", i)), text(10_000))
	}
	backup := backupOf(t, s)
	for name, c := range map[string]struct {
		cause error
		op    func(errorfs.Op) bool
		want  error
	}{
		"full":               {syscall.ENOSPC, isGrowth, store.ErrFull},
		"full for tables":    {syscall.ENOSPC, func(op errorfs.Op) bool { return isGrowth(op) && strings.HasSuffix(op.Path, ".sst") }, store.ErrFull},
		"a quota":            {syscall.EDQUOT, isGrowth, store.ErrFull},
		"broken":             {syscall.EIO, isGrowth, syscall.EIO},
		"broken for tables":  {syscall.EIO, func(op errorfs.Op) bool { return isGrowth(op) && strings.HasSuffix(op.Path, ".sst") }, syscall.EIO},
		"broken when synced": {syscall.EIO, isSync, syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			for first, hit := 1, true; hit; first += 1 + first/2 {
				disk := vfs.NewMem()
				disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 32 << 20, TotalBytes: 16 << 20})
				if first%2 == 0 {
					ok(t, disk.MkdirAll("parent/store", 0o700))
				}
				var count atomic.Int64
				failing := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if c.op(op) && count.Add(1) >= int64(first) {
						return fmt.Errorf("%s: %w", op.Path, c.cause)
					}
					return nil
				}))
				_, err := begun(t, backup).Restore(t.Context(), RestoreOptions{Dir: "parent/store", FS: failing, batchBytes: 50_000})
				if hit = int(count.Load()) >= first; !hit {
					ok(t, err)
					break
				}
				tried++
				var full *FullError
				if !errors.Is(err, c.want) || (c.want == store.ErrFull) != errors.As(err, &full) {
					t.Errorf("operation %d: %v", first, err)
				}
				if full != nil && (full.Missing < startRoom || strings.Contains(err.Error(), "\n")) {
					t.Errorf("operation %d: it says %q", first, err)
				}
				names, err := disk.List("parent/store")
				// What can't be made durable is for the next restore to remove.
				if slices.Contains(names, restoreFile) && c.op(errorfs.Op{Kind: errorfs.OpFileSync}) {
					continue
				}
				if there := err == nil; there != (first%2 == 0) || len(names) > 0 {
					t.Errorf("operation %d: left behind: %v, %v", first, names, err)
				}
			}
			if tried < 3 {
				t.Errorf("%d operations failed", tried)
			}
		})
	}
}

// isGrowth says whether an operation takes room. The lock takes none in a file system
// in memory, which can't fail to make one.
func isGrowth(op errorfs.Op) bool {
	return (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpReuseForWrite) &&
		!strings.HasSuffix(op.Path, lockFile)
}

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// A restore ends before the disk does, and says how much is missing. With as much
// more it comes to its end.
func TestARestoreSaysHowMuchRoomItNeeds(t *testing.T) {
	s := open(t, Options{InMemory: true})
	for i := range 300 {
		put(t, s, store.Key(fmt.Sprintf("key/%03d", i)), text(10_000))
	}
	backup := backupOf(t, s)
	for _, left := range []uint64{0, 1 << 20, 2 << 20, 4 << 20} {
		disk := &tightFS{MemFS: vfs.NewMem(), total: left}
		_, err := begun(t, backup).Restore(t.Context(), RestoreOptions{Dir: "store", FS: disk})
		var full *FullError
		if !errors.As(err, &full) {
			t.Errorf("with %d bytes: %v", left, err)
			continue
		}
		disk.total += full.Missing
		_, err = begun(t, backup).Restore(t.Context(), RestoreOptions{Dir: "store", FS: disk})
		if err != nil || disk.total > 16<<20 {
			t.Errorf("with %d bytes, and then %d more: %v", left, full.Missing, err)
		}
		ok(t, open(t, mem(disk)).Healthy())
	}
}

// tightFS is a file system with so many bytes, of which the store's files take some.
type tightFS struct {
	*vfs.MemFS
	total uint64
}

func (d *tightFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	used, _, err := room{fs: d.MemFS, dir: "store"}.used()
	if err != nil {
		used = 0 // there is no directory yet
	}
	return vfs.DiskUsage{AvailBytes: d.total - min(used, d.total), TotalBytes: d.total, UsedBytes: used}, nil
}

// text takes as much room as it is long.
func text(size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.N(256))
	}
	return string(b)
}

// Two restores don't work in one directory, and the one that comes later leaves it to
// the other.
func TestARestoreHasItsDirectoryForItself(t *testing.T) {
	s := open(t, Options{InMemory: true})
	lively(t, s, 60)
	backup := backupOf(t, s)
	dir := t.TempDir()
	second := func() error {
		_, err := begun(t, backup).Restore(t.Context(), RestoreOptions{Dir: dir})
		return err
	}
	tried := 0
	b, err := NewBackupReader(bytes.NewReader(backup), func(done, _ int) {
		if tried++; tried%10 == 0 {
			if err := second(); !errors.Is(err, store.ErrLocked) {
				t.Errorf("after %d objects: %v", done, err)
			}
		}
	})
	ok(t, err)
	_, err = b.Restore(t.Context(), RestoreOptions{Dir: dir, batchBytes: 3000})
	ok(t, err)
	if err := second(); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("afterwards: %v", err)
	}
	put(t, open(t, Options{Dir: dir}), "b", "1")
}

// Folders around the directory that the restore made go with it; what was there stays,
// a lock file and a link that leads nowhere too.
func TestWhatAFailedRestoreFound(t *testing.T) {
	s := open(t, Options{InMemory: true})
	lively(t, s, 60)
	backup := backupOf(t, s)
	cut := backup[:len(backup)-1]
	for name, c := range map[string]struct {
		prepare func(root string) error
		dir     string
		want    []string
	}{
		"nothing":         {func(string) error { return nil }, "a/b/c", nil},
		"a folder":        {func(root string) error { return os.Mkdir(filepath.Join(root, "a"), 0o700) }, "a/b/c", []string{"a"}},
		"a lock file":     {func(root string) error { return os.WriteFile(filepath.Join(root, lockFile), nil, 0o600) }, ".", []string{lockFile}},
		"a link to none":  {func(root string) error { return os.Symlink("nowhere", filepath.Join(root, "link")) }, "link", []string{"link"}},
		"a cut off first": {func(root string) error { return os.WriteFile(filepath.Join(root, restoreFile), nil, 0o600) }, ".", nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			ok(t, c.prepare(root))
			_, err := begun(t, cut).Restore(t.Context(), RestoreOptions{Dir: filepath.Join(root, c.dir), batchBytes: 3000})
			if err == nil {
				t.Fatal("restored")
			}
			entries, err := os.ReadDir(root)
			ok(t, err)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("there is %v, want %v", names, c.want)
			}
		})
	}
}

// What was written is read again: a disk that doesn't give it back fails the
// restore, and nothing is left.
func TestARestoreReadsWhatItWrote(t *testing.T) {
	s := open(t, Options{InMemory: true})
	lively(t, s, 100)
	disk := vfs.NewMem()
	deaf := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if (op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt) && strings.HasSuffix(op.Path, ".log") {
			return syscall.EIO
		}
		return nil
	}))
	_, err := begun(t, backupOf(t, s)).Restore(t.Context(), RestoreOptions{Dir: "store", FS: deaf, batchBytes: 3000})
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	if names, err := disk.List("store"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// Giving up leaves nothing behind.
func TestARestoreThatIsGivenUp(t *testing.T) {
	s := open(t, Options{InMemory: true})
	lively(t, s, 200)
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	b, err := NewBackupReader(bytes.NewReader(backupOf(t, s)), func(done, of int) {
		if seen++; done == of/2 {
			cancel()
		}
	})
	ok(t, err)
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := b.Restore(ctx, RestoreOptions{Dir: dir, batchBytes: 3000}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) || seen == 0 {
		t.Errorf("left behind: %v", err)
	}
}

// A backup of a directory that no server has open, which is not changed by it.
func TestBackupOfAClosedStore(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, memTableSize: 128 << 10})
	ok(t, err)
	lively(t, s, 300)
	want := all(t, s)
	var b bytes.Buffer
	if _, err := BackupDir(t.Context(), Options{Dir: dir}, &b); !errors.Is(err, store.ErrLocked) {
		t.Errorf("of an open store: %v", err)
	}
	ok(t, s.Close())
	before := contents(t, dir)
	b.Reset()
	info, err := BackupDir(t.Context(), Options{Dir: dir}, &b)
	if err != nil || info.Objects != len(want) {
		t.Fatalf("%+v, %v", info, err)
	}
	if after := contents(t, dir); !slices.Equal(before, after) {
		t.Errorf("the directory changed: %v, was %v", after, before)
	}
	if got := all(t, restored(t, b.Bytes(), mem(vfs.NewMem()))); len(got) != len(want) {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
	for _, dir := range []string{filepath.Join(dir, "missing"), t.TempDir()} {
		if _, err := BackupDir(t.Context(), Options{Dir: dir}, &b); !errors.Is(err, store.ErrNoStore) {
			t.Errorf("of nothing: %v", err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 0 {
			t.Errorf("left behind: %v", names)
		}
	}
}

// contents is every file with its bytes.
func contents(tb testing.TB, dir string) []string {
	tb.Helper()
	var all []string
	names, err := os.ReadDir(dir)
	ok(tb, err)
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n.Name()))
		ok(tb, err)
		all = append(all, n.Name()+" "+string(b))
	}
	return all
}
