package local

import (
	"fmt"
	"sync/atomic"
	"time"

	"example.com/cmctl/pkg/server/store"
)

const (
	// stalledAfter is how long a batch may be on its way to the disk before new
	// writes are refused instead of piling up behind it.
	stalledAfter = 10 * time.Second
	// outcomeWait is how long a caller whose context has ended is kept, so that it
	// is told what became of its write.
	outcomeWait = 5 * time.Second
)

// pace knows for how long the committer has been writing the batch that it is at.
type pace struct {
	limit time.Duration
	zero  time.Time
	since atomic.Int64 // nanoseconds after zero, at least 1; 0: nothing is being written
}

func (p *pace) begin() (done func()) {
	p.since.Store(max(1, int64(time.Since(p.zero))))
	return func() { p.since.Store(0) }
}

// check is ErrStalled if that is too long.
func (p *pace) check() error {
	since := p.since.Load()
	if since == 0 {
		return nil
	}
	if took := time.Since(p.zero) - time.Duration(since); took >= p.limit {
		return fmt.Errorf("%w: it was begun %s ago", store.ErrStalled, took.Round(time.Second))
	}
	return nil
}
