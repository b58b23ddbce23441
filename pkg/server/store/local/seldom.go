package local

import (
	"strings"
	"sync"
	"time"
)

// seldom lets the first of many messages through, and later at most one in each
// period.
type seldom struct {
	period time.Duration
	mu     sync.Mutex // guards what follows
	next   time.Time
	held   int
}

// pass says whether a message may go out, and how many were held back since the
// last that did.
func (s *seldom) pass(now time.Time) (held int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.next) {
		s.held++
		return 0, false
	}
	held, s.held = s.held, 0
	s.next = now.Add(s.period)
	return held, true
}

// line is an error as one line of text. Pebble's errors print their stack where
// a logger formats them itself, and some go over several lines.
func line(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
