package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/feed"
	"example.com/cmctl/pkg/server/store/index"
)

// Options say where a store is and how it works. Every field but Dir may be left
// zero, and Dir may be with InMemory.
type Options struct {
	// Dir is the store's directory. It is made with mode 0700 if it is missing,
	// and belongs to the store alone.
	Dir string
	// InMemory keeps everything in memory, lost on Close.
	InMemory bool
	// FS replaces the operating system's file system, for tests.
	FS vfs.FS
	// InitialVersion is the first revision that a new store hands out. 0 means 1,
	// and in memory a random one below 500,000,000, so that the revisions that
	// clients remember from an earlier life match nothing.
	InitialVersion store.Revision
	// InlineValueSize is the size in bytes up to which values are held in memory;
	// larger ones are read from Pebble. 0 means 4096.
	InlineValueSize int
	// HistoryLimit is how many versions a key keeps through compaction, the
	// newest included. 0 means 10.
	HistoryLimit int
	// DeletedRetention is how long a deleted key keeps its last versions through
	// compaction, from the time of its tombstone on. 0 means 24 hours; below 0 it
	// keeps none.
	DeletedRetention time.Duration
	// DeletedLimit is how many deleted keys may keep versions through compaction;
	// beyond it those go first that were deleted first. 0 means 10,000.
	DeletedLimit int
	// WatchBuffer is how many events a watcher may be behind before it is closed.
	// 0 means 8192.
	WatchBuffer int
	// CacheBytes bounds the cache of blocks read from disk. 0 means 64 MiB.
	CacheBytes int64
	// Logger gets what the store has to say; nil discards it.
	Logger *slog.Logger

	watchBytes   int    // what a watcher's buffer may hold on to
	memTableSize uint64 // small ones make tests see many flushes
	apartAbove   int    // length beyond which a value gets a row of its own
	withoutSync  bool   // for the test that shows that the crash tests see a loss
	stalledAfter time.Duration
	afterDamage  time.Duration // the shortest pause after damage that was met again
	verifyRate   int           // bytes of tables in a second; below 0: they are not verified
	outcomeWait  time.Duration // for a write that is under way, beyond its context
	readOnly     bool          // change nothing; whoever sets it makes no commits
	restoring    bool          // Restore fills it
	lock         *pebble.Lock  // of Dir, which stays its owner's; nil: the store takes it
	now          func() time.Time
}

