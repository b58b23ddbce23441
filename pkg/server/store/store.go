// Package store is the boundary between the HTTP API and whatever keeps its
// data. It offers one way to write, Commit: a transaction whose guards name the
// revision that each key must still have. Everything the API promises about
// lost updates rests on that comparison and the write being one step.
//
//	rev, err := s.Commit(ctx, store.Txn{
//		Guards: []store.Guard{{Key: k, Revision: seen}},
//		Writes: []store.Record{{Key: k, Value: body}},
//	})
//	var moved *store.GuardError
//	if errors.As(err, &moved) {
//		// somebody wrote first; moved.Current is the revision to read
//	}
//
// Implementations live in packages of their own (local, on Pebble) and must
// pass the suite in storetest.
package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Key names one stored object: the resource, then the namespace where there is
// one, then the name, joined by slashes ("configmaps/team-a/flags"). Keys are
// ordered bytewise, and listings follow that order. A key holds no NUL byte.
type Key string

// Revision numbers the states of the whole store: every commit has the next
// one, whatever keys it writes. It is never lowered and never given twice, not
// over restarts either. As a guard, 0 means that the key must be absent; as a
// point to read at, 0 means now and Any whatever is at hand.
type Revision int64

// Any is a point to read at: a state that the store has at hand. It may be an old one
// where the store is shared with others, but it is none before one that this Store has
// told of, by whatever call.
const Any Revision = -1

// String is the revision as it stands in metadata.resourceVersion.
func (r Revision) String() string { return strconv.FormatInt(int64(r), 10) }

// Record is one version of one key. A Record that the store returned is shared
// and must not be modified, nor may the Value of a Record given to Commit be
// changed afterwards.
type Record struct {
	Key Key
	// Revision is the commit that wrote this version. Commit sets it and
	// ignores what it was given.
	Revision Revision
	// Deleted marks a tombstone: the version in which the key went away. It
	// carries no Value, but Meta tells who deleted it.
	Deleted bool
	// Value is the object's JSON as list items show it, without kind and
	// apiVersion, and without metadata.resourceVersion, which is known only at
	// commit. It is never nil in a version that is not Deleted.
	Value []byte
	// VersionAt is the offset in Value at which `"resourceVersion":"N",` is
	// spliced in on the way out.
	VersionAt int
	// Labels are the object's labels, so that a selector reads no Value.
	Labels map[string]string
	// UID is the object's uid, so that its history tells one object from another
	// of the same name. A tombstone has that of what was deleted.
	UID string
	// Brief is what a list shows of the object that shows little of it.
	Brief Brief
	Meta
}

// Brief tells of an object what lists show that leave out what it holds, so that
// they read no long Value. It is zero in records of an older format and where
// whoever wrote the record told nothing.
type Brief struct {
	Created time.Time // to the second, UTC
	Keys    int       // how many keys of data the object has
	// Head is the length of the beginning of Value that holds the metadata, and
	// nothing else that is long. 0: there is no such part.
	Head int
}

// IsZero tells that nothing is known.
func (b Brief) IsZero() bool { return b == Brief{} }

// Meta tells where a version came from. It is kept with every record and shown
// in the object's history.
type Meta struct {
	Verb    string    // create, update, patch, apply, delete
	Manager string    // field manager
	User    string    // authenticated user, empty where nobody was asked
	Time    time.Time // when the server took the write; to the millisecond, UTC
	WriteID string    // the client's Cmctl-Write-Id, empty if it sent none
}

// Guard is a condition on one key: its newest version has this revision, or,
// with Revision 0, the key is absent (never written, deleted, or both).
type Guard struct {
	Key      Key
	Revision Revision
}

// Txn is a guarded commit. All guards and limits hold and all writes are made, or
// nothing is. A key may be written once in a Txn. The slices must not be changed
// while Commit runs.
type Txn struct {
	Guards []Guard
	Limits []Limit
	Writes []Record
}

// Collection is what keys have in common that differ in their last part only: all
// up to their last slash, with it ("configmaps/team-a/"), or nothing.
type Collection Key

