package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// LeastAdvance is how far the counter moves at least beyond a backup's highest
// revision, and how much further for each second since the backup was made. No
// server writes as much in a second, so that nothing which was handed out after
// the backup is handed out again, however many restores of it there are.
const LeastAdvance = 1 << 20

// spread is the range of a random part of that. Restores of one backup in the same
// second, or one with --advance and one without, would else hand out the same
// revisions for different contents; so they do with a chance of writes to 2^40.
const spread = 1 << 40

// HighestBegin is where a store's counter may begin at most: from there it can still
// go on for ever.
const HighestBegin = 1 << 62

// RestoreOptions say where a backup goes, and from where its counter goes on.
type RestoreOptions struct {
	// Dir is made if it is missing, and must be empty.
	Dir string
	// FS replaces the operating system's file system, for tests.
	FS vfs.FS
	// Now is the time by which the age of the backup is told; zero asks the clock.
	Now time.Time
	// Advance is how far the counter moves at least beyond the backup's highest
	// revision, Above a revision that it moves beyond in any case. They can only
	// add to what the backup's age demands. Where the clock is before the time at
	// which the backup was made, one of them must be given.
	Advance, Above store.Revision
	// Logger gets what the store has to say; nil discards it.
	Logger *slog.Logger

	batchBytes int                   // after so many a batch is written
	random     func() store.Revision // below spread
}

// Restore makes a store of the backup, and returns the revision at which it
// stands. All of the file is verified, and all of the store that came of it is
// read again, before Dir becomes a directory that Open takes. Where it fails, all is
// left as it was; where it is cut off, Open refuses Dir and Restore begins anew. A
// *FullError says that there was too little room, ErrNotBegun that the options won't
// do or the directory can't be had, and ErrLeft that it could not be cleared. Where
// ctx ends it, the error is the cause of that.
//
// Live objects come with all their kept versions, each with the revision that it
// had: no other content ever had it. All states before the returned revision are
// given up, so that who watches or lists from a revision of the lost life is told
// to begin anew, and who writes with one meets a guard that doesn't hold. Deleted
// keys are not kept, as after a compaction.
func (b *BackupReader) Restore(ctx context.Context, o RestoreOptions) (store.Revision, error) {
	current, err := b.counter(o)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotBegun, err)
	}
	if o.batchBytes == 0 {
		o.batchBytes = maxBatchBytes / 2
	}
	so := Options{Dir: o.Dir, FS: o.FS, Logger: o.Logger, InitialVersion: current + 1, restoring: true}.withDefaults()
	site, err := takeSite(so.FS, o.Dir)
	if err != nil && lacking(err) == nil {
		return 0, fmt.Errorf("%w: %w", ErrNotBegun, errors.Join(err, site.clear(err)))
	}
	if err == nil {
		so.Dir, so.lock = site.dir, site.lock
		err = b.fill(ctx, so, o.batchBytes)
	}
	if err == nil {
		err = b.verifyRestored(ctx, so, current)
	}
	if err == nil {
		err = site.finish()
	}
	if err == nil {
		return current, site.lock.Close()
	}
	if lacking(err) == store.ErrFull {
		err = b.full(ctx, roomOf(so.FS, site.dir), so.memTableSize)
	}
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	if left := site.clear(err); left != nil {
		err = fmt.Errorf("%w; %w: %w", err, ErrLeft, left)
	}
	return 0, err
}

var (
	// ErrNotBegun comes from a restore that has done nothing.
	ErrNotBegun = errors.New("it can't begin")
	// ErrLeft comes from a restore that failed and could not clear its directory.
	ErrLeft = errors.New("what was written is left there")
)

// FullError comes from a restore for which there is too little room.
type FullError struct {
	// Missing is about how many bytes more are needed: for what is not written yet,
	// if it takes as much as what was read, to merge tables, and for the reserve of a
	// running store.
	Missing uint64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the disk is full: about %d more bytes are needed", e.Missing)
}

// Unwrap makes it a store.ErrFull.
func (e *FullError) Unwrap() error { return store.ErrFull }

// full tells how much is missing. It is called before what was written is removed.
func (b *BackupReader) full(ctx context.Context, r room, memTable uint64) error {
	if err := b.sample(ctx); err != nil {
		return err
	}
	used, logs, err := r.used()
	if err != nil {
		used, logs = 0, 0 // the estimate is higher then
	}
	tables := used - logs
	total := b.bytes / uint64(max(b.live, 1)) * uint64(max(b.Info.Objects, 1))
	// As many logs as there may be, depending on who is quicker, and a batch.
	logs = max(logs, min(total, (maxMemTables+1)*r.memTable(memTable)))
	needed := max(total, tables) - tables + min(total, baseBytes) + max(r.reserve, startRoom+2*logs)
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err != nil {
		usage.AvailBytes = 0
	}
	return &FullError{max(needed, usage.AvailBytes+startRoom) - usage.AvailBytes}
}

