package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// backupFile is a file that gets its name when it is complete and on the disk.
type backupFile struct {
	*os.File
	path  string
	temp  string // its name until then; empty if it has none, and goes with the process
	force bool
}

// newBackupFile begins a file that is to be at path.
func newBackupFile(path string, force bool) (*backupFile, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the file that a link leads to is replaced, not the link
	}
	f := &backupFile{path: path, force: force}
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, usageError{fmt.Errorf("%s is a directory; name a file in it", path)}
	case err == nil && !info.Mode().IsRegular():
		return nil, usageError{fmt.Errorf("%s is no file; '-' writes to standard output", path)}
	case err == nil && !force:
		return nil, usageError{f.exists()}
	}
	if f.File, err = unnamedFile(path); err != nil {
		// Not every file system can do it.
		f.File, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
		if err != nil {
			return nil, usageError{fmt.Errorf("can't write beside %s: %w", path, err)}
		}
		f.temp = f.Name()
	}
	return f, nil
}

func (f *backupFile) name() string { return f.path }

func (f *backupFile) exists() error {
	return fmt.Errorf("%s is there already; name another file, or add --force", f.path)
}

// commit makes the file durable and gives it its name.
func (f *backupFile) commit() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.publish(); err != nil {
		return err
	}
	return errors.Join(f.Close(), syncDir(filepath.Dir(f.path)))
}

func (f *backupFile) publish() error {
	switch {
	case f.force && f.temp == "":
		// Only a file with a name can take the place of another.
		temp := filepath.Join(filepath.Dir(f.path), fmt.Sprintf(".%s.%d.part", filepath.Base(f.path), rand.Uint64()))
		if err := linkUnnamed(f.File, temp); err != nil {
			return err
		}
		f.temp = temp
		fallthrough
	case f.force:
		return f.rename()
	case f.temp == "":
		return f.linked(linkUnnamed(f.File, f.path))
	}
	err := os.Link(f.temp, f.path)
	if err == nil {
		return os.Remove(f.temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return f.exists()
	}
	// A file system without links. The file was not there before.
	if _, err := os.Lstat(f.path); err == nil {
		return f.exists()
	}
	return f.rename()
}

func (f *backupFile) linked(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return f.exists()
	}
	return err
}

func (f *backupFile) rename() error {
	err := os.Rename(f.temp, f.path)
	if err == nil {
		f.temp = ""
	}
	return err
}

// discard leaves nothing of a file that was not committed.
func (f *backupFile) discard() {
	// Nobody relies on what is in it.
	_ = f.Close()
	if f.temp != "" {
		_ = os.Remove(f.temp)
	}
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
