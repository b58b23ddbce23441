package server

import (
	"testing"
	"time"
)

// Of credentials that are tried in masses the log tells the first, and later how many
// there were.
func TestRefusedCredentialsDoNotFloodTheLog(t *testing.T) {
	var c refused
	now := time.Unix(1000, 0)
	logged := 0
	for range 1000 {
		if log, _ := c.count(now); log {
			logged++
		}
	}
	if logged != refusedLines {
		t.Errorf("%d lines", logged)
	}
	if log, silent := c.count(now.Add(refusedSpan)); !log || silent != 1000-refusedLines {
		t.Errorf("later: %t, %d silent", log, silent)
	}
	if log, silent := c.count(now.Add(refusedSpan)); !log || silent != 0 {
		t.Errorf("after that: %t, %d silent", log, silent)
	}
}
