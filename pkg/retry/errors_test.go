package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/cmctl/pkg/retry"
)

func TestGivingUpSaysWhatWasTried(t *testing.T) {
	last := errors.New("busy")
	for _, c := range []struct {
		err  retry.ExhaustedError
		want string
	}{
		{retry.ExhaustedError{Attempts: 5, Conflicts: 4, Delays: 1, Elapsed: 1234567 * time.Microsecond},
			"gave up on O after 5 attempts in 1.235s (4 conflicts, 1 delay); the last answer: busy"},
		{retry.ExhaustedError{Attempts: 1, Conflicts: 1, Elapsed: time.Second},
			"gave up on O after 1 attempt in 1s (1 conflict, 0 delays); the last answer: busy"},
		{retry.ExhaustedError{Delays: 6, Elapsed: time.Second},
			"gave up on reading O after 6 attempts in 1s; the last answer: busy"},
		{retry.ExhaustedError{Delays: 1, Elapsed: time.Second, Ended: context.Canceled},
			"gave up on reading O, told to end, after 1 attempt in 1s; the last answer: busy"},
		{retry.ExhaustedError{Attempts: 2, Delays: 2, Elapsed: time.Second, Ended: context.DeadlineExceeded},
			"gave up on O, out of time, after 2 attempts in 1s (0 conflicts, 2 delays); the last answer: busy"},
	} {
		c.err.Object, c.err.Last = "O", last
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
		if !errors.Is(&c.err, last) || c.err.Ended != nil && !errors.Is(&c.err, c.err.Ended) {
			t.Errorf("%v does not unwrap to what it is made of", &c.err)
		}
	}
}
