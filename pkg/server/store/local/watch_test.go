package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"example.com/cmctl/pkg/server/store"
)

func watch(t *testing.T, s *Store, prefix store.Key, from store.Revision) store.Watcher {
	t.Helper()
	w, err := s.Watch(t.Context(), prefix, from)
	ok(t, err)
	t.Cleanup(w.Close)
	return w
}

func TestAWatcherThatFallsBehindIsClosed(t *testing.T) {
	s := open(t, Options{InMemory: true, WatchBuffer: 10})
	w, other := watch(t, s, "a/", 0), watch(t, s, "b/", 0)
	for range 10 {
		put(t, s, "a/1", "x")
	}
	put(t, s, "b/1", "sync") // delivered after what came before
	_, err := other.Next(t.Context())
	ok(t, err)
	put(t, s, "a/1", "one too many")
	put(t, s, "b/1", "sync")
	_, err = other.Next(t.Context())
	ok(t, err)
	for range 2 {
		if _, err := w.Next(t.Context()); !errors.Is(err, store.ErrSlow) {
			t.Errorf("error is %v, want ErrSlow", err)
		}
	}
}

func TestAWatcherThatHoldsTooManyBytesIsClosed(t *testing.T) {
	s := open(t, Options{InMemory: true, watchBytes: 1 << 20})
	w := watch(t, s, "", 0)
	value := strings.Repeat("x", 1<<16)
	for range 18 {
		put(t, s, "a", value)
	}
	for {
		if _, err := w.Next(t.Context()); err != nil {
			if !errors.Is(err, store.ErrSlow) {
				t.Error(err)
			}
			return
		}
	}
}

// One transaction may be larger than the buffer.
func TestALargeTransactionFitsAnEmptyBuffer(t *testing.T) {
	s := open(t, Options{InMemory: true, WatchBuffer: 3})
	w := watch(t, s, "", 0)
	var txn store.Txn
	for i := range 20 {
		txn.Writes = append(txn.Writes, store.Record{Key: store.Key(fmt.Sprintf("k%d", i)), Value: []byte("x")})
	}
	_, err := s.Commit(t.Context(), txn)
	ok(t, err)
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 20 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// A compaction overtakes a watcher between two chunks of its backlog: it gets the
// error before the first event that is missing.
func TestBacklogOvertakenByCompaction(t *testing.T) {
	s := open(t, Options{InMemory: true})
	from := put(t, s, "a", "0")
	for i := range 3 * chunkEvents {
		put(t, s, "a", fmt.Sprint(i))
	}
	w := watch(t, s, "", from)
	events, err := w.Next(t.Context())
	ok(t, err)
	if len(events) != chunkEvents {
		t.Errorf("a chunk has %d events, want %d", len(events), chunkEvents)
	}
	last := events[len(events)-1].Record.Revision
	ok(t, s.Compact(t.Context(), last)) // right behind it: nothing is missing
	events, err = w.Next(t.Context())
	ok(t, err)
	if events[0].Record.Revision != last+1 || events[0].Prev == nil {
		t.Errorf("after %d comes %+v", last, events[0])
	}
	ok(t, s.Compact(t.Context(), s.State().Current))
	for range 2 {
		if events, err := w.Next(t.Context()); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("%d events, error is %v, want ErrCompacted", len(events), err)
		}
	}
}

// The backlog of a quiet prefix is read without an event in it.
func TestBacklogOfAQuietPrefix(t *testing.T) {
	s := open(t, Options{InMemory: true})
	from := put(t, s, "a", "x")
	for range 2*chunkRows + 5 {
		put(t, s, "a", "x")
	}
	w := watch(t, s, "quiet/", from)
	put(t, s, "quiet/1", "x")
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 1 || events[0].Record.Key != "quiet/1" {
		t.Errorf("%v, %v", events, err)
	}
	if s.State().Current != w.Progress() {
		t.Errorf("progress is %d of %d", w.Progress(), s.State().Current)
	}
}

func TestABacklogWithAGapIsAnError(t *testing.T) {
	s, err := Open(Options{InMemory: true})
	ok(t, err)
	defer s.Close()
	from := put(t, s, "a", "1")
	gap := put(t, s, "a", "2")
	put(t, s, "a", "3")
	ok(t, s.db.Delete(revisionKey(gap), pebble.Sync))
	w := watch(t, s, "", from)
	if events, err := w.Next(t.Context()); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v, %v", events, err)
	}
	if err := s.Check(context.Background()); err == nil {
		t.Error("check saw nothing")
	}
}
