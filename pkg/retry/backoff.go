package retry

import (
	"math/rand/v2"
	"time"
)

// Backoff gives the delays between attempts: exponential with full jitter, so
// that clients that met in a conflict don't meet again in step. The zero value
// is ready to use.
type Backoff struct {
	Base time.Duration // upper bound of the first delay; 0 means 20 ms
	Max  time.Duration // upper bound of any delay; 0 means 2 s
	// Rand returns a number in [0, n). Nil means math/rand/v2, which no two
	// processes share.
	Rand func(n int64) int64
}

// Delay is how long to wait after the attempt numbered from 1. A delay that
// the server asked for is never cut short: the jitter comes on top of it.
func (b Backoff) Delay(attempt int, asked time.Duration) time.Duration {
	bound, limit := b.Base, b.Max
	if bound <= 0 {
		bound = 20 * time.Millisecond
	}
	if limit <= 0 {
		limit = 2 * time.Second
	}
	for i := 1; i < attempt && bound < limit; i++ {
		bound += min(bound, limit-bound) // doubled, without overflow
	}
	random := b.Rand
	if random == nil {
		random = rand.Int64N
	}
	return asked + time.Duration(random(int64(min(bound, limit))))
}
