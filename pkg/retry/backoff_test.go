package retry_test

import (
	"math"
	"testing"
	"time"

	"example.com/cmctl/pkg/retry"
)

func TestDelayDoublesUpToItsLimit(t *testing.T) {
	const ms = time.Millisecond
	most := func(n int64) int64 { return n - 1 }
	for _, c := range []struct {
		name    string
		backoff retry.Backoff
		attempt int
		asked   time.Duration
		bound   time.Duration // the delay is less than asked plus this
	}{
		{"the zero value begins at 20 ms", retry.Backoff{}, 1, 0, 20 * ms},
		{"and doubles", retry.Backoff{}, 2, 0, 40 * ms},
		{"again and again", retry.Backoff{}, 7, 0, 1280 * ms},
		{"up to 2 s", retry.Backoff{}, 8, 0, 2000 * ms},
		{"and no more", retry.Backoff{}, 1000, 0, 2000 * ms},
		{"a base of its own", retry.Backoff{Base: 3 * ms}, 3, 0, 12 * ms},
		{"a limit of its own", retry.Backoff{Max: 30 * ms}, 2, 0, 30 * ms},
		{"a base above the limit", retry.Backoff{Base: time.Second, Max: ms}, 1, 0, ms},
		{"a limit that doubling would overflow", retry.Backoff{Max: math.MaxInt64}, 200, 0, math.MaxInt64},
		{"before the first attempt", retry.Backoff{}, 0, 0, 20 * ms},
		{"on top of what was asked", retry.Backoff{}, 1, 7 * time.Second, 20 * ms},
		{"whatever the limit", retry.Backoff{Max: ms}, 9, 7 * time.Second, ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.backoff.Rand = most
			if got, want := c.backoff.Delay(c.attempt, c.asked), c.asked+c.bound-1; got != want {
				t.Errorf("at most %v, want %v", got, want)
			}
			c.backoff.Rand = func(int64) int64 { return 0 }
			if got := c.backoff.Delay(c.attempt, c.asked); got != c.asked {
				t.Errorf("at least %v, want %v", got, c.asked)
			}
		})
	}
}

// Full jitter: delays spread over the whole range, so that clients which met
// once don't meet again.
func TestDelaysSpreadOverTheWholeRange(t *testing.T) {
	const bound, parts, draws = 20 * time.Millisecond, 10, 10_000
	var hits [parts]int
	for range draws {
		d := retry.Backoff{}.Delay(1, 0)
		if d < 0 || d >= bound {
			t.Fatalf("a delay of %v, want one in [0, %v)", d, bound)
		}
		hits[d*parts/bound]++
	}
	for i, n := range hits {
		if n < draws/parts/2 {
			t.Errorf("part %d of the range was hit %d times of %d", i, n, draws)
		}
	}
}
