package main

import (
	"context"
	"log/slog"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// The store keeps every state of at least the last historyWindow. Readers and
// watches that are older start anew.
const (
	historyWindow   = 5 * time.Minute
	compactInterval = time.Minute
)

// compactor gives up states once they are older than historyWindow. It notes
// where the store stood at each tick, since the store itself knows no time.
type compactor struct {
	store store.Store
	log   *slog.Logger
	marks []mark // oldest first
}

type mark struct {
	at       time.Time
	revision store.Revision
}

// startCompacting runs a compactor until ctx ends or the returned function is
// called, which waits for it.
func startCompacting(ctx context.Context, st store.Store, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(compactInterval)
		defer ticker.Stop()
		c := &compactor{store: st, log: log}
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				c.tick(ctx, now)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// tick gives up the states before the newest mark that is old enough.
func (c *compactor) tick(ctx context.Context, now time.Time) {
	c.marks = append(c.marks, mark{now, c.store.State().Current})
	var due store.Revision
	for len(c.marks) > 0 && now.Sub(c.marks[0].at) >= historyWindow {
		due = c.marks[0].revision
		c.marks = c.marks[1:]
	}
	if due == 0 || due <= c.store.State().Compacted {
		return
	}
	if err := c.store.Compact(ctx, due); err != nil && ctx.Err() == nil {
		c.log.Warn("old versions were not cleaned up; trying again later", "resourceVersion", due, "err", err)
	}
}