func (o Options) withDefaults() Options {
	if o.InMemory && o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.InMemory && o.Dir == "" {
		o.Dir = "memory"
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.InitialVersion == 0 {
		o.InitialVersion = 1
		if o.InMemory {
			o.InitialVersion = 1 + store.Revision(rand.Int64N(499_999_999))
		}
	}
	if o.InlineValueSize <= 0 {
		o.InlineValueSize = 4096
	}
	setDefault(&o.HistoryLimit, 10)
	setDefault(&o.DeletedRetention, 24*time.Hour)
	setDefault(&o.DeletedLimit, 10_000)
	if o.now == nil {
		o.now = time.Now
	}
	setDefault(&o.WatchBuffer, 8192)
	setDefault(&o.CacheBytes, defaultCacheBytes)
	setDefault(&o.watchBytes, 64<<20)
	setDefault(&o.apartAbove, defaultApartAbove)
	setDefault(&o.memTableSize, defaultMemTableSize)
	setDefault(&o.stalledAfter, stalledAfter)
	setDefault(&o.outcomeWait, outcomeWait)
	setDefault(&o.afterDamage, afterDamage)
	setDefault(&o.verifyRate, verifyRate)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Store is a store.Store in a directory. It may be shared.
type Store struct {
	opts Options
	log  *slog.Logger
	fs   *freezingFS
	db   *pebble.DB
	lock *pebble.Lock

	place      place
	room       room
	pace       pace
	mark       *mark
	background seldom // for what Pebble says of its background work

	// view is the published state. The committer alone stores it.
	view atomic.Pointer[index.State]
	pins index.Pins
	lost spans // never changes once the store is open

	ruins ruins
	usage index.Usage

	// queue takes transactions to the committer and maint what compaction has to
	// write. Commit and Compact send, the committer receives, nobody closes them.
	// A full queue makes the sender wait, within its context.
	queue chan *request
	maint chan *maintenance
	hub   feed.Hub

	// compactMu is held by the one compaction that may run.
	compactMu chan struct{}
	graves    graves

	// ops is held for reading by every call that uses Pebble, and for writing by
	// Close once closing is closed, which makes all of them end.
	ops       sync.RWMutex
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
	workers   sync.WaitGroup

	failure  atomic.Pointer[error]
	failOnce sync.Once
	failed   chan struct{} // closed after failure is set
}

var _ store.Store = (*Store)(nil)

// Open opens the store in o.Dir, and makes it if there is none. The error says
// which directory, what is wrong and what to do; it is store.ErrLocked if
// somebody has the store open, and store.ErrNewerFormat if a newer release wrote
// it. Open reads every key, but no large value.
func Open(o Options) (*Store, error) {
	s, err := lockStore(o)
	if err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		s.fs.armed.Store(false)
		return nil, errors.Join(fmt.Errorf("open store %s: %w", s.opts.Dir, err), s.release())
	}
	s.start()
	return s, nil
}

// lockStore is a store that has its directory, and nothing open in it.
func lockStore(o Options) (*Store, error) {
	o = o.withDefaults()
	if o.InitialVersion < 1 {
		return nil, fmt.Errorf("open store %s: initial version %d is below 1", o.Dir, o.InitialVersion)
	}
	dir, lock := o.Dir, o.lock
	if lock == nil {
		var err error
		if dir, lock, err = lockDir(o.FS, o.Dir); err != nil {
			return nil, err
		}
	}
	o.Dir = dir
	s := &Store{
		opts:      o,
		log:       o.Logger.With("dir", dir),
		lock:      lock,
		queue:     make(chan *request, maxBatch),
		maint:     make(chan *maintenance),
		compactMu: make(chan struct{}, 1),
		closing:   make(chan struct{}),
		failed:    make(chan struct{}),
	}
	s.background.period = time.Minute
	s.fs = newFreezingFS(o.FS, s.closing, s.fail)
	if o.FS == vfs.Default && !o.readOnly {
		s.fs.vitals = &vitals{files: map[string]*vitalFile{}}
	}
	if o.restoring { // whoever restores is told at once, and begins anew
		s.fs.repeat, s.fs.discards = 0, true
	}
	s.room = roomOf(o.FS, dir)
	s.opts.memTableSize = s.room.memTable(s.opts.memTableSize)
	s.pace.zero, s.pace.limit = time.Now(), o.stalledAfter
	return s, nil
}

func (s *Store) open() error {
	v, err := s.openExamined()
	if err != nil {
		return damaged(err)
	}
	s.view.Store(v)
	s.usage.Count(v.Tree)
	s.hub.Start(v.Current)
	return s.fs.arm()
}

// openExamined opens the database to write only when all that is in it was found
// sound.
func (s *Store) openExamined() (*index.State, error) {
	if s.opts.readOnly {
		if err := s.openPebble(true); err != nil {
			return nil, err
		}
		return s.load()
	}
	v, err := s.examine()
	if err == nil {
		err = s.openPebble(false)
	}
	if err == nil && v == nil {
		v, err = s.create()
	} else if err == nil {
		err = s.raiseFormat()
	}
	if err == nil {
		err = s.fs.reached() // a mark without the store that it is of would be damage
	}
	if err == nil {
		s.fs.vitals.adopt(s.opts.Dir)
		s.mark, err = openMark(s.opts.FS, s.opts.Dir, v.Current)
	}
	return v, err
}

// examine reads the store and changes nothing. The view is nil if there is none yet.
// Pebble that may write puts the log into tables and removes the files that it takes
// for obsolete as soon as it opens: what a refused start must leave as it is.
func (s *Store) examine() (*index.State, error) {
	names, err := s.opts.FS.List(s.opts.Dir)
	if err != nil || s.opts.restoring || !slices.ContainsFunc(names, isManifestMarker) {
		return nil, err
	}
	if err := s.openPebble(true); err != nil {
		return nil, err
	}
	v, err := s.load()
	if errors.Is(err, errEmpty) {
		v, err = nil, nil
	}
	db := s.db
	s.db = nil
	return v, errors.Join(err, db.Close())
}

func (s *Store) openPebble(readOnly bool) error {
	err := s.admit()
	if err == nil {
		err = checkMarker(s.opts.FS, s.opts.Dir)
	}
	if err == nil && !readOnly {
		err = s.room.checkStart()
	}
	if err != nil {
		return err
	}
	if s.place, err = placeOf(s.opts.FS, s.opts.Dir); err != nil {
		return err
	}
	if s.db, err = pebbleOpen(s.opts.Dir, s.pebbleOptions(s.lock, readOnly)); err != nil {
		return damaged(err)
	}
	return nil
}

// pebbleOpen makes an error of a panic, with which Pebble meets a directory whose sync
// fails.
func pebbleOpen(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
			if e, ok := cause.(error); ok {
				err = e
			}
		}
	}()
	return pebble.Open(dir, o)
}

