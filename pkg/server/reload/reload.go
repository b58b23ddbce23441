// Package reload keeps what was made from files up to date: certificates, tokens,
// rules.
package reload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// interval is how often the files are looked at. They are read, not only asked for
// their times: that works on every filesystem, and for links that are switched as
// Kubernetes switches mounted Secrets.
const interval = time.Second

// Value is what was made from files. Get and Err may be called by any number of
// goroutines.
type Value[T any] struct {
	name  string
	paths []string
	load  func() (T, error)
	log   *slog.Logger

	value  atomic.Pointer[T]
	err    atomic.Pointer[error]
	loaded [sha256.Size]byte // the state of the files that was tried last
	seen   [sha256.Size]byte // and the one that was seen last
}

// New loads a value for the first time, and fails if that fails. paths are the files
// that load reads, by Open or ReadFile, and folders of which it reads every file; name is what the log
// calls them together.
func New[T any](name string, paths []string, log *slog.Logger, load func() (T, error)) (*Value[T], error) {
	v := &Value[T]{name: name, paths: paths, load: load, log: log}
	v.loaded = fingerprint(paths)
	v.seen = v.loaded
	first, err := load()
	if err != nil {
		return nil, err
	}
	v.value.Store(&first)
	return v, nil
}

// Get is the value of the last files that were sound.
func (v *Value[T]) Get() T { return *v.value.Load() }

// Err says why the files as they are now can't be used; nil while Get is what they
// say.
func (v *Value[T]) Err() error {
	if err := v.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Run looks at the files until ctx ends.
func (v *Value[T]) Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			v.look()
		}
	}
}

// look loads files that have changed, once they have stayed the same from one look
// to the next: of what is just being written the first half may be sound too.
func (v *Value[T]) look() {
	now := fingerprint(v.paths)
	settled := now == v.seen
	v.seen = now
	if !settled || now == v.loaded {
		return
	}
	v.loaded = now
	next, err := v.load()
	if err != nil {
		v.log.Error(v.name+" changed and can't be used: what was read before stays in force until the files are mended", "err", err)
		v.err.Store(&err)
		return
	}
	v.value.Store(&next)
	v.err.Store(nil)
	v.log.Info(v.name+" changed and is in force", "files", v.paths)
}

// fingerprint tells one state of files from another. A file that can't be read is a
// state as well.
func fingerprint(paths []string) [sha256.Size]byte {
	h := sha256.New()
	for _, path := range paths {
		_ = filepath.WalkDir(resolved(path), func(name string, _ fs.DirEntry, err error) error {
			sum, readErr := digest(name)
			if err != nil || (readErr != nil && !isFolder(name)) {
				fmt.Fprintf(h, "%q: %v %v\n", name, err, readErr)
				return nil
			}
			fmt.Fprintf(h, "%q: %x\n", name, sum)
			return nil
		})
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func digest(name string) ([]byte, error) {
	file, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	h := sha256.New()
	_, err = io.Copy(h, file)
	return h.Sum(nil), err
}

// resolved follows links, which WalkDir does not.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
