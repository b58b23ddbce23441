package local

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// maxReserve is what a large disk keeps free: the logs and tables of all the
// memtables that there may be at once, so that what was acknowledged can always be
// written out.
const maxReserve = 256 << 20

// startRoom is what a start needs beside what its logs hold.
const startRoom = 1 << 20

// level is what there is room for.
type level int

const (
	roomy level = iota
	tight       // for deletions, which are small and make room in time
	full        // for nothing
)

// admits says whether a transaction may be made.
func (l level) admits(r *request) bool {
	if l != tight {
		return l == roomy
	}
	for i := range r.writes {
		if !r.writes[i].rec.Deleted {
			return false
		}
	}
	return true
}

// room is the reserve on the disk. Writes end while there is still some space, so
// that each is refused before it is begun and its outcome is certain; that
// deletions have space to be written into; and that Pebble, to which a log that
// can't grow is fatal, seldom meets the end of the disk.
type room struct {
	fs  vfs.FS
	dir string
	// reserve is in bytes; 0 if the file system doesn't tell.
	reserve uint64
}

func roomOf(fs vfs.FS, dir string) room {
	r := room{fs: fs, dir: dir}
	if usage, err := fs.GetDiskUsage(dir); err == nil {
		r.reserve = min(maxReserve, usage.TotalBytes/8)
	}
	return r
}

// memTable is how large a memtable may be of those that usually have this size: the
// reserve must hold what several of them leave behind.
func (r room) memTable(usual uint64) uint64 {
	if r.reserve == 0 {
		return usual
	}
	return min(usual, max(r.reserve/8, minMemTableSize))
}

// look tells the level, and unless it is roomy an ErrFull that says how much is
// left. It takes about a microsecond.
func (r room) look() (level, error) {
	if r.reserve == 0 {
		return roomy, nil
	}
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err != nil || usage.AvailBytes >= r.reserve {
		return roomy, nil // an unknown amount is no reason to refuse
	}
	err = fmt.Errorf("%w: %d MiB are left, writes stop at %d MiB, deletions at %d MiB",
		store.ErrFull, usage.AvailBytes>>20, r.reserve>>20, r.reserve/2>>20)
	if usage.AvailBytes >= r.reserve/2 {
		return tight, err
	}
	return full, err
}

// checkStart is an error if the logs that are there can't be written out as tables,
// with which every start begins: Pebble would try it over and over and never open.
func (r room) checkStart() error { return r.checkWrite(0) }

// checkWrite is an error if after so many bytes more the store could not be started.
func (r room) checkWrite(size int) error {
	_, logs, err := r.used()
	if err != nil {
		return err
	}
	return r.check(startRoom + logs + 2*uint64(size)) // first in the log, then in a table
}

// check is an error if fewer bytes are left than are needed.
func (r room) check(needed uint64) error {
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err != nil {
		return nil // an unknown amount is no reason to refuse
	}
	if usage.AvailBytes >= needed {
		return nil
	}
	return fmt.Errorf("%d KiB are left, and %d KiB are needed to start: %w", usage.AvailBytes>>10, needed>>10, syscall.ENOSPC)
}

// used is how many bytes the store's files have, and its logs of these.
func (r room) used() (all, logs uint64, err error) {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		info, err := r.fs.Stat(r.fs.PathJoin(r.dir, name))
		if err != nil || info.IsDir() {
			continue // it may go at any time
		}
		all += uint64(info.Size())
		if strings.HasSuffix(name, ".log") {
			logs += uint64(info.Size())
		}
	}
	return all, logs, nil
}
