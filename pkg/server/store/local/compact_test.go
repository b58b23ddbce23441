package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/index"
)

func versions(t *testing.T, s *Store, key store.Key) []store.Record {
	t.Helper()
	records, err := s.History(t.Context(), key, 0)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return records
}

func TestHistoryLimitCountsTheNewest(t *testing.T) {
	s := open(t, Options{InMemory: true, HistoryLimit: 5})
	var middle store.Revision
	for i := range 100 {
		rev := put(t, s, "a", fmt.Sprint(i))
		put(t, s, "few", fmt.Sprint(i))
		if i == 97 {
			middle = rev
		}
	}
	ok(t, s.Compact(t.Context(), middle)) // before "few" got its 97
	if n := len(versions(t, s, "a")); n != 5 {
		t.Errorf("%d versions of a are kept, want 98 and 99 and three before", n)
	}
	ok(t, s.Compact(t.Context(), s.State().Current))
	for _, key := range []store.Key{"a", "few"} {
		if n := len(versions(t, s, key)); n != 5 {
			t.Errorf("%d versions of %s are kept, want 5", n, key)
		}
	}
}

// More versions after the compacted revision than the limit: all of them stay,
// and the one before.
func TestHistoryLimitNeverTouchesTheWindow(t *testing.T) {
	s := open(t, Options{InMemory: true, HistoryLimit: 3})
	var at store.Revision
	for i := range 50 {
		if rev := put(t, s, "a", fmt.Sprint(i)); i == 19 {
			at = rev
		}
	}
	ok(t, s.Compact(t.Context(), at))
	if n := len(versions(t, s, "a")); n != 31 {
		t.Errorf("%d versions are kept, want 30 and the one before", n)
	}
}

func TestCompactionLeavesNoRowsOfWhatItGaveUp(t *testing.T) {
	s := open(t, Options{InMemory: true, apartAbove: 10})
	for i := range 3000 { // several steps
		put(t, s, store.Key(fmt.Sprintf("k%d", i%1500)), strings.Repeat("x", i%20))
	}
	for i := range 2 * rangeFrom {
		put(t, s, "k0", strings.Repeat("x", i%20))
	}
	for i := range 1500 {
		remove(t, s, store.Key(fmt.Sprintf("k%d", i)))
	}
	ok(t, s.Compact(t.Context(), s.State().Current))
	it, err := s.db.NewIter(nil)
	ok(t, err)
	var rows []string
	for more := it.First(); more; more = it.Next() {
		rows = append(rows, string(it.Key()))
	}
	ok(t, it.Close())
	if got := strings.Join(rows, " "); got != "mcompacted mcurrent mformat" {
		t.Errorf("rows: %.200q", got)
	}
}

// A compaction that the machine stops in, at each of its steps: deleted keys never
// come back, nothing that is needed is gone, and the next life finishes it.
func TestCompactionIsFinishedInTheNextLife(t *testing.T) {
	r := crashRand(t)
	for step := range 6 {
		disk := vfs.NewCrashableMem()
		o := crashOptions(disk)
		s, err := Open(o)
		ok(t, err)
		for i := range 450 {
			put(t, s, store.Key(fmt.Sprintf("gone%d", i%40)), "x")
			put(t, s, "kept", fmt.Sprint(i))
		}
		for i := range 40 {
			remove(t, s, store.Key(fmt.Sprintf("gone%d", i)))
		}
		at := s.State().Current
		put(t, s, "kept", "new")
		s.compactMu <- struct{}{}
		if step > 0 {
			ok(t, s.giveUp(t.Context(), at))
		}
		for range step - 1 {
			_, err := s.sweepStep(t.Context())
			ok(t, err)
		}
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
		<-s.compactMu
		ok(t, s.Close())

		s = open(t, crashOptions(after))
		if state := s.State(); (step > 0) != (state.Compacted == at) {
			t.Errorf("step %d: compacted is %d", step, state.Compacted)
		}
		onlyKept(t, s, step)
		ok(t, s.Compact(t.Context(), at)) // waits for what Open began, or does it all
		onlyKept(t, s, step)
		for i := range 40 {
			if n := len(versions(t, s, store.Key(fmt.Sprintf("gone%d", i)))); n != 0 {
				t.Errorf("step %d: %d versions of a deleted key are kept", step, n)
			}
		}
		w, err := s.Watch(t.Context(), "", at)
		ok(t, err)
		events, err := w.Next(t.Context())
		ok(t, err)
		if len(events) != 1 || string(events[0].Prev.Value) != "449" {
			t.Errorf("step %d: events after it are %v", step, events)
		}
		w.Close()
		ok(t, s.Check(t.Context()))
		ok(t, s.Close())
	}
}

