package local

import (
	"testing"
	"time"
)

func TestSeldomCountsWhatItHeldBack(t *testing.T) {
	s := seldom{period: time.Minute}
	now := time.Unix(0, 0)
	for _, c := range []struct {
		after time.Duration
		held  int
		pass  bool
	}{
		{0, 0, true},
		{time.Second, 0, false},
		{58 * time.Second, 0, false},
		{time.Second, 2, true},
		{time.Second, 0, false},
		{time.Hour, 1, true},
		{time.Hour, 0, true},
	} {
		now = now.Add(c.after)
		if held, pass := s.pass(now); held != c.held || pass != c.pass {
			t.Errorf("%v later: %d, %t, want %d, %t", c.after, held, pass, c.held, c.pass)
		}
	}
}
