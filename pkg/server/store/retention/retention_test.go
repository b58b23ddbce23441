package retention_test

import (
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/retention"
)

func live(rev store.Revision) store.Record { return store.Record{Revision: rev} }

func gone(rev store.Revision, died time.Time) store.Record {
	return store.Record{Revision: rev, Deleted: true, Meta: store.Meta{Time: died}}
}

func TestWhatIsKeptOfAKey(t *testing.T) {
	recent, old := time.Unix(2000, 0), time.Unix(1000, 0)
	for name, c := range map[string]struct {
		compacted store.Revision
		limit     int
		versions  []store.Record // newest first
		kept      int
	}{
		"what came after the compaction":           {10, 1, []store.Record{live(13), live(12), live(11)}, 3},
		"and what was current at it":               {10, 1, []store.Record{live(13), live(12), live(4), live(3)}, 3},
		"at it is not after it":                    {10, 1, []store.Record{live(10), live(9)}, 1},
		"the last few, however old":                {10, 3, []store.Record{live(5), live(4), live(3), live(2)}, 3},
		"of a deleted key the last few for a time": {10, 2, []store.Record{gone(9, recent), live(8), live(7)}, 2},
		"and nothing later":                        {10, 5, []store.Record{gone(9, old), live(8), live(7)}, 0},
		"of one made anew nothing from before":     {10, 5, []store.Record{live(12), gone(9, old), live(8)}, 1},
		"a deletion after it keeps what was there": {10, 1, []store.Record{gone(12, old), live(4), live(3)}, 2},
		"nothing is given up without a compaction": {0, 1, []store.Record{live(3), live(2), live(1)}, 3},
	} {
		walk := retention.Walk{Compacted: c.compacted, Limit: c.limit, Expired: func(died time.Time) bool { return died.Before(recent) }}
		kept := 0
		for _, v := range c.versions {
			if !walk.Keeps(v) {
				break
			}
			kept++
		}
		if kept != c.kept {
			t.Errorf("%s: %d are kept, want %d", name, kept, c.kept)
		}
	}
}
