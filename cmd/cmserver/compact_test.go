package main

import (
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
	c := &compactor{store: st, log: slog.New(slog.DiscardHandler)}
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
