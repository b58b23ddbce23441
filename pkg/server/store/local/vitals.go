package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"example.com/cmctl/pkg/server/store"
)

// vitals are the files that the next start reads, but for the tables: the logs with
// what is in no table yet, the manifest, and the markers. One that is removed under a
// running process, replaced or cut goes on taking writes and syncs, and all of them are
// gone with the process. Only its name tells. A nil one knows no files.
type vitals struct {
	mu    sync.Mutex // guards files
	files map[string]*vitalFile
}

type vitalFile struct {
	path string
	info os.FileInfo
	size atomic.Int64 // what was written; it may be longer
}

// adopt keeps the markers that an earlier process made. All else is made anew by each
// start, that of the manifest too.
func (v *vitals) adopt(dir string) {
	if v == nil {
		return
	}
	entries, _ := os.ReadDir(dir) // what can't be read can't be looked after
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "marker.") && !isManifestMarker(entry.Name()) {
			v.keep(filepath.Join(dir, entry.Name()))
		}
	}
}

// keep begins to look after a file that has just been made, or won't go.
func (v *vitals) keep(path string) *vitalFile {
	if v == nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil // it proves nothing
	}
	f := &vitalFile{path: path, info: info}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.files[path] = f
	return f
}

// forget must come before the file goes.
func (v *vitals) forget(path string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.files, path)
}

// check is an error if one of them surely isn't there any more as it was written. It
// takes one or two microseconds for each, of which there are about five.
func (v *vitals) check() error {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range v.files {
		if what := f.look(); what != "" {
			return takenFile(filepath.Base(f.path), what, "which has all that was acknowledged")
		}
	}
	return nil
}

func takenFile(name, what, backup string) error {
	return fmt.Errorf("%w: %s was %s, and the next start would miss what is in it: make a backup before you stop the server "+
		"('cmserver backup FILE'), %s", store.ErrTaken, name, what, backup)
}

func (f *vitalFile) look() string {
	size := f.size.Load() // before the file, which may grow meanwhile
	now, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "removed"
	case err != nil:
		return "" // it proves nothing
	case !os.SameFile(now, f.info):
		return "replaced"
	case now.Size() < size:
		return "cut short"
	}
	return ""
}

func (f *vitalFile) grow(n int) {
	if f != nil {
		f.size.Add(int64(n))
	}
}
