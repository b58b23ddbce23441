package local

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
)

// dawn is a moment at which tests begin.
var dawn = time.Date(2024, 5, 6, 6, 0, 0, 0, time.UTC)

// timed is a store with a clock that the test moves.
type timed struct {
	*Store
	t   *testing.T
	o   Options
	now time.Time
}

func openTimed(t *testing.T, o Options) *timed {
	s := &timed{t: t, o: o, now: dawn}
	if o.FS == nil {
		s.o.FS, s.o.Dir = vfs.NewMem(), "store"
	}
	s.o.now = func() time.Time { return s.now }
	s.Store = open(t, s.o)
	return s
}

// restart opens the store in a next life, changed as told.
func (s *timed) restart(change func(*Options)) {
	s.t.Helper()
	ok(s.t, s.Check(s.t.Context()))
	ok(s.t, s.Close())
	change(&s.o)
	s.Store = open(s.t, s.o)
}

func (s *timed) remove(key store.Key) {
	s.t.Helper()
	_, err := s.Commit(s.t.Context(), store.Txn{Writes: []store.Record{{Key: key, Deleted: true, Meta: store.Meta{Time: s.now}}}})
	ok(s.t, err)
}

// compactAfter lets time pass, and then gives up all states but the current one.
func (s *timed) compactAfter(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	ok(s.t, s.Compact(s.t.Context(), s.State().Current))
	ok(s.t, s.Check(s.t.Context()))
}

// keeps demands the versions that are kept of a key, newest first; a deletion is a
// minus sign.
func (s *timed) keeps(key store.Key, want string) {
	s.t.Helper()
	var got []string
	for _, head := range versions(s.t, s.Store, key) {
		rec, err := s.Version(s.t.Context(), key, head.Revision)
		ok(s.t, err)
		if rec.Deleted {
			got = append(got, "-")
			continue
		}
		got = append(got, string(rec.Value))
	}
	if got := strings.Join(got, " "); got != want {
		s.t.Errorf("%s keeps %q, want %q", key, got, want)
	}
}

func (s *timed) rows() (rows []string) {
	s.t.Helper()
	it, err := s.db.NewIter(nil)
	ok(s.t, err)
	for more := it.First(); more; more = it.Next() {
		rows = append(rows, string(it.Key()))
	}
	ok(s.t, it.Close())
	return rows
}

func TestADeletedKeyKeepsItsLastVersionsForAWhile(t *testing.T) {
	s := openTimed(t, Options{HistoryLimit: 3, apartAbove: 3})
	for _, value := range []string{"1", "2", "3", "long"} {
		put(t, s.Store, "a", value)
	}
	s.remove("a")
	s.compactAfter(time.Hour)
	s.keeps("a", "- long 3")
	s.compactAfter(23*time.Hour - time.Second)
	s.keeps("a", "- long 3")
	s.compactAfter(time.Second)
	s.keeps("a", "")
	if rows := s.rows(); strings.Join(rows, " ") != "mcompacted mcurrent mformat" {
		t.Errorf("rows: %q", rows)
	}
}

// What is kept of deleted keys never shows in a state.
func TestWhatIsKeptOfADeletedKeyIsDeleted(t *testing.T) {
	s := openTimed(t, Options{})
	put(t, s.Store, "a", "1")
	s.remove("a")
	s.compactAfter(0)
	at := s.State().Current
	put(t, s.Store, "b", "x")
	for _, at := range []store.Revision{0, at} {
		page, err := s.List(t.Context(), store.ListOptions{At: at})
		ok(t, err)
		if len(page.Records) > 1 || at != 0 && len(page.Records) != 0 {
			t.Errorf("state %d has %v", at, page.Records)
		}
	}
	w, err := s.Watch(t.Context(), "", at)
	ok(t, err)
	defer w.Close()
	put(t, s.Store, "a", "anew")
	for seen := 0; seen < 2; {
		events, err := w.Next(t.Context())
		ok(t, err)
		for _, e := range events {
			if e.Prev != nil {
				t.Errorf("%s at %d: %+v was before", e.Record.Key, e.Record.Revision, e.Prev)
			}
		}
		seen += len(events)
	}
}

func TestDeletedKeysAreKnownInTheNextLife(t *testing.T) {
	s := openTimed(t, Options{})
	for _, key := range []store.Key{"early", "late", "alive"} {
		put(t, s.Store, key, "1")
	}
	s.remove("early")
	s.compactAfter(0)
	s.now = s.now.Add(time.Hour)
	s.remove("late")
	s.compactAfter(0)
	s.restart(func(*Options) {})
	s.keeps("early", "- 1")
	s.compactAfter(23 * time.Hour)
	s.keeps("early", "")
	s.keeps("late", "- 1")
	s.restart(func(o *Options) { o.DeletedRetention = -1 })
	s.keeps("late", "- 1") // only a compaction takes anything away
	s.compactAfter(0)
	s.keeps("late", "")
	s.keeps("alive", "1")
}

