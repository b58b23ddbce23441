package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
)

// Progress is told now and then how many objects of how many have been dealt with.
type Progress func(done, of int)

// BackupReader reads a backup from its begin to its end, once.
type BackupReader struct {
	// Info is the file's header. What it says has been verified when All returns.
	Info BackupInfo
	// Dropped are the deleted objects that were read, which Restore leaves out, and
	// their versions.
	Dropped  struct{ Objects, Versions int }
	archive  *archive.Reader
	progress Progress
	live     int    // objects that were read
	bytes    uint64 // and what they take
}

// NewBackupReader reads the begin of a backup. archive.ErrForeign, ErrNewer and
// ErrDamaged say why it can't be read. progress may be nil.
func NewBackupReader(r io.Reader, progress Progress) (*BackupReader, error) {
	a, err := archive.NewReader(r)
	if err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	b := &BackupReader{archive: a, progress: progress}
	if err := json.Unmarshal(a.Header(), &b.Info); err != nil || b.Info.Revision < 0 || b.Info.Objects < 0 {
		return nil, fmt.Errorf("%w: its header says nothing of use", archive.ErrDamaged)
	}
	return b, nil
}

// Verify reads all of it, and is nil if it is whole.
func (b *BackupReader) Verify(ctx context.Context) error {
	return b.each(ctx, func(*store.Record, bool) error { return nil })
}

// each hands out every version. deleted says that the newest version of the key
// is a tombstone. Only a nil return means that it was all, and all of it whole.
func (b *BackupReader) each(ctx context.Context, f func(rec *store.Record, deleted bool) error) error {
	var last store.Record
	deleted := false
	b.live, b.bytes = 0, 0
	b.Info.Versions = 0
	b.Dropped.Objects, b.Dropped.Versions = 0, 0
	for {
		entry, err := b.archive.Next()
		if errors.Is(err, io.EOF) {
			return b.complete()
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rec, err := decodeEntry(entry)
		if err == nil {
			err = b.follows(&last, &rec)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", archive.ErrDamaged, err)
		}
		if rec.Key != last.Key {
			if deleted = rec.Deleted; deleted {
				b.Dropped.Objects++
			} else {
				b.live++
				b.progress(b.live, b.Info.Objects)
			}
		}
		if deleted {
			b.Dropped.Versions++
		}
		b.Info.Versions++
		b.bytes += uint64(len(entry))
		if err := f(&rec, deleted); err != nil {
			return err
		}
		last = store.Record{Key: rec.Key, Revision: rec.Revision}
	}
}

// follows holds a record against the one before it: a restore relies on the order.
func (b *BackupReader) follows(last, rec *store.Record) error {
	if rec.Revision > b.Info.Revision {
		return fmt.Errorf("%s has revision %d, the newest is said to be %d", rec.Key, rec.Revision, b.Info.Revision)
	}
	if rec.Key < last.Key || rec.Key == last.Key && rec.Revision >= last.Revision {
		return fmt.Errorf("%s at revision %d is out of order", rec.Key, rec.Revision)
	}
	return nil
}

func (b *BackupReader) complete() error {
	if b.live != b.Info.Objects {
		return fmt.Errorf("%w: it has %d objects and should have %d", archive.ErrDamaged, b.live, b.Info.Objects)
	}
	return nil
}
