package local

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// freezingFS is the file system that Pebble gets; the package comment says why.
// Once armed, an error on a file that Pebble can't do without is reported to
// fail, and the operation that met it does not return until thaw.
type freezingFS struct {
	vfs.FS
	fail   func(error)
	armed  atomic.Bool
	frozen chan struct{} // closed when the first operation stands still
	once   sync.Once     // guards closing frozen
	thawed chan struct{} // closed by thaw, in tests only
}

func newFreezingFS(inner vfs.FS, fail func(error)) *freezingFS {
	return &freezingFS{
		FS:     inner,
		fail:   fail,
		frozen: make(chan struct{}),
		thawed: make(chan struct{}),
	}
}

// vital says whether Pebble would end the process over an error on this file.
func vital(base string) bool {
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") ||
		strings.HasPrefix(base, "marker.")
}

// check passes err on, or freezes the caller if it may not reach Pebble.
func (f *freezingFS) check(op, path string, err error) error {
	if err == nil || !f.armed.Load() {
		return err
	}
	f.fail(fmt.Errorf("%s %s: %w", op, path, err))
	f.once.Do(func() { close(f.frozen) })
	<-f.thawed
	return nil
}

func (f *freezingFS) isFrozen() bool {
	select {
	case <-f.frozen:
		return true
	default:
		return false
	}
}

// thaw lets what stands still go on as if it had succeeded, so that a test can
// close a failed store and leave no goroutine. Nothing that is then written may
// be relied on.
func (f *freezingFS) thaw() { close(f.thawed) }

func (f *freezingFS) Unwrap() vfs.FS { return f.FS }

func (f *freezingFS) wrap(op, name string, file vfs.File, err error) (vfs.File, error) {
	if !vital(f.PathBase(name)) {
		return file, err
	}
	if f.check(op, name, err) != err {
		// A thaw: what can't be on disk goes nowhere.
		file, err = vfs.NewMem().Create("nowhere", vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, err
	}
	return &freezingFile{File: file, fs: f, path: name}, nil
}

func (f *freezingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.wrap("create", name, file, err)
}

func (f *freezingFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, c)
	return f.wrap("reuse", name, file, err)
}

// OpenDir is for syncing, without which a new log or manifest may be lost.
func (f *freezingFS) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &freezingFile{File: dir, fs: f, path: name}, nil
}

type freezingFile struct {
	vfs.File
	fs   *freezingFS
	path string
}

func (f *freezingFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if f.fs.check("write", f.path, err) != err {
		return len(p), nil
	}
	return n, err
}

func (f *freezingFile) Sync() error { return f.fs.check("sync", f.path, f.File.Sync()) }

func (f *freezingFile) SyncData() error { return f.fs.check("sync", f.path, f.File.SyncData()) }

func (f *freezingFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.check("sync", f.path, err)
}

func (f *freezingFile) Close() error { return f.fs.check("close", f.path, f.File.Close()) }