// CollectionOf is the collection that a key belongs to.
func CollectionOf(key Key) Collection {
	return Collection(key[:strings.LastIndexByte(string(key), '/')+1])
}

// Usage is how much a collection holds: its live records, and how long their
// Values are together, in bytes. History does not count.
type Usage struct{ Records, Bytes int64 }

// Plus is the sum.
func (u Usage) Plus(v Usage) Usage { return Usage{u.Records + v.Records, u.Bytes + v.Bytes} }

// Limit is a condition on what a collection holds once the writes of its Txn are
// made: neither count grows beyond Most. It is about growth alone: a count that the
// writes don't raise holds, even where it is beyond the limit already.
//
// A store judges it in the same step as the guards, so that of writers beside each
// other no more come through than there is room for. One that keeps its data
// elsewhere does so with a counter a collection, which every commit to the collection
// moves along, and compares with what it read.
type Limit struct {
	Collection Collection
	Most       Usage // below 0: any number
}

// Allows tells whether a collection that has used so much may have so much more.
func (l Limit) Allows(used, added Usage) bool {
	return allows(l.Most.Records, used.Records, added.Records) && allows(l.Most.Bytes, used.Bytes, added.Bytes)
}

func allows(most, used, added int64) bool { return most < 0 || added <= 0 || used+added <= most }

// ListOptions choose what List returns.
type ListOptions struct {
	Prefix Key      // keys that begin with it
	After  Key      // only keys beyond this one; empty: from the start
	At     Revision // the state to read; 0: the current one; Any: one at hand
	Limit  int      // at most so many records; 0: all
	Part   Part     // how much is needed of each record
}

// Part is how much of a record is needed. A store that has no less at hand gives
// more.
type Part int

const (
	// Whole is all of it.
	Whole Part = iota
	// HeadAlone needs no more of Value than its first Brief.Head bytes, unless
	// that is 0.
	HeadAlone
	// BriefAlone needs no Value, which then may be nil, unless Brief is zero.
	BriefAlone
)

// Suffices tells whether a record without its Value, but for the head, is all
// that the part needs.
func (p Part) Suffices(b Brief) bool {
	return p == BriefAlone && !b.IsZero() || p == HeadAlone && b.Head > 0
}

// Page is what List found: the live records in key order, all of one state.
type Page struct {
	Records   []Record
	Revision  Revision // the state that was read
	Remaining int      // keys under the prefix that come after the page
}

// Event is one change of one key. Watchers share it: it must not be modified.
// Prev is the version before it, nil if the key was absent; a deletion carries
// its tombstone in Record and what was deleted in Prev.
type Event struct {
	Record Record
	Prev   *Record
}

// Watcher hands out the changes under a prefix in the order of their revisions,
// each once. It is for one goroutine, but for Close, which any may call.
type Watcher interface {
	// Next waits for changes and returns at least one. Events of one revision
	// come together. When ctx ends first it returns ctx's error, and the
	// watcher goes on. Any other error is final: ErrSlow if the events came
	// faster than they were taken, ErrClosed after Close or the store's Close,
	// ErrCompacted if history that the watcher had still to read was compacted
	// under it; no event is ever skipped without an error.
	Next(ctx context.Context) ([]Event, error)
	// Progress is a revision up to which Next has returned everything, changes
	// under other prefixes included: the one to name in a bookmark.
	Progress() Revision
	// Close ends the watch and wakes Next. It may be called more than once.
	Close()
}

// State is where a store stands.
type State struct {
	Current   Revision // of the newest commit; the initial version less one in a new store
	Compacted Revision // states before it can't be read or watched from any more
}

