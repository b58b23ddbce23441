package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// States are kept for the whole window, and given up after it.
func TestCompactorKeepsTheWindow(t *testing.T) {
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := &compactor{store: st, window: 5 * time.Minute, log: slog.New(slog.DiscardHandler)}
	start := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	for minute := range 10 {
		txn := store.Txn{Writes: []store.Record{{Key: store.Key(fmt.Sprintf("configmaps/a/n%d", minute)), Value: []byte("{}")}}}
		if _, err := st.Commit(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
		c.tick(t.Context(), start.Add(time.Duration(minute)*time.Minute))
		want := store.Revision(max(0, minute-4))
		if got := st.State().Compacted; got != want {
			t.Errorf("after %d minutes: compacted up to %d, want %d", minute, got, want)
		}
	}
}

// What was deleted is given up when its time has come, though nobody writes.
func TestCompactorGoesOnWhereNobodyWrites(t *testing.T) {
	st, err := local.Open(local.Options{InMemory: true, DeletedRetention: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, rec := range []store.Record{{Key: "configmaps/a/b", Value: []byte("{}")}, {Key: "configmaps/a/b", Deleted: true, Meta: store.Meta{Time: time.Now()}}} {
		if _, err := st.Commit(t.Context(), store.Txn{Writes: []store.Record{rec}}); err != nil {
			t.Fatal(err)
		}
	}
	compacted := &countingStore{Store: st}
	c := &compactor{store: compacted, window: 10 * time.Minute, log: slog.New(slog.DiscardHandler)}
	start := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	for minute := range 20 {
		c.tick(t.Context(), start.Add(time.Duration(minute)*time.Minute))
	}
	if compacted.n != 10 {
		t.Errorf("compacted %d times in the 10 minutes after the window, want 10", compacted.n)
	}
	if _, err := st.History(t.Context(), "configmaps/a/b", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a history is kept: %v", err)
	}
}

type countingStore struct {
	store.Store
	n int
}

func (s *countingStore) Compact(ctx context.Context, at store.Revision) error {
	s.n++
	return s.Store.Compact(ctx, at)
}
