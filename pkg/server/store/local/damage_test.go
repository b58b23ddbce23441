package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// damage does something to the bytes of a file. nil removes it.
type damage struct {
	name string
	do   func(r *rand.Rand, data []byte) []byte
}

var damages = []damage{
	{"a flipped bit", func(r *rand.Rand, data []byte) []byte {
		if len(data) > 0 {
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		return data
	}},
	{"a flipped bit near the end", func(r *rand.Rand, data []byte) []byte {
		if n := len(data); n > 0 {
			data[n-1-r.IntN(min(n, 64))] ^= 1 << r.IntN(8)
		}
		return data
	}},
	{"a flipped bit near the start", func(r *rand.Rand, data []byte) []byte {
		if n := len(data); n > 0 {
			data[r.IntN(min(n, 64))] ^= 1 << r.IntN(8)
		}
		return data
	}},
	{"a cut", func(r *rand.Rand, data []byte) []byte { return data[:r.IntN(len(data)+1)] }},
	{"the last bytes cut", func(r *rand.Rand, data []byte) []byte { return data[:max(0, len(data)-1-r.IntN(200))] }},
	{"a block of zeros", func(r *rand.Rand, data []byte) []byte {
		if n := len(data); n > 0 {
			at := r.IntN(n) &^ 511
			clear(data[at:min(n, at+512)])
		}
		return data
	}},
	{"emptied", func(*rand.Rand, []byte) []byte { return []byte{} }},
	{"removed", func(*rand.Rand, []byte) []byte { return nil }},
}

// shapes are what a directory may look like when its store is gone.
var shapes = map[string]func(t *testing.T, disk *vfs.MemFS, l *ledger) *Store{
	"with tables, logs and a compaction behind it": func(t *testing.T, disk *vfs.MemFS, l *ledger) *Store {
		work(t, crashOptions(disk), l, rand.New(rand.NewPCG(7, 7)))
		return later(t, disk, l)
	},
	"never restarted": later,
	"restarted, and not written to": func(t *testing.T, disk *vfs.MemFS, l *ledger) *Store {
		ok(t, later(t, disk, l).Close())
		s, err := Open(crashOptions(disk))
		ok(t, err)
		return s
	},
}

// later opens a store and writes a little, all of which stays in the log.
func later(t *testing.T, disk *vfs.MemFS, l *ledger) *Store {
	s, err := Open(crashOptions(disk))
	ok(t, err)
	for n := range 10 {
		rec := store.Record{Key: store.Key(fmt.Sprintf("late/%d", n)), Value: []byte(strings.Repeat("y", n*400))}
		rec.Revision, err = s.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}})
		ok(t, err)
		ok(t, l.add(rec))
	}
	return s
}

// stopped is the directory of a store that was killed, or stopped in order, and what
// it acknowledged.
func stopped(t *testing.T, make func(*testing.T, *vfs.MemFS, *ledger) *Store, killed bool) (*vfs.MemFS, *ledger) {
	disk, l := vfs.NewCrashableMem(), newLedger()
	s := make(t, disk, l)
	if killed {
		disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	}
	ok(t, s.Close())
	return disk, l
}

// bytesOf are all files of a store.
func bytesOf(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	names, err := fs.List("store")
	ok(t, err)
	all := map[string]string{}
	for _, name := range names {
		all[name] = string(readAll(t, fs, "store/"+name))
	}
	return all
}

func readAll(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	ok(t, err)
	data, err := io.ReadAll(f)
	ok(t, errors.Join(err, f.Close()))
	return data
}

func rewrite(t *testing.T, fs vfs.FS, path string, data []byte) {
	t.Helper()
	if data == nil {
		ok(t, fs.Remove(path))
		return
	}
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	ok(t, err)
	_, err = f.Write(data)
	ok(t, errors.Join(err, f.Close()))
}

// Whatever happens to whichever file: everything acknowledged is there, or it is said
// that data is damaged, by the start or by the read that would need it. Nothing else
// is ever served in its place. A start that is refused leaves all as it is, for who
// mends it.
func TestDamageIsFoundOrHarmless(t *testing.T) {
	for shape, make := range shapes {
		for _, killed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, killed %t", shape, killed), func(t *testing.T) {
				disk, acknowledged := stopped(t, make, killed)
				damageEach(t, disk, acknowledged)
			})
		}
	}
}

// A store that was restored, and has not been opened yet, has nothing that only its log
// knows: its last version says nothing about the objects, which are older.
func TestDamageOfARestoredStoreIsFoundOrHarmless(t *testing.T) {
	origin, acknowledged := vfs.NewMem(), newLedger()
	s := later(t, origin, acknowledged)
	backup := backupOf(t, s)
	ok(t, s.Close())
	disk := vfs.NewCrashableMem()
	_, err := begun(t, backup).Restore(t.Context(), RestoreOptions{Dir: "store", FS: disk})
	ok(t, err)
	damageEach(t, disk, acknowledged)
}

// damageEach does everything to each of the files.
func damageEach(t *testing.T, disk *vfs.MemFS, acknowledged *ledger) {
	r := crashRand(t)
	names, err := disk.List("store")
	ok(t, err)
	sort.Strings(names)
	seen := map[verdict]int{}
	for _, name := range names {
		for _, d := range damages {
			for range 4 * crashRounds() {
				clone := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
				path := "store/" + name
				rewrite(t, clone, path, d.do(r, readAll(t, clone, path)))
				before := bytesOf(t, clone)
				told, err := judge(clone, acknowledged)
				if err != nil {
					t.Errorf("%s: %s: %v", name, d.name, err)
				}
				if told == atStart && !maps.Equal(before, bytesOf(t, clone)) {
					t.Errorf("%s: %s: the refused start changed the directory", name, d.name)
				}
				seen[told]++
			}
		}
	}
	t.Logf("the start was refused for %d damages, a read for %d, %d lost nothing", seen[atStart], seen[atRead], seen[nothingLost])
}

type verdict int

const (
	nothingLost verdict = iota
	atStart
	atRead
)

// judge opens what is left. An error means that something is missing or wrong and
// nobody was told.
func judge(disk *vfs.MemFS, acknowledged *ledger) (told verdict, err error) {
	o := crashOptions(disk)
	s, err := Open(o)
	if err != nil {
		if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNewerFormat) {
			return 0, fmt.Errorf("the start is refused, but not for damage: %w", err)
		}
		return atStart, nil
	}
	defer func() { _ = s.Close() }()
	err = acknowledged.verify(s, acknowledged)
	switch {
	case err == nil && s.Check(context.Background()) == nil:
		return nothingLost, nil
	case err == nil, errors.Is(err, store.ErrDamaged), pebble.IsCorruptionError(err):
		return atRead, nil
	}
	return 0, err
}
