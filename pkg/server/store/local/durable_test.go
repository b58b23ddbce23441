package local

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/cmctl/pkg/server/store"
)

// gate makes each sync of the log wait until it is let through.
type gate struct {
	entered chan struct{}
	let     chan struct{}
}

func openGated(t *testing.T) (*Store, *faulty, gate) {
	f := newFaulty()
	s := open(t, mem(f.fs))
	g := gate{entered: make(chan struct{}), let: make(chan struct{})}
	f.failOn(g.hold)
	return s, f, g
}

func (g gate) hold(op errorfs.Op) bool {
	if strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
		g.entered <- struct{}{}
		<-g.let
	}
	return false
}

type outcome struct {
	rev store.Revision
	err error
}

func commit(s *Store, txn store.Txn) chan outcome {
	done := make(chan outcome, 1)
	go func() {
		rev, err := s.Commit(context.Background(), txn)
		done <- outcome{rev, err}
	}()
	return done
}

// queued waits until so many transactions wait for the committer.
func queued(s *Store, n int) {
	for len(s.queue) < n {
		runtime.Gosched()
	}
}

func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	s, f, g := openGated(t)
	ctx := t.Context()
	w := watch(t, s, "", 0)
	before := s.State()
	write := commit(s, store.Txn{Writes: []store.Record{{Key: "x", Value: []byte("1")}}})
	<-g.entered
	// Pebble shows the row already, or soon: this is what must not get out.
	for {
		_, closer, err := s.db.Get(recordKey("x", before.Current+1))
		if err == nil {
			ok(t, closer.Close())
			break
		}
		runtime.Gosched()
	}
	if _, err := s.Get(ctx, "x", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := s.Get(ctx, "x", before.Current+1); !errors.Is(err, store.ErrFuture) {
		t.Errorf("get at the coming revision: %v", err)
	}
	if _, err := s.History(ctx, "x", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("history: %v", err)
	}
	page, err := s.List(ctx, store.ListOptions{})
	if err != nil || len(page.Records) != 0 || page.Revision != before.Current {
		t.Errorf("list: %+v, %v", page, err)
	}
	if s.State() != before || w.Progress() != before.Current {
		t.Errorf("state %+v, progress %d", s.State(), w.Progress())
	}
	ok(t, s.Check(ctx))
	select {
	case o := <-write:
		t.Errorf("acknowledged before the sync: %+v", o)
	default:
	}
	f.fail.Store(nil)
	g.let <- struct{}{}
	if o := <-write; o.err != nil || o.rev != before.Current+1 {
		t.Errorf("outcome %+v", o)
	}
}

// direct hands a transaction to the committer and returns the request, in which
// the answer arrives without another goroutine in between.
func direct(t *testing.T, s *Store, txn store.Txn) *request {
	t.Helper()
	r, err := s.prepare(txn)
	ok(t, err)
	s.queue <- r
	return r
}

// A refusal names the revision of the commit that it lost to, which must be
// durable first.
func TestARefusalWaitsForWhatItLostTo(t *testing.T) {
	s, f, g := openGated(t)
	first := commit(s, store.Txn{Writes: []store.Record{{Key: "x", Value: []byte("1")}}})
	<-g.entered
	create := store.Txn{Guards: []store.Guard{{Key: "a"}}, Writes: []store.Record{{Key: "a", Value: []byte("1")}}}
	won, lost := direct(t, s, create), direct(t, s, create)
	g.let <- struct{}{}
	<-g.entered // both are in this batch
	if o := <-first; o.err != nil {
		t.Error(o.err)
	}
	if len(won.done)+len(lost.done) != 0 {
		t.Error("answered before the winner was durable")
	}
	f.fail.Store(nil)
	g.let <- struct{}{}
	w, l := <-won.done, <-lost.done
	var moved *store.GuardError
	if w.err != nil || !errors.As(l.err, &moved) || moved.Current != w.rev {
		t.Errorf("won %+v, lost %+v", w, l)
	}
}

