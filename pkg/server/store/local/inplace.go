package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockFile is the file that Pebble locks in a directory.
const lockFile = "LOCK"

// placeInterval is how often a store without writers looks.
const placeInterval = time.Second

// place is where a store's directory was when it was opened. A directory that is
// removed under a running process goes on taking writes and syncs, for the files
// are open, and all of them are gone with the process. Only its path tells.
//
// The lock file stands for the directory. It is held open, so that no other file
// can get its inode.
type place struct {
	path string
	lock os.FileInfo // nil: a file system of a test, which nobody removes
}

func placeOf(fsys vfs.FS, dir string) (place, error) {
	if fsys != vfs.Default {
		return place{}, nil
	}
	p := place{path: filepath.Join(dir, lockFile)}
	var err error
	p.lock, err = os.Stat(p.path)
	return p, err
}

// check is an error if the path surely leads elsewhere by now. One that can't be
// followed just now proves nothing. It takes one or two microseconds.
func (p *place) check() error {
	if p.lock == nil {
		return nil
	}
	now, err := os.Stat(p.path)
	if err == nil && os.SameFile(now, p.lock) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return fmt.Errorf("the data directory %s was removed or replaced under the running server", filepath.Dir(p.path))
}

// checkPlace fails the store if its directory is no longer where it was, or a file in
// it that the next start needs.
func (s *Store) checkPlace() {
	err := s.place.check()
	if err == nil {
		err = s.fs.vitals.check()
	}
	if err != nil {
		s.fail(err)
	}
}

// watchPlace is for a store that nobody writes to or asks for its health.
func (s *Store) watchPlace() {
	ticker := time.NewTicker(placeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-s.failed:
			return
		case <-ticker.C:
			s.checkPlace()
		}
	}
}