func TestBeyondTheLimitTheFirstDeletedGoFirst(t *testing.T) {
	s := openTimed(t, Options{DeletedLimit: 2})
	for _, key := range []store.Key{"a", "b", "c", "d"} {
		put(t, s.Store, key, "1")
	}
	for _, key := range []store.Key{"d", "b", "c", "a"} {
		s.remove(key)
	}
	s.compactAfter(time.Minute)
	for key, want := range map[store.Key]string{"d": "", "b": "", "c": "- 1", "a": "- 1"} {
		s.keeps(key, want)
	}
	s.restart(func(o *Options) { o.DeletedLimit = 1 })
	s.compactAfter(0)
	s.keeps("c", "")
	s.keeps("a", "- 1")
}

// A name that was made anew has the versions of the one before in its history, as
// long as they are among its last ones, and not too long deleted.
func TestAKeyMadeAnewKeepsWhatWasBefore(t *testing.T) {
	s := openTimed(t, Options{HistoryLimit: 4})
	put(t, s.Store, "a", "1")
	put(t, s.Store, "a", "2")
	s.remove("a")
	s.compactAfter(0)
	put(t, s.Store, "a", "3")
	s.compactAfter(time.Hour)
	s.keeps("a", "3 - 2 1")
	put(t, s.Store, "a", "4")
	s.compactAfter(0)
	s.keeps("a", "4 3 - 2")
	s.compactAfter(24 * time.Hour) // its grave is empty, and what is alive untouched
	s.keeps("a", "4 3 - 2")
	put(t, s.Store, "a", "5")
	s.compactAfter(0)
	s.keeps("a", "5 4 3")
}

// However much is to be given up, each step is one small write among the others.
func TestStepsOfCompactionAreSmall(t *testing.T) {
	// What one revision can add beyond the limit: a key's versions one by one.
	const slack = 2 * rangeFrom * 400
	s := openTimed(t, Options{HistoryLimit: rangeFrom - 1, apartAbove: 1, memTableSize: 16 << 20})
	name := func(i int) store.Key { return store.Key(fmt.Sprintf("%s%03d", strings.Repeat("k", 300), i)) }
	for i := range 100 * (rangeFrom - 2) {
		put(t, s.Store, name(i%100), "xx")
	}
	for i := range 100 {
		s.remove(name(i))
	}
	s.compactAfter(0)
	if n := len(s.graves.all); n != 100 {
		t.Fatalf("%d deleted keys are known, want 100", n)
	}
	s.now = s.now.Add(25 * time.Hour)
	s.compactMu <- struct{}{}
	defer func() { <-s.compactMu }()
	steps := 0
	for due := s.graves.due(s.expired, 100); len(due) > 0; steps++ {
		p, err := s.moment()
		ok(t, err)
		b := s.db.NewBatch()
		n, err := p.digSome(due, b)
		ok(t, err)
		if size := b.Len(); size > stepBytes+slack || n == 0 {
			t.Errorf("a step for %d of %d keys has %d bytes", n, len(due), size)
		}
		due = due[n:]
		p.close()
		ok(t, b.Close())
	}
	if steps < 2 {
		t.Errorf("%d steps: not enough to see a limit", steps)
	}
}

func TestStepsOfASweepAreSmall(t *testing.T) {
	s := openTimed(t, Options{HistoryLimit: 1, apartAbove: 1, memTableSize: 16 << 20, DeletedRetention: -1})
	name := func(i int) store.Key { return store.Key(fmt.Sprintf("%s%03d", strings.Repeat("k", 300), i)) }
	for i := range 3000 {
		put(t, s.Store, name(i%150), "xx")
	}
	s.compactMu <- struct{}{}
	defer func() { <-s.compactMu }()
	ok(t, s.giveUp(t.Context(), s.State().Current))
	for steps := 0; ; steps++ {
		p, err := s.moment()
		ok(t, err)
		b := s.db.NewBatch()
		ok(t, p.step(b))
		size, empty := b.Len(), b.Empty()
		p.close()
		ok(t, b.Close())
		if size > stepBytes+2*rangeFrom*400 {
			t.Errorf("step %d has %d bytes", steps, size)
		}
		if empty {
			if steps < 5 {
				t.Errorf("only %d steps", steps)
			}
			break
		}
		_, err = s.sweepStep(t.Context())
		ok(t, err)
	}
}

// Deleted, made anew, and deleted again a moment ago: that one is in the window
// still, however old the grave.
func TestANewDeletionIsNotTakenForAnOldOne(t *testing.T) {
	s := openTimed(t, Options{})
	put(t, s.Store, "a", "1")
	s.remove("a")
	s.compactAfter(0)
	at := put(t, s.Store, "b", "x")
	s.now = s.now.Add(24 * time.Hour)
	put(t, s.Store, "a", "2")
	s.remove("a")
	ok(t, s.Compact(t.Context(), at))
	s.keeps("a", "- 2 - 1")
	w, err := s.Watch(t.Context(), "a", at)
	ok(t, err)
	defer w.Close()
	if _, err := w.Next(t.Context()); err != nil {
		t.Error(err)
	}
}
