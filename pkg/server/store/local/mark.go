package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// markFile holds the newest revision that was acknowledged: a u64 and its CRC-32C.
//
// Damage at the very end of Pebble's newest log looks to Pebble like a write that a
// crash cut short, and what was there would be gone without a word. This file knows
// better. It is written after each sync, before anybody hears of the commit, but not
// synced itself: it survives the end of the process, however that comes about, and
// after a power failure it may be behind, never ahead.
const markFile = "acknowledged"

const markSize = 12

type mark struct {
	file vfs.File
	buf  [markSize]byte // the committer's alone
}

// errMark comes from a mark that is itself damaged. A power failure may leave it so.
var errMark = errors.New("it is damaged, so that an end of the log that is damaged too would not be noticed; the next start writes it anew")

// checkMark compares the mark with the revision that was found on disk. A damaged one
// keeps nobody from starting.
func (s *Store) checkMark(current store.Revision) error {
	acknowledged, err := readMark(s.opts.FS, s.opts.FS.PathJoin(s.opts.Dir, markFile))
	switch {
	case errors.Is(err, errMark):
		s.log.Warn("store: the file that tells what was acknowledged can't be used", "file", markFile, "error", err)
		return nil
	case err == nil && acknowledged > current:
		err = fmt.Errorf("%w: version %d was acknowledged, but the newest that is found is %d: the end of the log is damaged, or files of another time were put here",
			store.ErrDamaged, acknowledged, current)
	}
	return err
}

// openMark goes on from the revision that was found on disk.
func openMark(fsys vfs.FS, dir string, current store.Revision) (*mark, error) {
	file, err := fsys.OpenReadWrite(fsys.PathJoin(dir, markFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	m := &mark{file: file}
	return m, errors.Join(m.write(current), m.file.Sync(), syncDir(fsys, dir))
}

// readMark is 0 if there is no mark, as in a directory of an earlier release.
func readMark(fsys vfs.FS, path string) (store.Revision, error) {
	file, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	buf := make([]byte, markSize)
	n, err := file.ReadAt(buf, 0)
	if err = errors.Join(ignoreEOF(err), file.Close()); err != nil {
		return 0, err
	}
	if n < markSize || crc32.Checksum(buf[:8], record.Castagnoli) != binary.BigEndian.Uint32(buf[8:]) {
		return 0, errMark
	}
	return store.Revision(binary.BigEndian.Uint64(buf)), nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// raise notes that everything up to rev is acknowledged. If that can't be written
// the older mark stays, which is true as well.
func (m *mark) raise(rev store.Revision) { _ = m.write(rev) }

func (m *mark) write(rev store.Revision) error {
	binary.BigEndian.PutUint64(m.buf[:], uint64(rev))
	binary.BigEndian.PutUint32(m.buf[8:], crc32.Checksum(m.buf[:8], record.Castagnoli))
	_, err := m.file.WriteAt(m.buf[:], 0)
	return err
}

func (m *mark) close() error { return errors.Join(m.file.Sync(), m.file.Close()) }