func onlyKept(t *testing.T, s *Store, step int) {
	t.Helper()
	for _, at := range []store.Revision{0, s.State().Current} {
		page, err := s.List(t.Context(), store.ListOptions{At: at})
		ok(t, err)
		if len(page.Records) != 1 || string(page.Records[0].Value) != "new" {
			t.Errorf("step %d: list has %v", step, page.Records)
		}
	}
}

// Against a model that keeps everything: after any compaction, every state that
// may be read is as it was, by Get, by List and through a watch.
func TestCompactionAgainstAModel(t *testing.T) {
	r := crashRand(t)
	for range 15 {
		s, err := Open(Options{
			InMemory: true, HistoryLimit: 1 + r.IntN(4), InlineValueSize: 1 + r.IntN(6), apartAbove: 1 + r.IntN(6), InitialVersion: 1,
			DeletedRetention: []time.Duration{-1, time.Hour}[r.IntN(2)], DeletedLimit: 1 + r.IntN(4), now: func() time.Time { return dawn },
		})
		ok(t, err)
		states := []map[store.Key]string{{}}
		for range 5 {
			for range 60 {
				states = append(states, randomCommit(t, s, r, states[len(states)-1]))
			}
			at := s.State().Compacted + store.Revision(r.Int64N(int64(s.State().Current-s.State().Compacted)+1))
			ok(t, s.Compact(t.Context(), at))
			compareStates(t, s, states)
		}
		compareVersions(t, s, states)
		ok(t, s.Check(t.Context()))
		ok(t, s.Close())
	}
}

func randomCommit(t *testing.T, s *Store, r *rand.Rand, now map[store.Key]string) map[store.Key]string {
	next := map[store.Key]string{}
	for k, v := range now {
		next[k] = v
	}
	var txn store.Txn
	for _, i := range r.Perm(6)[:1+r.IntN(3)] {
		rec := store.Record{Key: store.Key(fmt.Sprintf("k%d", i)), Value: []byte(fmt.Sprint(r.IntN(1 << r.IntN(30))))}
		if r.IntN(3) == 0 {
			rec = store.Record{Key: rec.Key, Deleted: true, Meta: store.Meta{Time: dawn.Add(-time.Duration(r.IntN(2)) * time.Hour)}}
			delete(next, rec.Key)
		} else {
			next[rec.Key] = string(rec.Value)
		}
		txn.Writes = append(txn.Writes, rec)
	}
	_, err := s.Commit(t.Context(), txn)
	ok(t, err)
	return next
}

func compareStates(t *testing.T, s *Store, states []map[store.Key]string) {
	t.Helper()
	compacted := s.State().Compacted
	for rev := range states {
		at := store.Revision(rev)
		if at == 0 {
			continue
		}
		page, err := s.List(t.Context(), store.ListOptions{At: at})
		if at < compacted {
			if !errors.Is(err, store.ErrCompacted) {
				t.Fatalf("list at %d of %d: %v", at, compacted, err)
			}
			continue
		}
		ok(t, err)
		if got := asMap(page.Records); fmt.Sprint(got) != fmt.Sprint(states[rev]) {
			t.Fatalf("state %d is %v, was %v", at, got, states[rev])
		}
	}
	if compacted == 0 {
		return // a watch from 0 is one from now on
	}
	w, err := s.Watch(t.Context(), "", compacted)
	ok(t, err)
	defer w.Close()
	replay := map[store.Key]string{}
	for k, v := range states[compacted] {
		replay[k] = v
	}
	for w.Progress() < s.State().Current {
		events, err := w.Next(t.Context())
		ok(t, err)
		for _, e := range events {
			before, known := replay[e.Record.Key]
			if known != (e.Prev != nil) || known && before != string(e.Prev.Value) {
				t.Fatalf("event at %d says %v was before, it was %q", e.Record.Revision, e.Prev, before)
			}
			if replay[e.Record.Key] = string(e.Record.Value); e.Record.Deleted {
				delete(replay, e.Record.Key)
			}
		}
	}
	if last := states[len(states)-1]; fmt.Sprint(replay) != fmt.Sprint(last) {
		t.Fatalf("the watch leads to %v, want %v", replay, last)
	}
}

