package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// lockDir makes sure that dir is a directory that this process alone uses. It
// returns the path to use for it and the lock, which ends with the process too.
func lockDir(fsys vfs.FS, dir string) (string, *pebble.Lock, error) {
	if dir == "" {
		return "", nil, errors.New("open store: no directory given")
	}
	if info, err := fsys.Stat(dir); err == nil && !info.IsDir() {
		return "", nil, fmt.Errorf("open store %s: it is a file, a directory is needed", dir)
	}
	// The objects may be secrets to other users of the machine.
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("open store %s: can't make the directory: %w", dir, err)
	}
	if fsys == vfs.Default {
		// Locks inside one process are told apart by the path as it is written,
		// and an fcntl lock does not hold against the process that has it: two
		// spellings of one directory would both get it.
		real, err := realPath(dir)
		if err != nil {
			return "", nil, fmt.Errorf("open store %s: %w", dir, err)
		}
		dir = real
	}
	lock, err := pebble.LockDirectory(dir, fsys)
	if err == nil {
		return dir, lock, nil
	}
	if lockTaken(err) {
		return "", nil, fmt.Errorf("open store %s: %w; stop the other cmserver, or give this one a directory of its own (--data-dir DIR)",
			dir, store.ErrLocked)
	}
	return "", nil, fmt.Errorf("open store %s: can't write to the directory: %w", dir, err)
}

// isManifestMarker says whether this is the file that says where the database begins.
func isManifestMarker(name string) bool { return strings.HasPrefix(name, "marker.manifest.") }

// checkMarker keeps Pebble from a directory that has data but lost the file which says
// where it begins: Pebble would begin anew there, and remove what it does not know.
func checkMarker(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	data := ""
	for _, name := range names {
		switch {
		case isManifestMarker(name):
			return nil
		case name == markFile, strings.HasSuffix(name, ".sst"), strings.HasSuffix(name, ".blob"):
			data = name
		}
	}
	if data == "" {
		return nil
	}
	return fmt.Errorf("%w: there is %s, but no marker.manifest file", store.ErrDamaged, data)
}

func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// lockTaken tells a lock that somebody has from a lock file that can't be made.
// The latter is a path error; a lock held elsewhere is a bare errno, and one held
// by this process an error without a type.
func lockTaken(err error) bool {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return false
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno == syscall.EAGAIN || errno == syscall.EACCES
	}
	return true
}
