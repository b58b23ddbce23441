package local

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// restoreFile is in a directory as long as a restore into it is not finished. It
// is there before anything else of the store, and goes when all of it is verified
// and durable. A directory of another name, renamed at the end, would not do: the
// data directory is often a mount point, which can't be renamed over, in a folder
// that its owner may not write to.
const restoreFile = "RESTORING"

const restoreText = "A restore into this directory is not finished. cmserver does not start on it.\n" +
	"Run cmserver restore again: it begins anew.\n"

// ErrUnfinished comes from opening a directory in which a restore was cut off.
var ErrUnfinished = errors.New("a restore into it was not finished; run cmserver restore again, which begins anew")

// ErrNotEmpty comes from a restore into a directory that holds something.
var ErrNotEmpty = errors.New("it is not empty; name another directory, or move away what is in it")

// site is the directory of a restore.
type site struct {
	fs   vfs.FS
	dir  string
	made bool // by the restore
}

func chooseSite(fsys vfs.FS, dir string) (site, error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return site{fsys, dir, true}, nil
	}
	if err == nil {
		err = vacant(names)
	}
	return site{fsys, dir, false}, err
}

// spared says what may be in an empty directory: the lock, and what a file system
// of its own brings.
func spared(name string) bool { return name == lockFile || name == "lost+found" }

// vacant is nil if a restore may have a directory with these names in it.
func vacant(names []string) error {
	if slices.Contains(names, restoreFile) {
		return nil
	}
	for _, name := range names {
		if !spared(name) {
			return ErrNotEmpty
		}
	}
	return nil
}

// admit keeps a half restored directory from being taken for a store. For a
// restore it makes the directory one. The lock is held.
func (s *Store) admit() error {
	names, err := s.opts.FS.List(s.opts.Dir)
	switch {
	case err != nil:
		return err
	case !s.opts.restoring:
		if slices.Contains(names, restoreFile) {
			return ErrUnfinished
		}
		return nil
	case s.opts.readOnly:
		return nil
	}
	// Between the first look and the lock somebody may have made a store there.
	if err := vacant(names); err != nil {
		return err
	}
	here := site{s.opts.FS, s.opts.Dir, false}
	if err := here.mark(); err != nil {
		return err
	}
	return here.empty(names)
}

func (s site) path(name string) string { return s.fs.PathJoin(s.dir, name) }

func (s site) mark() error {
	f, err := s.fs.Create(s.path(restoreFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(restoreText))
	return errors.Join(err, f.Sync(), f.Close(), syncDir(s.fs, s.dir))
}

// empty removes what an earlier restore left.
func (s site) empty(names []string) error {
	for _, name := range names {
		if !spared(name) && name != restoreFile {
			if err := s.fs.RemoveAll(s.path(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish makes the directory a store. What is in it is durable: the store that
// wrote it was closed.
func (s site) finish() error {
	err := errors.Join(s.fs.Remove(s.path(restoreFile)), syncDir(s.fs, s.dir))
	if err == nil && s.made {
		err = syncDir(s.fs, s.fs.PathDir(s.dir))
	}
	return err
}

// clear leaves the directory as it was before a restore that failed because of
// err. The mark goes last, so that nobody opens what is left meanwhile. What is
// not the restore's is left alone, and so is a directory whose store can't be
// closed: the mark stays in it.
func (s site) clear(err error) error {
	if errors.Is(err, ErrNotEmpty) || errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrFailed) {
		return nil
	}
	names, err := s.fs.List(s.dir)
	if err != nil || !slices.Contains(names, restoreFile) {
		return nil // it got no further
	}
	if err := s.empty(names); err != nil {
		return fmt.Errorf("what was written is left there: %w", err)
	}
	err = s.fs.Remove(s.path(lockFile))
	err = errors.Join(err, s.fs.Remove(s.path(restoreFile)))
	if err == nil && s.made {
		err = s.fs.Remove(s.dir)
	}
	return err
}