// compareVersions asks for every version of every key: it is there as it was, or
// it was given up, or that revision did not write the key.
func compareVersions(t *testing.T, s *Store, states []map[store.Key]string) {
	t.Helper()
	compacted := s.State().Compacted
	for rev := store.Revision(1); int(rev) < len(states); rev++ {
		for k := range 6 {
			key := store.Key(fmt.Sprintf("k%d", k))
			before, was := states[rev-1][key]
			now, is := states[rev][key]
			rec, err := s.Version(t.Context(), key, rev)
			switch {
			case errors.Is(err, store.ErrCompacted) && rev <= compacted:
			case errors.Is(err, store.ErrNotFound) && was == is && before == now: // or written again, which states don't tell
			case err != nil || rec.Deleted == is || string(rec.Value) != now:
				t.Fatalf("version %d of %s, compacted at %d: %+v, %v; it went from %q to %q", rev, key, compacted, rec, err, before, now)
			}
		}
	}
}

func asMap(records []store.Record) map[store.Key]string {
	m := map[store.Key]string{}
	for _, r := range records {
		m[r.Key] = string(r.Value)
	}
	return m
}

// Commits go on while a compaction runs: it holds nothing that they need.
func TestCommitsDuringACompaction(t *testing.T) {
	s := open(t, Options{InMemory: true})
	for i := range 2000 {
		put(t, s, store.Key(fmt.Sprintf("k%d", i%100)), "x")
	}
	done := make(chan error)
	go func() { done <- s.Compact(context.Background(), s.State().Current) }()
	for running := true; running; {
		select {
		case err := <-done:
			ok(t, err)
			running = false
		default:
			put(t, s, "a", "1")
		}
	}
}

// A reader that looked up a state before it was compacted looks again.
func TestReadsUnderCompaction(t *testing.T) {
	s := open(t, Options{InMemory: true, HistoryLimit: 1, InlineValueSize: 1, apartAbove: 6})
	put(t, s, "a", "large")
	view := s.view.Load()
	old := index.Lookup(view.Tree, "a")
	if s.superseded(old) {
		t.Error("it is the newest")
	}
	put(t, s, "a", "larger")
	ok(t, s.Compact(t.Context(), s.State().Current))
	if p, err := s.momentAfter(view); !errors.Is(err, errOutdated) {
		t.Errorf("a moment for the old view: %v, %v", p, err)
	}
	if _, err := s.record(s.db, old, store.Whole); !errors.Is(err, pebble.ErrNotFound) || !s.superseded(old) {
		t.Errorf("the old version: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			put(t, s, "a", fmt.Sprintf("large %d", i))
			if err := s.Compact(context.Background(), s.State().Current); err != nil {
				t.Error(err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if _, err := s.Get(t.Context(), "a", 0); err != nil {
			t.Errorf("get: %v", err)
		}
		heads, err := s.History(t.Context(), "a", 0)
		if err != nil {
			t.Errorf("history: %v", err)
			continue
		}
		// With a limit of 1 it may be given up by now, but never be half there.
		rec, err := s.Version(t.Context(), "a", heads[0].Revision)
		if err == nil && len(rec.Value) == 0 || err != nil && !errors.Is(err, store.ErrCompacted) {
			t.Errorf("version: %v, %v", rec, err)
		}
	}
}

// A list that ends after a compaction may keep its view too late.
func TestAKeptViewDoesNotOutliveCompaction(t *testing.T) {
	s := open(t, Options{InMemory: true})
	put(t, s, "a", "1")
	old := s.view.Load()
	put(t, s, "a", "2")
	ok(t, s.Compact(t.Context(), s.State().Current))
	s.pins.Add(old)
	if _, err := s.List(t.Context(), store.ListOptions{At: old.Current}); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("list of a compacted state: %v", err)
	}
}
