// Package storetest is what every store.Store must do, as tests. An
// implementation passes its own way of opening a store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(tb testing.TB) store.Store { ... })
//	}
//
// Each subtest is named for what it claims and opens a store of its own, so that
// open should be cheap, and may register checks of the implementation with
// tb.Cleanup; they run after the store was closed by the test only if the test is
// about closing.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// Run runs the suite. open returns an empty store; whoever opens it also closes
// it, by tb.Cleanup, and bears with a test that has closed it before.
func Run(t *testing.T, open func(testing.TB) store.Store) {
	for _, g := range []struct {
		name   string
		claims []claim
	}{
		{"Commit", commitClaims},
		{"Limits", limitClaims},
		{"Read", readClaims},
		{"History", historyClaims},
		{"Watch", watchClaims},
		{"Compact", compactClaims},
		{"Concurrency", concurrencyClaims},
		{"Lifecycle", lifecycleClaims},
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.claims {
				t.Run(c.says, func(t *testing.T) {
					t.Parallel()
					c.holds(newHarness(t, open(t)))
				})
			}
		})
	}
}

// RunDurable runs what must hold over a restart. open opens the store in dir,
// which is empty at first, and leaves closing to the test.
func RunDurable(t *testing.T, open func(tb testing.TB, dir string) store.Store) {
	for _, c := range durableClaims {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := &restarter{harness: newHarness(t, open(t, dir)), reopen: func() store.Store { return open(t, dir) }}
			// The test may fail between two lives, when there is nothing to close.
			t.Cleanup(func() { _ = r.Close() })
			c.holds(r)
		})
	}
}

type claim struct {
	says  string
	holds func(h *harness)
}

type durableClaim struct {
	says  string
	holds func(r *restarter)
}

// restarter is a harness whose store can be closed and opened again.
type restarter struct {
	*harness
	reopen func() store.Store
}

func (r *restarter) restart() {
	r.Helper()
	r.ok(r.Close())
	r.Store = r.reopen()
}

// harness is a store with the words that the tests are written in. All of them
// fail the test rather than return an error.
type harness struct {
	*testing.T
	store.Store
	ctx context.Context
}

// patience is how long something may take before a test calls it stuck. No test
// waits for it to pass.
const patience = time.Minute

func newHarness(t *testing.T, s store.Store) *harness {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &harness{T: t, Store: s, ctx: ctx}
}

func (h *harness) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatalf("unexpected error: %v", err)
	}
}

// is demands an error.
func (h *harness) is(err, want error) {
	h.Helper()
	if !errors.Is(err, want) {
		h.Fatalf("error is %v, want %v", err, want)
	}
}

