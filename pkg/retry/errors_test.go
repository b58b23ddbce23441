package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/cmctl/pkg/retry"
)

// What is not known is not made up: nobody may have tried to read it, or it was read
// and is gone.
func TestAnUnknownOutcomeSaysWhatWasSeen(t *testing.T) {
	cause := errors.New("lost")
	for _, c := range []struct {
		err  retry.OutcomeUnknownError
		want string
	}{
		{retry.OutcomeUnknownError{Sent: "1", Current: "3"}, "the outcome of a write to O made from version 1 is unknown; it is at version 3 now: lost"},
		{retry.OutcomeUnknownError{Sent: "1"}, "the outcome of a write to O made from version 1 is unknown; no version of it was read since: lost"},
		{retry.OutcomeUnknownError{}, "the outcome of creating O is unknown; no version of it was read since: lost"},
	} {
		c.err.Object, c.err.Err = "O", cause
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

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