// Store keeps records. All methods may be called at the same time, and all but
// Close obey their context while they wait.
type Store interface {
	// Get returns the key's version in the state at: the newest one with a
	// revision of at most at. ErrNotFound if the key is absent there,
	// ErrCompacted and ErrFuture if that state can't be read. With at 0 it
	// sees every commit that was acknowledged before the call, by any Store on the
	// same data; with Any it costs no more than memory does.
	Get(ctx context.Context, key Key, at Revision) (Record, error)

	// List returns the live records of one state. ErrCompacted and ErrFuture
	// as in Get. It never blocks a Commit.
	List(ctx context.Context, o ListOptions) (Page, error)

	// History returns the heads of the versions of a key that are still kept,
	// tombstones included, newest first; limit 0 means all. A head has everything
	// but the Value, which is nil. Versions older than the compacted revision may
	// be among them, with gaps neither before nor between those that are returned
	// and the newest. ErrNotFound if nothing is kept. It reads no large Value.
	History(ctx context.Context, key Key, limit int) ([]Record, error)

	// Version returns the one version of a key that the commit rev wrote, whole; a
	// tombstone comes as a Deleted record. Whatever History lists can be read,
	// versions before the compacted revision too. If there is none:
	//
	// ErrFuture if rev is beyond the current revision.
	//
	// ErrCompacted if rev may have written the key and been given up: it is not
	// beyond the compacted revision, and no version as old is kept of the key.
	//
	// ErrNotFound if rev certainly did not write the key: all other cases, since
	// nothing is given up that is newer than the compacted revision or than any
	// version that is kept.
	Version(ctx context.Context, key Key, rev Revision) (Record, error)

	// Commit makes the writes if every guard holds, as one step, and returns
	// their revision. When it returns, they are durable, and only then can a
	// reader see them. A *GuardError says which guard failed and that nothing
	// was written, as does, if all guards hold, a *LimitError; so do ErrFull,
	// ErrStalled and ErrUnreachable, which pass, and ErrTooLarge. ErrFailed: the
	// store could not make it durable and takes no more writes; whether this one
	// survives is open until the restart. A context that ends before the store
	// took the transaction up has written nothing; afterwards the outcome is
	// waited for, unless that takes seconds: then it is left open with
	// ErrUnknown.
	Commit(ctx context.Context, txn Txn) (Revision, error)

	// Watch returns the changes under prefix after the revision from: those
	// already made first, then live ones, without gap or repetition. from 0
	// means from now on; a from beyond the current revision waits for it
	// silently. ErrCompacted if a needed change is no longer kept.
	Watch(ctx context.Context, prefix Key, from Revision) (Watcher, error)

	// Compact gives up the states before at: reads and watches from them
	// return ErrCompacted from then on. Each key keeps the version that is
	// current in the state at, what came after, and its last few versions for
	// History. A key that was deleted by then keeps nothing, or for a time its
	// last few versions, as the store is set; a tombstone without a time is old.
	// It is crash-safe at every step, and resumes where it was interrupted. at
	// beyond the current revision is ErrFuture; at already compacted gives up no
	// more states.
	Compact(ctx context.Context, at Revision) error

	// Usage returns what a collection holds. It sees every commit that was
	// acknowledged before the call, and may see one that is about to be. ErrClosed
	// after Close.
	Usage(ctx context.Context, c Collection) (Usage, error)

	// Reach waits until reads at Any see rev. ErrFuture if no commit has it yet:
	// whoever asks has it from elsewhere, or made it up.
	Reach(ctx context.Context, rev Revision) error

	// State returns the current and the compacted revision, as far as this Store
	// knows: what it has told of, and no more than there is.
	State() State

	// Healthy is nil while the store takes writes, else ErrFailed, ErrClosed,
	// ErrFull, ErrStalled or ErrUnreachable with the cause.
	Healthy() error

	// Close ends all watches, waits for what runs and releases the data. After
	// a failed write it may have to leave the data locked until the process
	// ends, and says so with ErrFailed. Later calls return ErrClosed.
	Close() error
}

// Describer is a Store that has something to tell of how it works at present: a few
// words for whoever operates it, without addresses or secrets.
type Describer interface {
	Describe() string
}

// Remote is a Store whose reads of the present ask others: one at Any costs much less.
type Remote interface {
	Remote()
}

// What reads and watches can meet.
var (
	ErrNotFound  = errors.New("not found")
	ErrCompacted = errors.New("this revision has been compacted")
	ErrFuture    = errors.New("this revision has not been reached")
	ErrSlow      = errors.New("watcher fell behind")
)

