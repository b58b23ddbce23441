package server

import (
	"net/http"
	"sync"
	"time"
)

// refusedLines is how many refused credentials are logged in refusedSpan: who tries
// many is not to fill the disk, nor to bury what else there is to read.
const (
	refusedLines = 20
	refusedSpan  = 10 * time.Second
)

// refused logs credentials that were refused, or as many as are of use.
type refused struct {
	mu     sync.Mutex
	began  time.Time // of the present span; guarded by mu
	logged int       // in it; guarded by mu
	silent int       // those that were not logged since; guarded by mu
}

// count tells whether this one is to be logged, and how many were not before it.
func (c *refused) count(now time.Time) (log bool, silent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.began) >= refusedSpan || now.Before(c.began) {
		c.began, c.logged = now, 0
	}
	if c.logged >= refusedLines {
		c.silent++
		return false, 0
	}
	c.logged++
	silent, c.silent = c.silent, 0
	return true, silent
}

// logRefused logs that credentials were refused, and whence they came.
func (s *Server) logRefused(r *http.Request, err error) {
	log, silent := s.refused.count(s.clock())
	if !log {
		return
	}
	attrs := []any{"id", infoOf(r).id, "from", r.RemoteAddr, "err", err}
	if silent > 0 {
		attrs = append(attrs, "notLoggedBefore", silent)
	}
	s.log.Warn("credentials were refused", attrs...)
}
