// Package retention says which versions of a key a compaction keeps, for every store.
package retention

import (
	"time"

	"example.com/cmctl/pkg/server/store"
)

// Walk goes through the versions of one key, newest first.
type Walk struct {
	Compacted store.Revision // states before it are given up
	Limit     int            // so many versions are kept in any case, the newest included
	// Expired tells of the time of a tombstone whether what was before is given up.
	Expired func(died time.Time) bool

	kept    int
	reached bool // a version that is current at Compacted, or older
}

// Keeps tells whether the next older version is kept. Once it is false, all that are
// older are given up too.
func (w *Walk) Keeps(v store.Record) bool {
	old := v.Revision <= w.Compacted
	current := old && !w.reached && !v.Deleted // in the state at Compacted
	if old && !current && (w.kept >= w.Limit || v.Deleted && w.Expired(v.Time)) {
		return false
	}
	w.kept++
	w.reached = w.reached || old
	return true
}

// Enough tells that of older versions none is kept but the one that is current at Compacted.
func (w *Walk) Enough() bool { return w.kept >= w.Limit && !w.reached }
