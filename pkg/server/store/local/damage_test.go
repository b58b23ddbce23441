package local

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// stopped is the directory of a store that was killed, or stopped in order, with
// tables, logs and a compaction behind it, and what it acknowledged.
func stopped(t *testing.T, killed bool) (*vfs.MemFS, *ledger) {
	disk, l := vfs.NewCrashableMem(), newLedger()
	work(t, crashOptions(disk), l, rand.New(rand.NewPCG(7, 7)))
	s, err := Open(crashOptions(disk))
	ok(t, err)
	for n := range 10 {
		rec := store.Record{Key: store.Key(fmt.Sprintf("late/%d", n)), Value: []byte(strings.Repeat("y", n*400))}
		rec.Revision, err = s.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}})
		ok(t, err)
		ok(t, l.add(rec))
	}
	if killed {
		disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	}
	ok(t, s.Close())
	return disk, l
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
// is ever served in its place.
func TestDamageIsFoundOrHarmless(t *testing.T) {
	r := crashRand(t)
	found, harmless, late := 0, 0, 0
	for _, killed := range []bool{true, false} {
		disk, acknowledged := stopped(t, killed)
		names, err := disk.List("store")
		ok(t, err)
		sort.Strings(names)
		for _, name := range names {
			for _, d := range damages {
				for range 4 * crashRounds() {
					clone := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
					path := "store/" + name
					rewrite(t, clone, path, d.do(r, readAll(t, clone, path)))
					switch told, err := judge(clone, acknowledged); {
					case err != nil:
						t.Errorf("killed %t, %s: %s: %v", killed, name, d.name, err)
					case told == atStart:
						found++
					case told == atRead:
						late++
					default:
						harmless++
					}
				}
			}
		}
	}
	t.Logf("%d damages: the start was refused for %d, a read for %d, %d lost nothing", found+late+harmless, found, late, harmless)
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