// sample reads some objects, if none was read before, to know how large they are.
func (b *BackupReader) sample(ctx context.Context) error {
	if b.live > 0 {
		return nil
	}
	enough := errors.New("enough")
	err := b.each(ctx, func(*store.Record, bool) error {
		if b.live < 1000 {
			return nil
		}
		return enough
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// counter is the revision at which the restored store stands.
func (b *BackupReader) counter(o RestoreOptions) (store.Revision, error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	age := o.Now.Sub(b.Info.Made)
	if age < 0 && o.Advance == 0 && o.Above == 0 {
		return 0, fmt.Errorf("the backup was made at %s, which is later than this clock shows, so that it can't be told how many versions "+
			"were handed out since: set the clock, or name a version beyond all of them (--above V)", b.Info.Made.Format(time.RFC3339))
	}
	seconds := store.Revision(max(age, 0)/time.Second) + 1
	advance := max(LeastAdvance*(1+seconds), o.Advance)
	if o.Advance > HighestBegin || o.Above > HighestBegin || b.Info.Revision > HighestBegin || b.Info.Revision+advance > HighestBegin {
		return 0, fmt.Errorf("the versions would go beyond %d", int64(HighestBegin))
	}
	if o.random == nil {
		o.random = func() store.Revision { return rand.N[store.Revision](spread) }
	}
	return max(b.Info.Revision+advance, o.Above) + o.random(), nil
}

// fill writes the backup into a new store. It goes through the committer, which
// knows what to do when the disk fails.
func (b *BackupReader) fill(ctx context.Context, o Options, batchBytes int) error {
	s, err := Open(o)
	if err != nil {
		return err
	}
	// On a small disk the logs are kept short.
	l := loader{s: s, ctx: ctx, limit: min(batchBytes, int(s.opts.memTableSize/2))}
	err = b.each(ctx, l.add)
	if err == nil {
		lost := append(slices.Clone(b.Info.Lost), span{b.Info.Revision + 1, s.State().Current})
		err = l.finish(lost)
	}
	if err == nil {
		// Where a log ends too early, the mark of what was acknowledged tells it by the
		// newest version. Here the newest is the one that the counter begins at, and all
		// objects are older: they must not be in the log alone.
		err = s.db.Flush()
	}
	if err = errors.Join(err, s.Close()); err == nil {
		err = s.failureErr() // met while it was closed
	}
	if err == nil {
		err = s.room.check(startRoom) // nothing is in the logs
	}
	return err
}

// loader writes records with the revisions that they have.
type loader struct {
	s     *Store
	ctx   context.Context
	batch *pebble.Batch
	limit int // bytes
}

func (l *loader) add(rec *store.Record, deleted bool) error {
	if deleted {
		return nil
	}
	row, apart := record.Encode(rec, l.s.opts.apartAbove)
	err := l.writable().Set(recordKey(rec.Key, rec.Revision), row, nil)
	if apart != nil {
		err = errors.Join(err, l.batch.Set(valueKey(rec.Key, rec.Revision), apart, nil))
	}
	if err != nil || l.batch.Len() < l.limit {
		return err
	}
	return l.flush()
}

func (l *loader) writable() *pebble.Batch {
	if l.batch == nil {
		l.batch = l.s.db.NewBatch()
	}
	return l.batch
}

// finish notes which revisions are skipped, and writes what waits.
func (l *loader) finish(lost spans) error {
	if err := l.writable().Set(metaLost, lost.encode(), nil); err != nil {
		return err
	}
	return l.flush()
}

func (l *loader) flush() error {
	b := l.batch
	l.batch = nil
	if err := l.s.room.checkWrite(b.Len()); err != nil {
		return errors.Join(err, b.Close())
	}
	return l.s.write(l.ctx, &maintenance{batch: b}) // never closed: after a failure the committer may still have it
}

// verifyRestored reads everything as it came to the disk.
func (b *BackupReader) verifyRestored(ctx context.Context, o Options, current store.Revision) error {
	o.readOnly = true
	s, err := Open(o)
	if err != nil {
		return err
	}
	err = s.Check(ctx)
	if v := s.view.Load(); err == nil && (v.Current != current || v.Compacted != current || v.Tree.Len() != b.Info.Objects) {
		err = fmt.Errorf("%w: %d objects at %d were written, %d at %d are there", store.ErrDamaged,
			b.Info.Objects, current, v.Tree.Len(), v.Current)
	}
	return errors.Join(err, s.Close())
}
