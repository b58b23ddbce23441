package local

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
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

// site is the directory of a restore, which has it for itself until it is finished
// or cleared.
type site struct {
	fs   vfs.FS
	dir  string
	lock *pebble.Lock // nil: it could not be had
	// made are the folders that were not there before, the innermost first.
	made []string
	// locked says that a lock file was there before, and nothing of a restore.
	locked bool
}

// takeSite locks the directory, which is made if it is missing. What was made is
// in the site even where it can't be had.
func takeSite(fsys vfs.FS, dir string) (site, error) {
	s := site{fs: fsys, dir: dir}
	names, err := fsys.List(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.made = missing(fsys, dir)
	case err != nil:
		return s, err
	}
	if err := vacant(names); err != nil {
		return s, err
	}
	s.locked = slices.Contains(names, lockFile) && !slices.Contains(names, restoreFile)
	path, lock, err := lockDir(fsys, dir)
	if err == nil {
		s.dir, s.lock = path, lock
	}
	return s, err
}

// missing are dir and the folders around it that are not there.
func missing(fsys vfs.FS, dir string) []string {
	var all []string
	for ; !here(fsys, dir); dir = fsys.PathDir(dir) {
		all = append(all, dir)
	}
	return all
}

// here says whether there is something. A path that can't be followed for another
// reason is none that a restore makes.
func here(fsys vfs.FS, path string) bool {
	_, err := fsys.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) || fsys.PathDir(path) == path
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
	site := site{fs: s.opts.FS, dir: s.opts.Dir}
	if err := site.mark(); err != nil {
		return err
	}
	return site.empty(names)
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
	for _, dir := range s.made {
		err = errors.Join(err, syncDir(s.fs, s.fs.PathDir(dir)))
	}
	if err != nil {
		_ = s.mark() // for clear, which finds at least the file, synced or not
	}
	return err
}

// clear leaves everything as it was before a restore that failed because of cause.
// What is not the restore's is left alone. The lock goes last, so that nobody works
// in what is left meanwhile.
func (s site) clear(cause error) error {
	if s.lock != nil {
		var err error
		if !errors.Is(cause, ErrNotEmpty) {
			err = s.clearFiles()
		}
		if err == nil && !s.locked {
			err = s.fs.Remove(s.path(lockFile))
		}
		if err = errors.Join(err, s.lock.Close()); err != nil {
			return err
		}
	}
	for _, dir := range s.made {
		// What can't be removed is empty, or has something of others in it: both
		// hinder no other restore. A link that leads nowhere is theirs as well.
		if here(s.fs, dir) && s.fs.Remove(dir) != nil {
			break
		}
	}
	return nil
}

// clearFiles removes what was written. The mark goes last, so that what is left of
// it, should the process end meanwhile, is never taken for a store.
func (s site) clearFiles() error {
	names, err := s.fs.List(s.dir)
	if err != nil || !slices.Contains(names, restoreFile) {
		return err // it got no further
	}
	if err := s.empty(names); err != nil {
		return err
	}
	if err := syncDir(s.fs, s.dir); err != nil {
		return err
	}
	return s.fs.Remove(s.path(restoreFile))
}
