package main

import (
	"context"
	"log/slog"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// compactInterval is how often states are given up.
const compactInterval = time.Minute

// compactor gives up states once they are older than the window: readers and
// watches that are older start anew. It notes where the store stood at each tick,
// since the store itself doesn't know when it had which state.
type compactor struct {
	store  store.Store
	window time.Duration
	log    *slog.Logger
	marks  []mark // oldest first
	// after comes after each compaction, if it is set.
	after   func(ctx context.Context, due store.Revision) error
	cluster time.Time // when all of the cluster was compacted last
}

type mark struct {
	at       time.Time
	revision store.Revision
}

// startCompacting runs a compactor until ctx ends or the returned function is
// called, which waits for it.
func startCompacting(ctx context.Context, st store.Store, window time.Duration, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := &compactor{store: st, window: window, log: log}
		c.run(ctx)
	}()
	return func() { cancel(); <-done }
}

func (c *compactor) run(ctx context.Context) {
	ticker := time.NewTicker(compactInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			c.tick(ctx, now)
		}
	}
}

// tick gives up the states before the newest mark that is old enough. It does so
// where nothing was written since, too: what was deleted gets older by itself.
func (c *compactor) tick(ctx context.Context, now time.Time) {
	c.marks = append(c.marks, mark{now, c.store.State().Current})
	var due store.Revision
	for len(c.marks) > 0 && now.Sub(c.marks[0].at) >= c.window {
		due = c.marks[0].revision
		c.marks = c.marks[1:]
	}
	if due == 0 {
		return
	}
	err := c.store.Compact(ctx, due)
	if err == nil && c.after != nil {
		err = c.after(ctx, due)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn("old versions were not cleaned up; trying again later", "resourceVersion", due, "err", err)
	}
}
