package reload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is of what is there and is no regular file: a pipe, a device, a
// socket. It could keep its reader waiting, and can't be read again.
var ErrNotRegular = errors.New("is no regular file, as it must be to be read again and again")

// Open opens a regular file to read it, and follows links. It never waits: the error
// of anything else wraps ErrNotRegular, or is that of a folder.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // before it is opened, which devices may notice
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	// What it is may have changed since: a pipe would wait for its writer here.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ReadFile is the content of a file as Open opens it.
func ReadFile(path string) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	return io.ReadAll(file)
}

func regular(path string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	return fmt.Errorf("%s %w (it is a %s)", path, ErrNotRegular, kind(info.Mode()))
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
