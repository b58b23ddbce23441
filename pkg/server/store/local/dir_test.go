package local

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server/store"
)

func refusesToOpen(t *testing.T, o Options, want error, words ...string) {
	t.Helper()
	s, err := Open(o)
	if err == nil {
		s.Close()
		t.Fatal("opened")
	}
	if want != nil && !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q doesn't say %q", err, w)
		}
	}
}

func TestTheDirectoryIsMadeForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "store")
	open(t, Options{Dir: dir})
	info, err := os.Stat(dir)
	ok(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v", info.Mode())
	}
}

func TestOpenTwiceInOneProcess(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	s := open(t, Options{Dir: dir})
	ok(t, os.Symlink(dir, filepath.Join(parent, "link")))
	for _, spelling := range []string{dir, dir + "/", parent + "/./store", filepath.Join(parent, "link")} {
		refusesToOpen(t, Options{Dir: spelling}, store.ErrLocked, "store", "stop the other")
	}
	put(t, s, "a", "1") // the refusals have not taken the lock away
	ok(t, s.Close())
	open(t, Options{Dir: dir})
}

func TestOpenTwiceOnAMemoryFileSystem(t *testing.T) {
	fs := vfs.NewMem()
	open(t, mem(fs))
	refusesToOpen(t, mem(fs), store.ErrLocked, "store")
}

// Another process keeps the lock for as long as it lives, kill -9 frees it, and
// what it acknowledged is there.
func TestLockEndsWithItsProcess(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holdEnv+"="+dir)
	out, err := other.StdoutPipe()
	ok(t, err)
	ok(t, other.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "holding 1 <nil>\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	refusesToOpen(t, Options{Dir: dir}, store.ErrLocked, dir, "stop the other")
	ok(t, other.Process.Kill())
	_ = other.Wait() // it was killed
	s := open(t, Options{Dir: dir})
	if rec, err := s.Get(t.Context(), "held", 1); err != nil || string(rec.Value) != "1" {
		t.Errorf("after kill -9: %v, %v", rec, err)
	}
}

func TestOpenNeedsADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, []byte("x"), 0o600))
	refusesToOpen(t, Options{Dir: file}, nil, file, "is a file")
	refusesToOpen(t, Options{Dir: filepath.Join(file, "below")}, nil, file, "make the directory")
	refusesToOpen(t, Options{}, nil, "no directory given")
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "x" {
		t.Errorf("the file became %q, %v", data, err)
	}
}

func TestOpenOfADirectoryThatCantBeWritten(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpLock {
			return &os.PathError{Op: "open", Path: op.Path, Err: os.ErrPermission}
		}
		return nil
	}))
	refusesToOpen(t, mem(fs), os.ErrPermission, "can't write to the directory", "store")
}

func TestOpenRefusesANewerFormat(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(mem(fs))
	ok(t, err)
	ok(t, s.db.Set(metaFormat, encodeU64(7), nil))
	ok(t, s.Close())
	refusesToOpen(t, mem(fs), store.ErrNewerFormat, "open store store", "format 7", "up to 2", "start the newer release")
}

// What format 1 wrote are records without a brief: their bytes are the same today.
func TestFormatOneIsReadAndBecomesTheNewest(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(mem(fs))
	ok(t, err)
	long := strings.Repeat("v", 10_000)
	put(t, s, "k/long", long)
	put(t, s, "k/short", "v")
	ok(t, s.db.Set(metaFormat, encodeU64(1), nil))
	ok(t, s.Close())

	s = open(t, mem(fs))
	format, err := s.readMeta(s.db, metaFormat)
	if err != nil || format != formatVersion {
		t.Errorf("the format is %d, %v", format, err)
	}
	for _, part := range []store.Part{store.Whole, store.HeadAlone, store.BriefAlone} {
		page, err := s.List(t.Context(), store.ListOptions{Prefix: "k/", Part: part})
		ok(t, err)
		if len(page.Records) != 2 || string(page.Records[0].Value) != long || string(page.Records[1].Value) != "v" {
			t.Errorf("part %d: %+v", part, page.Records)
		}
	}
}

// A list of heads reads no row that holds contents, not after a restart either.
func TestHeadsAreReadWithoutTheContents(t *testing.T) {
	fs := vfs.NewMem()
	s, err := Open(mem(fs))
	ok(t, err)
	rec := store.Record{Key: "k", Value: []byte(strings.Repeat("v", 10_000)), Brief: store.Brief{Keys: 1, Head: 100}}
	rev, err := s.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}})
	ok(t, err)
	put(t, s, "later", "1")
	ok(t, s.db.Delete(valueKey("k", rev), nil))
	lists := func() {
		t.Helper()
		for _, at := range []store.Revision{0, rev} {
			for part, size := range map[store.Part]int{store.HeadAlone: 100, store.BriefAlone: 0} {
				page, err := s.List(t.Context(), store.ListOptions{Prefix: "k", At: at, Part: part})
				ok(t, err)
				if got := page.Records[0]; len(got.Value) != size && at != 0 || len(got.Value) > 100 || got.Brief != rec.Brief {
					t.Errorf("at %d, part %d: %+v", at, part, got)
				}
			}
		}
		if _, err := s.List(t.Context(), store.ListOptions{Prefix: "k"}); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("whole: %v", err)
		}
	}
	lists()
	ok(t, s.Close())
	s, err = Open(mem(fs))
	ok(t, err)
	defer s.Close()
	lists()
}

func TestOpenRefusesAnotherProgramsDatabase(t *testing.T) {
	fs := vfs.NewMem()
	db, err := pebble.Open("store", &pebble.Options{FS: fs})
	ok(t, err)
	ok(t, db.Set([]byte("k"), []byte("v"), pebble.Sync))
	ok(t, db.Close())
	refusesToOpen(t, mem(fs), nil, "store", "another program")
}

func TestInitialVersion(t *testing.T) {
	fs := vfs.NewMem()
	o := mem(fs)
	o.InitialVersion = 5000
	s := open(t, o)
	if state := s.State(); state.Current != 4999 {
		t.Errorf("state of a new store is %+v", state)
	}
	// A version of an earlier life can't be resumed from in silence.
	if _, err := s.Watch(t.Context(), "", 17); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("watch from another life: %v", err)
	}
	if rev := put(t, s, "a", "1"); rev != 5000 {
		t.Errorf("first revision is %d", rev)
	}
	ok(t, s.Close())
	o.InitialVersion = 9 // not new any more
	if rev := put(t, open(t, o), "a", "2"); rev != 5001 {
		t.Errorf("next revision is %d", rev)
	}
	refusesToOpen(t, Options{InMemory: true, InitialVersion: -1}, nil, "below 1")
}

func TestInMemoryStartsAtRandom(t *testing.T) {
	a, b := open(t, Options{InMemory: true}), open(t, Options{InMemory: true})
	for _, s := range []*Store{a, b} {
		if rev := s.State().Current + 1; rev < 1 || rev >= 500_000_000 {
			t.Errorf("first revision is %d", rev)
		}
	}
	if a.State().Current == b.State().Current {
		t.Errorf("both start at %d", a.State().Current)
	}
}
