package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"

	"example.com/cmctl/pkg/server/store"
)

// BackupDir writes a backup of the store in o.Dir, which nobody has open, and
// changes nothing there. See Store.Backup.
func BackupDir(ctx context.Context, o Options, w io.Writer) (BackupInfo, error) {
	s, err := OpenReadOnly(o)
	if err != nil {
		return BackupInfo{}, err
	}
	info, err := s.Backup(ctx, w)
	return info, errors.Join(err, s.release())
}

// OpenReadOnly opens the store in o.Dir, which must be there, to read it. It changes
// nothing there; Commit and Compact must not be called.
func OpenReadOnly(o Options) (*Store, error) {
	s, err := lockToRead(o)
	if err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", s.opts.Dir, err), s.release())
	}
	return s, nil
}

// lockToRead locks an existing store, in which nothing is to be changed. It puts
// no lock file into a directory that is none.
func lockToRead(o Options) (*Store, error) {
	o = o.withDefaults()
	o.readOnly = true
	names, err := o.FS.List(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open store %s: %w", o.Dir, err)
	}
	if !slices.ContainsFunc(names, ofStore) {
		return nil, fmt.Errorf("%w in %s", store.ErrNoStore, o.Dir)
	}
	return lockStore(o)
}

// ofStore says whether a file of this name makes a directory a store's, sound or
// not.
func ofStore(name string) bool {
	return name == restoreFile || name == markFile || databaseFile.MatchString(name)
}

// databaseFile matches the names that Pebble gives.
var databaseFile = regexp.MustCompile(`^(MANIFEST-\d{6,}|marker\.[a-z-]+\.\d{6,}\..+|\d{6,}\.(sst|log|blob))$`)