// The state is published before the first writer of a batch hears of it.
func TestAWriterHearsOfWhatCanBeRead(t *testing.T) {
	s, f, g := openGated(t)
	first := commit(s, store.Txn{Writes: []store.Record{{Key: "x", Value: []byte("1")}}})
	<-g.entered
	txn := store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("1")}}}
	one := direct(t, s, txn)
	two, err := s.prepare(txn)
	ok(t, err)
	two.done = make(chan result) // the committer stands still where it answers this one
	s.queue <- two
	f.fail.Store(nil)
	g.let <- struct{}{}
	<-first
	if r := <-one.done; r.err != nil || s.State().Current < r.rev {
		t.Errorf("heard of %+v in state %+v", r, s.State())
	}
	<-two.done
}

// Whatever fails the store while a commit is being synced, it is not acknowledged.
func TestAFailureDuringASyncIsNoSuccess(t *testing.T) {
	s, f, g := openGated(t)
	before := s.State()
	write := direct(t, s, store.Txn{Writes: []store.Record{{Key: "x", Value: []byte("1")}}})
	<-g.entered
	s.fail(store.ErrDamaged)
	f.fail.Store(nil)
	g.let <- struct{}{}
	if r := <-write.done; !errors.Is(r.err, store.ErrFailed) || s.State() != before {
		t.Errorf("outcome %+v, state %+v", r, s.State())
	}
}

// A commit that waits for the committer can be given up; one that is being
// written can't, and its outcome is told.
func TestGivingUpACommit(t *testing.T) {
	s, f, g := openGated(t)
	ctx, cancel := context.WithCancel(context.Background())
	taken, waits := make(chan outcome, 1), make(chan outcome, 1)
	run := func(key store.Key, done chan outcome) {
		rev, err := s.Commit(ctx, store.Txn{Writes: []store.Record{{Key: key, Value: []byte("1")}}})
		done <- outcome{rev, err}
	}
	go run("taken", taken)
	<-g.entered
	go run("waits", waits)
	queued(s, 1)
	cancel()
	if o := <-waits; !errors.Is(o.err, context.Canceled) {
		t.Errorf("waiting: %+v", o)
	}
	f.fail.Store(nil)
	g.let <- struct{}{}
	if o := <-taken; o.err != nil {
		t.Errorf("taken: %+v", o)
	}
	put(t, s, "after", "1")
	if _, err := s.Get(t.Context(), "waits", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was given up is there: %v", err)
	}
}

// Close while a commit is being written: that one ends well, those that wait are
// told that the store is closed, and nothing of them is written.
func TestCloseDuringACommit(t *testing.T) {
	s, f, g := openGated(t)
	taken := commit(s, store.Txn{Writes: []store.Record{{Key: "taken", Value: []byte("1")}}})
	<-g.entered
	waits := commit(s, store.Txn{Writes: []store.Record{{Key: "waits", Value: []byte("1")}}})
	queued(s, 1)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	if o := <-waits; !errors.Is(o.err, store.ErrClosed) {
		t.Errorf("waiting: %+v", o)
	}
	f.fail.Store(nil)
	g.let <- struct{}{}
	if o := <-taken; o.err != nil {
		t.Errorf("taken: %+v", o)
	}
	ok(t, <-closed)
	again := f.survivors(t)
	if _, err := again.Get(t.Context(), "taken", 0); err != nil {
		t.Error(err)
	}
	if _, err := again.Get(t.Context(), "waits", 0); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

// Reads and watches go on while the disk takes its time.
func TestReadsDoNotWaitForASync(t *testing.T) {
	s, f, g := openGated(t)
	f.fail.Store(nil)
	old := put(t, s, "a", "1")
	put(t, s, "a", "2")
	f.failOn(g.hold)
	write := commit(s, store.Txn{Writes: []store.Record{{Key: "a", Value: []byte("3")}}})
	<-g.entered
	for at, want := range map[store.Revision]string{0: "2", old: "1"} {
		if rec, err := s.Get(t.Context(), "a", at); err != nil || string(rec.Value) != want {
			t.Errorf("get at %d: %s, %v", at, rec.Value, err)
		}
		if page, err := s.List(t.Context(), store.ListOptions{At: at}); err != nil || string(page.Records[0].Value) != want {
			t.Errorf("list at %d: %v", at, err)
		}
	}
	events, err := watch(t, s, "", old).Next(t.Context())
	if err != nil || len(events) != 1 || string(events[0].Record.Value) != "2" {
		t.Errorf("backlog: %v, %v", events, err)
	}
	f.fail.Store(nil)
	g.let <- struct{}{}
	if o := <-write; o.err != nil {
		t.Error(o.err)
	}
}
