package local

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// repeatAfter is how long an operation waits for what it lacks before it is tried
// again.
const repeatAfter = 200 * time.Millisecond

// freezingFS is the file system that Pebble gets; the package comment says why.
// Once armed, an error on a file that Pebble can't do without does not reach it. An
// operation that lacked something which may come back, such as space, is repeated
// until it succeeds. Any other error is reported to fail, and the operation that met
// it does not return until thaw. An error on a table reaches Pebble, which tries it
// again at once and for ever: so it comes late.
type freezingFS struct {
	vfs.FS
	fail    func(error)
	closing <-chan struct{} // nothing is waited for any longer
	armed   atomic.Bool
	frozen  chan struct{} // closed when the first operation stands still
	once    sync.Once     // guards closing frozen
	thawed  chan struct{} // closed by thaw, in tests only

	repeat time.Duration // between two tries; 0: nothing is repeated
	// discards is set for what is thrown away as a whole at the first error. Nothing
	// stands still then: it goes on and ends, and writes nothing any more.
	discards bool
	spoilt   atomic.Bool // it met that error

	mu      sync.Mutex // guards what follows
	waiting int        // operations that are being repeated
	lack    error      // what the latest of them lacks; nil if there are none
	early   error      // the first that Pebble met

	vitals *vitals // nil: nobody removes them
}

func newFreezingFS(inner vfs.FS, closing <-chan struct{}, fail func(error)) *freezingFS {
	return &freezingFS{
		FS:      inner,
		fail:    fail,
		closing: closing,
		frozen:  make(chan struct{}),
		thawed:  make(chan struct{}),
		repeat:  repeatAfter,
	}
}

// lacking says what an operation lacked, if that may come back and the operation
// has certainly not been carried out. Of a failed sync nobody knows the latter.
func lacking(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return store.ErrFull
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return store.ErrStalled
	}
	return nil
}

// persist repeats an operation while it only lacks something. The operation goes on
// where the last try ended.
func (f *freezingFS) persist(op, path string, try func() error) error {
	err := try()
	if lacking(err) == nil || !f.armed.Load() || f.repeat == 0 {
		return err
	}
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.waiting--; f.waiting == 0 {
			f.lack = nil
		}
	}()
	for lacking(err) != nil {
		f.mu.Lock()
		f.lack = fmt.Errorf("%w: %s %s: %w", lacking(err), op, path, err)
		f.mu.Unlock()
		select {
		case <-time.After(f.repeat):
			err = try()
		case <-f.closing:
			return err
		}
	}
	return err
}

// lacks says what is lacking just now, if anything is.
func (f *freezingFS) lacks() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lack
}

// vital says whether Pebble would end the process over an error on this file.
func vital(base string) bool {
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") ||
		strings.HasPrefix(base, "marker.")
}

// reached is the first error that reached Pebble, which Pebble need not have told of:
// one on its log may come to light only with a later commit, and then ends the process.
func (f *freezingFS) reached() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.early
}

// arm begins to keep errors from Pebble, and returns the first that reached it before.
func (f *freezingFS) arm() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed.Store(true)
	return f.early
}

// passes says whether an error may reach Pebble, and remembers it.
func (f *freezingFS) passes(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.armed.Load() {
		return false
	}
	f.early = cmp.Or(f.early, err)
	return true
}

// check passes err on, or freezes the caller if it may not reach Pebble.
func (f *freezingFS) check(op, path string, err error) error {
	if err == nil || f.passes(err) {
		return err
	}
	f.spoil(fmt.Errorf("%s %s: %w", op, path, err))
	if f.discards {
		return nil
	}
	f.once.Do(func() { close(f.frozen) })
	<-f.thawed
	return nil
}

// spoil reports an error after which nothing that is written may be relied on.
func (f *freezingFS) spoil(err error) {
	f.spoilt.Store(f.discards) // before anybody ends it for the error
	f.fail(err)
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
	if f.check(op, name, err) != err { // a thaw
		file, err = nowhere()
	}
	if err != nil {
		return nil, err
	}
	return &freezingFile{File: file, fs: f, path: name}, nil
}

// nowhere takes what can't be on disk.
func nowhere() (vfs.File, error) {
	return vfs.NewMem().Create("nowhere", vfs.WriteCategoryUnspecified)
}

// vital is wrap for a file that has been made, and must stay.
func (f *freezingFS) vital(op, name string, file vfs.File, err error) (vfs.File, error) {
	file, err = f.wrap(op, name, file, err)
	if err == nil {
		file.(*freezingFile).kept = f.vitals.keep(name)
	}
	return file, err
}

func (f *freezingFS) table(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, f.late(err)
	}
	return summedFile{&tableFile{file, f}, f.PathBase(name)}, nil
}

func (f *freezingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.spoilt.Load() {
		return nowhere()
	}
	var file vfs.File
	create := func() (err error) { file, err = f.FS.Create(name, c); return err }
	if !vital(f.PathBase(name)) {
		err := create()
		return f.table(name, file, err)
	}
	err := f.persist("create", name, create)
	return f.vital("create", name, file, err)
}

// Open is for tables, once a store is open.
func (f *freezingFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, o...)
	if vital(f.PathBase(name)) {
		return file, err
	}
	return f.table(name, file, err)
}

// Remove is how Pebble ends the need for a file.
func (f *freezingFS) Remove(name string) error {
	f.vitals.forget(name)
	return f.FS.Remove(name)
}

// late waits before an error is passed on.
func (f *freezingFS) late(err error) error {
	if err == nil || errors.Is(err, io.EOF) || !f.armed.Load() {
		return err
	}
	select {
	case <-time.After(f.repeat):
	case <-f.closing:
	}
	return err
}

func (f *freezingFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	var file vfs.File
	f.vitals.forget(old)
	err := f.persist("reuse", name, func() (err error) { file, err = f.FS.ReuseForWrite(old, name, c); return err })
	return f.vital("reuse", name, file, err)
}

// OpenDir is for syncing, without which a new log or manifest may be lost.
func (f *freezingFS) OpenDir(name string) (vfs.File, error) {
	var dir vfs.File
	err := f.persist("open", name, func() (err error) { dir, err = f.FS.OpenDir(name); return err })
	if err != nil {
		return nil, err
	}
	return &freezingFile{File: dir, fs: f, path: name}, nil
}

type freezingFile struct {
	vfs.File
	fs   *freezingFS
	path string
	kept *vitalFile // nil for a directory, and where nobody removes it
}

func (f *freezingFile) Write(p []byte) (int, error) {
	n := 0
	err := f.fs.persist("write", f.path, func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	f.kept.grow(n)
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

// tableFile is a file whose errors Pebble gets, late.
type tableFile struct {
	vfs.File
	fs *freezingFS
}

func (f *tableFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(p, at)
	return n, f.fs.late(err)
}

func (f *tableFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.late(err)
}

func (f *tableFile) Sync() error { return f.fs.late(f.File.Sync()) }
