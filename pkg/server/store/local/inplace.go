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

const (
	// placeInterval is how often a store without writers looks.
	placeInterval = time.Second
	// tablesInterval is how often any store looks for its tables.
	tablesInterval = 5 * time.Second
)

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

// watchPlace is for a store that nobody writes to or asks for its health, and for the
// tables, which are too many to be looked for with each write.
func (s *Store) watchPlace() {
	ticker, tables := time.NewTicker(placeInterval), time.NewTicker(tablesInterval)
	defer ticker.Stop()
	defer tables.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-s.failed:
			return
		case <-ticker.C:
			s.checkPlace()
		case <-tables.C:
			s.checkTables()
		}
	}
}

// checkTables fails the store if a table that the next start needs is no longer there.
// The server itself may still read it: it is open, if it was read before. It takes one
// or two microseconds for each.
func (s *Store) checkTables() {
	tables, err := s.tables()
	if err != nil {
		return // it proves nothing
	}
	for name, length := range tables {
		what := s.lookAtTable(name, length)
		if what == "" {
			continue
		}
		if now, err := s.tables(); err != nil || now[name] == 0 {
			continue // compaction has replaced it meanwhile
		}
		s.fail(takenFile(name, what, "which has all that was acknowledged, if it can still be read"))
		return
	}
}

func (s *Store) lookAtTable(name string, length int64) string {
	now, err := s.opts.FS.Stat(s.opts.FS.PathJoin(s.opts.Dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "removed"
	case err == nil && now.Size() < length:
		return "cut short"
	}
	return ""
}
