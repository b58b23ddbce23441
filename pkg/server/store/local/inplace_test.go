package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

// displaced are the ways in which a directory can leave its path. spare is a path
// beside it.
var displaced = map[string]func(dir, spare string) error{
	"removed": func(dir, _ string) error { return os.RemoveAll(dir) },
	"moved":   func(dir, spare string) error { return os.Rename(dir, spare) },
	"replaced": func(dir, spare string) error {
		return errors.Join(os.Rename(dir, spare), os.CopyFS(dir, os.DirFS(spare)))
	},
	"emptied and made anew": func(dir, _ string) error {
		return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600))
	},
	"covered by a file": func(dir, _ string) error {
		return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
	},
}

// openDoomed is a store on disk whose end is not checked, as its directory goes.
func openDoomed(t *testing.T) (s *Store, dir, spare string) {
	t.Helper()
	parent := t.TempDir()
	dir = filepath.Join(parent, "store")
	s, err := Open(Options{Dir: dir})
	ok(t, err)
	t.Cleanup(func() { endFailed(t, s) })
	return s, dir, filepath.Join(parent, "spare")
}

func isDisplaced(t *testing.T, err error, dir string) {
	t.Helper()
	if !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), dir+" was removed or replaced") {
		t.Errorf("error is %v", err)
	}
}

// A write into a directory that is gone would be gone with the process.
func TestNoWriteIsAcknowledgedOnceTheDirectoryIsGone(t *testing.T) {
	for name, displace := range displaced {
		t.Run(name, func(t *testing.T) {
			s, dir, spare := openDoomed(t)
			put(t, s, "a", "1")
			ok(t, displace(dir, spare))
			for range 2 {
				_, err := s.Commit(context.Background(), store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("2")}}})
				isDisplaced(t, err, dir)
			}
			isDisplaced(t, s.Healthy(), dir)
			if rec, err := s.Get(context.Background(), "a", 0); err != nil || string(rec.Value) != "1" {
				t.Errorf("get: %v, %v", rec, err)
			}
		})
	}
}

// A store that nobody writes to notices too: who asks for its health, or nobody.
func TestHealthNoticesThatTheDirectoryIsGone(t *testing.T) {
	for name, displace := range displaced {
		t.Run(name, func(t *testing.T) {
			s, dir, spare := openDoomed(t)
			ok(t, s.Healthy())
			ok(t, displace(dir, spare))
			isDisplaced(t, s.Healthy(), dir)
		})
	}
	t.Run("by itself", func(t *testing.T) {
		s, dir, _ := openDoomed(t)
		s.checkPlace()
		ok(t, s.failureErr())
		ok(t, os.RemoveAll(dir))
		s.checkPlace()
		isDisplaced(t, s.failureErr(), dir)
	})
}

// What only may have happened to the directory is no reason to stop.
func TestAPathThatCannotBeFollowedProvesNothing(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	ok(t, os.Symlink(loop, loop))
	info, err := os.Lstat(loop)
	ok(t, err)
	p := place{path: loop, lock: info}
	ok(t, p.check())
}

func TestAStoreInMemoryHasNoPlace(t *testing.T) {
	s := open(t, Options{InMemory: true})
	if s.place.lock != nil {
		t.Errorf("place %+v", s.place)
	}
	ok(t, s.Healthy())
}

func BenchmarkCheckPlace(b *testing.B) {
	s, err := Open(Options{Dir: b.TempDir()})
	ok(b, err)
	defer s.Close()
	b.ReportAllocs()
	for range b.N {
		ok(b, s.place.check())
	}
}
