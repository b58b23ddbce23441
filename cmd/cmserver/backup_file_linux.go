package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// unnamedFile is a file beside path that has no name: should the process be killed,
// nothing is left of it. Its errors speak of path.
func unnamedFile(path string) (*os.File, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if _, err := os.Stat(procPath(f)); err != nil {
		return nil, fmt.Errorf("without /proc it could get no name: %w, %w", err, f.Close())
	}
	return f, nil
}

// linkUnnamed gives it a name that nothing has yet.
func linkUnnamed(f *os.File, path string) error {
	err := unix.Linkat(unix.AT_FDCWD, procPath(f), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: "the backup", New: path, Err: err}
	}
	return nil
}

// procPath leads to an open file, whatever its name.
func procPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