// release gives back Pebble and the lock.
func (s *Store) release() error {
	var err error
	if s.db != nil {
		if s.log.Enabled(context.Background(), slog.LevelDebug) {
			s.log.Debug("pebble: metrics at the end", "metrics", s.db.Metrics().String())
		}
		err = s.db.Close()
	}
	if s.mark != nil {
		err = errors.Join(err, s.mark.close())
	}
	if s.opts.lock == nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

func (s *Store) start() {
	if s.opts.readOnly {
		return
	}
	s.workers.Go(s.commitLoop)
	s.workers.Go(s.finishCompaction)
	if s.place.lock != nil {
		s.workers.Go(s.watchPlace)
	}
	if !s.opts.InMemory && s.opts.verifyRate > 0 {
		s.workers.Go(s.keepVerifying)
	}
}

// State returns the current and the compacted revision.
func (s *Store) State() store.State {
	v := s.view.Load()
	return store.State{Current: v.Current, Compacted: v.Compacted}
}

// Healthy is nil while the store takes writes.
func (s *Store) Healthy() error {
	if s.isClosing() {
		return store.ErrClosed
	}
	s.checkPlace()
	if err := s.hindrance(); err != nil {
		return err
	}
	_, err := s.room.look()
	return err
}

// hindrance is what keeps every write from being made, for good or for now.
func (s *Store) hindrance() error {
	if err := s.failureErr(); err != nil {
		return err
	}
	if err := s.fs.lacks(); err != nil {
		return err
	}
	return s.pace.check()
}

// fail ends writing for good. The first cause is kept.
func (s *Store) fail(cause error) {
	s.failOnce.Do(func() {
		err := fmt.Errorf("%w: %w", store.ErrFailed, cause)
		if s.opts.restoring {
			err = cause // it will not be restarted
		}
		s.failure.Store(&err)
		close(s.failed)
		s.logFailure(cause)
	})
}

func (s *Store) logFailure(cause error) {
	var damage *store.DamageError
	if !errors.As(cause, &damage) {
		s.log.Error("store: takes no more writes until it is restarted", "error", line(cause))
		return
	}
	s.log.Error("store: stored data is damaged, no more writes are taken", "file", damage.File, "object", damage.Key, "error", line(cause),
		"next", fmt.Sprintf("stop the server; 'cmserver check --data-dir %s' names all that is damaged, 'cmserver restore' makes another directory of a backup", s.opts.Dir))
}

func (s *Store) failureErr() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// begin admits a call that uses Pebble; end must follow if it returns nil.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.ops.RLock()
	if s.isClosing() {
		s.ops.RUnlock()
		return store.ErrClosed
	}
	return nil
}

func (s *Store) end() { s.ops.RUnlock() }

// Close ends all watches, waits for what runs and gives the directory back. After
// a failed write Pebble may stand still and can't be closed: then the directory
// stays locked until the process ends, and the error says so.
func (s *Store) Close() error {
	first := false
	s.closeOnce.Do(func() { first = true; s.closeErr = s.close() })
	if !first {
		return store.ErrClosed
	}
	return s.closeErr
}

func (s *Store) close() error {
	close(s.closing)
	s.hub.Close(store.ErrClosed)
	if !s.waitForWorkers() {
		return fmt.Errorf("close store %s: left as it is, and locked until the process ends: %w", s.opts.Dir, s.failureErr())
	}
	s.ops.Lock() // every call that was running has ended
	defer s.ops.Unlock()
	s.pins.Clear()
	s.fs.armed.Store(s.fs.spoilt.Load()) // what is thrown away needs no end that holds
	if err := s.release(); err != nil {
		return fmt.Errorf("close store %s: %w", s.opts.Dir, err)
	}
	return nil
}

// waitForWorkers is false if Pebble stands still, in which case the committer may
// never come back.
func (s *Store) waitForWorkers() bool {
	done := make(chan struct{})
	go func() {
		s.workers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-s.fs.frozen:
	}
	return !s.fs.isFrozen()
}
