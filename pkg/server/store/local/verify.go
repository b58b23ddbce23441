package local

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

const (
	// verifyRate is slow enough not to be felt, and reads a GiB in a minute.
	verifyRate = 16 << 20
	// verifyEvery is from the end of one round to the begin of the next.
	verifyEvery = 24 * time.Hour
)

// keepVerifying reads all tables again and again. A start has no time for what it
// doesn't need, contents above all, and what nobody reads could be damaged for long
// before anybody knew, while backups that are still whole are thrown away.
func (s *Store) keepVerifying() {
	for {
		s.verify()
		select {
		case <-time.After(verifyEvery):
		case <-s.failed:
			return
		case <-s.closing:
			return
		}
	}
}

// verify reads all tables once. The first damage ends it: what else is damaged is for
// a check of the whole directory.
func (s *Store) verify() {
	begun := time.Now()
	tables, err := s.tables()
	if err != nil {
		s.log.Warn("store: the tables can't be verified", "error", line(err))
		return
	}
	pace := &pacer{rate: s.opts.verifyRate, closing: s.closing}
	for name := range tables {
		err := s.validateTable(context.Background(), name, pace.file)
		switch {
		case s.isClosing(), s.failureErr() != nil:
			return
		case err == nil:
		case !isDamage(err):
			s.log.Warn("store: a table can't be verified; it is tried again with the next round", "file", name, "error", line(err))
		default:
			if now, e := s.tables(); e == nil && now[name] == 0 {
				continue // compaction has replaced it meanwhile
			}
			s.fail(tableDamage(name, err))
			return
		}
	}
	s.log.Info("store: all tables are verified", "files", len(tables), "bytes", pace.read, "took", time.Since(begun).Round(time.Millisecond))
}

func tableDamage(name string, err error) error {
	d := *damageOf(err)
	if d.File = name; errors.Is(err, fs.ErrNotExist) {
		d.What = "it is gone"
	}
	return &d
}

// tables are the tables that are in use, each with its length.
func (s *Store) tables() (map[string]int64, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	lengths := map[string]int64{}
	for _, level := range levels {
		for _, table := range level {
			length := int64(table.Size)
			if table.Virtual {
				length = 1 // it is a part of that file
			}
			lengths[table.BackingSSTNum.String()+".sst"] = length
		}
	}
	return lengths, nil
}

// validateTable verifies the checksum of each block of a table. It goes past Pebble's
// caches. wrap may be nil.
func (s *Store) validateTable(ctx context.Context, name string, wrap func(vfs.File) vfs.File) error {
	f, err := s.opts.FS.Open(s.opts.FS.PathJoin(s.opts.Dir, name))
	if err != nil {
		return err
	}
	if wrap != nil {
		f = wrap(f)
	}
	var readable objstorage.Readable
	if readable, err = sstable.NewSimpleReadable(summedFile{f, name}); err != nil {
		return errors.Join(err, f.Close())
	}
	o := s.pebbleOptions(nil, true)
	o.EnsureDefaults()
	r, err := sstable.NewReader(ctx, readable, o.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// pacer lets files be read so fast and no faster.
type pacer struct {
	rate    int // bytes in a second
	closing <-chan struct{}
	read    int64
	due     time.Time // when what was read so far may have been read
}

func (p *pacer) file(f vfs.File) vfs.File { return pacedFile{f, p} }

func (p *pacer) wait(n int) error {
	now := time.Now()
	if p.due.Before(now) {
		p.due = now
	}
	p.read += int64(n)
	p.due = p.due.Add(time.Duration(n) * time.Second / time.Duration(p.rate))
	select {
	case <-time.After(p.due.Sub(now)):
		return nil
	case <-p.closing:
		return store.ErrClosed
	}
}

type pacedFile struct {
	vfs.File
	pacer *pacer
}

func (f pacedFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.pacer.wait(len(b)); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}