// What the whole store can meet.
var (
	// ErrClosed comes from every call after Close.
	ErrClosed = errors.New("store is closed")
	// ErrFailed comes from Commit once a write could not be made durable: the
	// store serves what it had and refuses further writes until it is opened
	// anew.
	ErrFailed = errors.New("store failed to write and takes no more writes until it is restarted")
	// ErrFull comes from Commit while the disk has no room to spare. Nothing was
	// written. Deletions are taken for longer than other writes, and all of them
	// again once there is room.
	ErrFull = errors.New("no room is left on the disk")
	// ErrClusterFull is the ErrFull of a cluster whose space quota is used up. It passes
	// once the cluster was compacted and defragmented, and its alarm is taken back.
	ErrClusterFull = fmt.Errorf("%w of the cluster that keeps the data: its space quota is used up", ErrFull)
	// ErrStalled comes from Commit while the disk does not finish what was begun
	// before. Nothing was written. It passes when the disk goes on.
	ErrStalled = errors.New("the disk does not finish an earlier write")
	// ErrUnknown comes from Commit when its context ended while the transaction was
	// being written by a disk that takes very long: it may become durable, or not.
	ErrUnknown = errors.New("whether the write was made is open")
	// ErrUnreachable comes from whatever needs the cluster that keeps the data while it
	// can't be reached, or has no quorum. Nothing was read or written. It passes when
	// the cluster is back.
	ErrUnreachable = errors.New("the cluster that keeps the data can't be reached")
	// ErrTooLarge comes from Commit for a transaction that is more than the store can
	// take at once. Nothing was written.
	ErrTooLarge = errors.New("more than the store takes in one write")
	// ErrTaken is with an ErrFailed that a restart makes worse: files that it would need
	// are gone, while everything acknowledged can still be read.
	ErrTaken = errors.New("files of the store were removed or changed under the running server")
	// ErrNoStore comes from opening a store that must be there and is not.
	ErrNoStore = errors.New("there is no store")
	// ErrLocked comes from opening a store that another process has open.
	ErrLocked = errors.New("store is in use by another process")
	// ErrDamaged comes from whatever meets stored data that is not what was
	// written. A store that finds it at opening does not open.
	ErrDamaged = errors.New("stored data is damaged")
	// ErrNewerFormat comes from opening a store that a newer release wrote.
	ErrNewerFormat = errors.New("store was written by a newer release")
)

// DamageError is ErrDamaged with where it was met, as far as that is known.
type DamageError struct {
	Key      Key      // empty: it is not known
	Revision Revision // of the version that can't be read; 0: it is not known
	File     string   // its name in the store's directory; empty: it is not known
	What     string   // what is wrong
}

func (e *DamageError) Error() string {
	text := ErrDamaged.Error() + ": "
	if e.Key != "" {
		text += string(e.Key)
		if e.Revision != 0 {
			text += " at revision " + e.Revision.String()
		}
		text += ": "
	}
	return text + e.Detail()
}

// Detail tells what is wrong and in which file.
func (e *DamageError) Detail() string {
	if e.File == "" {
		return e.What
	}
	return "file " + e.File + ": " + e.What
}

// Is makes it ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// LimitError is a limit that did not hold. Nothing was written.
type LimitError struct {
	Limit Limit
	Used  Usage // what the collection holds
	Added Usage // what it was to get besides
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s holds %d records of %d bytes, and was to get %d of %d bytes more", e.Limit.Collection,
		e.Used.Records, e.Used.Bytes, e.Added.Records, e.Added.Bytes)
}

// GuardError is a guard that did not hold. Nothing was written.
type GuardError struct {
	Guard   Guard
	Current Revision // what the key's revision is; 0 if it is absent
}

func (e *GuardError) Error() string {
	if e.Guard.Revision == 0 {
		return fmt.Sprintf("%s exists at revision %d", e.Guard.Key, e.Current)
	}
	if e.Current == 0 {
		return fmt.Sprintf("%s is gone, expected at revision %d", e.Guard.Key, e.Guard.Revision)
	}
	return fmt.Sprintf("%s is at revision %d, expected %d", e.Guard.Key, e.Current, e.Guard.Revision)
}