func equal[V comparable](h *harness, what string, got, want V) {
	h.Helper()
	if got != want {
		h.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// record is a live version with this value.
func record(key store.Key, value string) store.Record {
	return store.Record{Key: key, Value: []byte(value)}
}

func tombstone(key store.Key) store.Record { return store.Record{Key: key, Deleted: true} }

func absent(key store.Key) store.Guard { return store.Guard{Key: key} }

func at(key store.Key, rev store.Revision) store.Guard { return store.Guard{Key: key, Revision: rev} }

func (h *harness) commit(txn store.Txn) store.Revision {
	h.Helper()
	rev, err := h.Commit(h.ctx, txn)
	h.ok(err)
	return rev
}

// put writes a value, whatever was there.
func (h *harness) put(key store.Key, value string) store.Revision {
	h.Helper()
	return h.commit(store.Txn{Writes: []store.Record{record(key, value)}})
}

// puts writes several keys in one commit: puts("a", "1", "b", "2").
func (h *harness) puts(pairs ...string) store.Revision {
	h.Helper()
	var txn store.Txn
	for i := 0; i < len(pairs); i += 2 {
		txn.Writes = append(txn.Writes, record(store.Key(pairs[i]), pairs[i+1]))
	}
	return h.commit(txn)
}

// remove deletes a key, whatever was there.
func (h *harness) remove(key store.Key) store.Revision {
	h.Helper()
	return h.commit(store.Txn{Writes: []store.Record{tombstone(key)}})
}

// refused demands a GuardError and that nothing changed.
func (h *harness) refused(txn store.Txn, guard store.Guard, current store.Revision) {
	h.Helper()
	before := h.State()
	_, err := h.Commit(h.ctx, txn)
	var moved *store.GuardError
	if !errors.As(err, &moved) {
		h.Fatalf("error is %v, want a GuardError", err)
	}
	equal(h, "guard", moved.Guard, guard)
	equal(h, "current revision of the key", moved.Current, current)
	equal(h, "state", h.State(), before)
}

// reads demands a value in the state at.
func (h *harness) reads(key store.Key, at store.Revision, value string) store.Record {
	h.Helper()
	rec, err := h.Get(h.ctx, key, at)
	if err != nil {
		h.Fatalf("get %s at %d: %v", key, at, err)
	}
	equal(h, fmt.Sprintf("value of %s at %d", key, at), string(rec.Value), value)
	equal(h, "key", rec.Key, key)
	return rec
}

// lacks demands that the key is absent in the state at.
func (h *harness) lacks(key store.Key, at store.Revision) {
	h.Helper()
	rec, err := h.Get(h.ctx, key, at)
	if !errors.Is(err, store.ErrNotFound) {
		h.Fatalf("get %s at %d: %v, %v, want ErrNotFound", key, at, rec, err)
	}
}

// lists demands the records of a page, as "a=1 b=2", and returns the page.
func (h *harness) lists(o store.ListOptions, want string) store.Page {
	h.Helper()
	page, err := h.List(h.ctx, o)
	if err != nil {
		h.Fatalf("list %+v: %v", o, err)
	}
	equal(h, fmt.Sprintf("list %+v", o), words(page.Records), want)
	return page
}

func words(records []store.Record) string {
	var b []string
	for _, r := range records {
		b = append(b, word(r))
	}
	return strings.Join(b, " ")
}

func word(r store.Record) string {
	if r.Deleted {
		return "-" + string(r.Key)
	}
	return string(r.Key) + "=" + string(r.Value)
}

// history demands the kept versions of a key, newest first, and that each head
// is that of the version. It returns the versions, whole.
func (h *harness) history(key store.Key, want string) []store.Record {
	h.Helper()
	heads, err := h.History(h.ctx, key, 0)
	h.ok(err)
	records := h.versions(heads)
	equal(h, "history of "+string(key), words(records), want)
	for i := 1; i < len(records); i++ {
		if records[i].Revision >= records[i-1].Revision {
			h.Fatalf("history of %s: revision %d after %d", key, records[i].Revision, records[i-1].Revision)
		}
	}
	return records
}

// versions reads what the heads are of.
func (h *harness) versions(heads []store.Record) []store.Record {
	h.Helper()
	var records []store.Record
	for _, head := range heads {
		equal(h, "a head has no value", head.Value == nil, true)
		rec, err := h.Version(h.ctx, head.Key, head.Revision)
		if err != nil {
			h.Fatalf("version %d of %s, which is in its history: %v", head.Revision, head.Key, err)
		}
		equal(h, "value is nil", rec.Value == nil, rec.Deleted)
		head.Value = rec.Value
		sameRecord(h, rec, head)
		records = append(records, rec)
	}
	return records
}

// noVersion demands the error that tells why there is no such version.
func (h *harness) noVersion(key store.Key, rev store.Revision, want error) {
	h.Helper()
	rec, err := h.Version(h.ctx, key, rev)
	if !errors.Is(err, want) {
		h.Fatalf("version %d of %q: %v, %v, want %v", rev, string(key), rec, err, want)
	}
}

// watch starts a watch that ends with the test.
func (h *harness) watch(prefix store.Key, from store.Revision) store.Watcher {
	h.Helper()
	w, err := h.Watch(h.ctx, prefix, from)
	if err != nil {
		h.Fatalf("watch %q from %d: %v", prefix, from, err)
	}
	h.Cleanup(w.Close)
	return w
}

// sees demands the next events, as "a=1 a=2(1) -a(2)": what was before in brackets.
func (h *harness) sees(w store.Watcher, want string) {
	h.Helper()
	n := len(strings.Fields(want))
	events := h.take(w, n)
	var got []string
	for _, e := range events {
		s := word(e.Record)
		if e.Prev != nil {
			s += "(" + string(e.Prev.Value) + ")"
		}
		got = append(got, s)
	}
	equal(h, "events", strings.Join(got, " "), want)
}

// take reads at least n events.
func (h *harness) take(w store.Watcher, n int) []store.Event {
	h.Helper()
	var events []store.Event
	for len(events) < n {
		more, err := w.Next(h.ctx)
		if err != nil {
			h.Fatalf("after %d of %d events: %v", len(events), n, err)
		}
		if len(more) == 0 {
			h.Fatal("Next returned neither an event nor an error")
		}
		events = append(events, more...)
	}
	return events
}

// ends demands the error that a watch ends with, after any number of events.
func (h *harness) ends(w store.Watcher, want error) {
	h.Helper()
	for {
		if _, err := w.Next(h.ctx); err != nil {
			h.is(err, want)
			_, err = w.Next(h.ctx)
			h.is(err, want)
			return
		}
	}
}
