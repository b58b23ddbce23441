package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// most is a limit on the collection team/; below 0 there is none.
func most(records, bytes int64) store.Limit {
	return store.Limit{Collection: "team/", Most: store.Usage{Records: records, Bytes: bytes}}
}

// within are writes under limits.
func within(l store.Limit, writes ...store.Record) store.Txn {
	return store.Txn{Limits: []store.Limit{l}, Writes: writes}
}

// uses demands what the collection team/ holds.
func (h *harness) uses(records, bytes int64) {
	h.Helper()
	used, err := h.Usage(h.ctx, "team/")
	h.ok(err)
	equal(h, "usage", used, store.Usage{Records: records, Bytes: bytes})
}

// exceeds demands a LimitError and that nothing changed.
func (h *harness) exceeds(txn store.Txn, limit store.Limit, used, added store.Usage) {
	h.Helper()
	before := h.State()
	_, err := h.Commit(h.ctx, txn)
	var full *store.LimitError
	if !errors.As(err, &full) {
		h.Fatalf("error is %v, want a LimitError", err)
	}
	equal(h, "the error", *full, store.LimitError{Limit: limit, Used: used, Added: added})
	equal(h, "state", h.State(), before)
	h.uses(used.Records, used.Bytes)
}

var limitClaims = []claim{
	{"a collection takes records up to the limit", func(h *harness) {
		limit := most(2, -1)
		h.commit(within(limit, record("team/a", "1")))
		h.commit(within(limit, record("team/b", "1")))
		h.exceeds(within(limit, record("team/c", "1")), limit, store.Usage{Records: 2, Bytes: 2}, store.Usage{Records: 1, Bytes: 1})
		h.lists(store.ListOptions{}, "team/a=1 team/b=1")
	}},
	{"a collection takes bytes up to the limit", func(h *harness) {
		limit := most(-1, 10)
		h.commit(within(limit, record("team/a", "12345")))
		h.commit(within(limit, record("team/b", "12345")))
		h.exceeds(within(limit, record("team/b", "123456")), limit, store.Usage{Records: 2, Bytes: 10}, store.Usage{Bytes: 1})
	}},
	{"a deletion makes room", func(h *harness) {
		limit := most(1, 3)
		h.commit(within(limit, record("team/a", "123")))
		h.remove("team/a")
		h.uses(0, 0)
		h.commit(within(limit, record("team/b", "123")))
	}},
	{"what is beyond the limit may shrink, and stay as it is", func(h *harness) {
		h.puts("team/a", "123", "team/b", "123", "team/c", "123")
		limit := most(1, 1)
		h.commit(within(limit, record("team/a", "321")))
		h.commit(within(limit, record("team/a", "1")))
		h.commit(within(limit, tombstone("team/b")))
		h.commit(within(limit, tombstone("team/a"), record("team/d", "1")))
		h.exceeds(within(limit, record("team/d", "12")), limit, store.Usage{Records: 2, Bytes: 4}, store.Usage{Bytes: 1})
		h.exceeds(within(limit, record("team/e", "")), limit, store.Usage{Records: 2, Bytes: 4}, store.Usage{Records: 1})
	}},
	{"the writes of a transaction count together", func(h *harness) {
		limit := most(2, 4)
		h.put("team/a", "12")
		h.commit(within(limit, record("team/a", ""), record("team/b", "1234")))
		h.exceeds(within(limit, tombstone("team/a"), record("team/c", "1"), record("team/d", "1")), limit,
			store.Usage{Records: 2, Bytes: 4}, store.Usage{Records: 1, Bytes: 2})
		h.lists(store.ListOptions{}, "team/a= team/b=1234")
	}},
	{"other collections don't count", func(h *harness) {
		h.puts("team", "1", "team-b/a", "1", "team/sub/a", "1", "team0", "1", "other/team/a", "1")
		h.commit(store.Txn{Limits: []store.Limit{most(1, 1)}, Writes: []store.Record{
			record("team/a", "1"), record("other/a", "1"), record("team/sub/b", "1"), record("b", "1"),
		}})
		h.uses(1, 1)
	}},
	{"of several limits each must hold", func(h *harness) {
		wide, narrow := most(5, -1), most(1, -1)
		txn := store.Txn{Limits: []store.Limit{wide, narrow}, Writes: []store.Record{record("team/a", "1"), record("team/b", "1")}}
		h.exceeds(txn, narrow, store.Usage{}, store.Usage{Records: 2, Bytes: 2})
	}},
	{"a guard that fails is told before a limit", func(h *harness) {
		rev := h.put("team/a", "1")
		h.refused(store.Txn{Guards: []store.Guard{absent("team/a")}, Limits: []store.Limit{most(0, 0)},
			Writes: []store.Record{record("team/a", "12")}}, absent("team/a"), rev)
	}},
	{"long values count whole, old versions don't", func(h *harness) {
		const long = 200_000
		limit := most(-1, long)
		for range 3 {
			h.commit(within(limit, record("team/a", strings.Repeat("v", long))))
		}
		h.uses(1, long)
		h.exceeds(within(limit, record("team/b", "1")), limit, store.Usage{Records: 1, Bytes: long}, store.Usage{Records: 1, Bytes: 1})
		h.ok(h.Compact(h.ctx, h.State().Current))
		h.uses(1, long)
		h.commit(within(limit, record("team/a", "1")))
		h.uses(1, 1)
	}},
	{"of writers beside each other no more come through than there is room for", func(h *harness) {
		const writers, each, room = 8, 20, 30
		limit := most(room, 2*room)
		var work sync.WaitGroup
		for w := range writers {
			work.Go(func() {
				for n := range each {
					_, err := h.Commit(h.ctx, within(limit, record(store.Key(fmt.Sprintf("team/%d-%d", w, n)), "xx")))
					if full := (*store.LimitError)(nil); err != nil && !errors.As(err, &full) {
						h.Error(err)
					}
				}
			})
		}
		work.Wait()
		h.uses(room, 2*room)
		page, err := h.List(h.ctx, store.ListOptions{Prefix: "team/"})
		h.ok(err)
		equal(h, "records", len(page.Records), room)
	}},
	{"whoever learns of a commit finds it in the usage", func(h *harness) {
		for n := range int64(50) {
			h.put(store.Key(fmt.Sprintf("team/%d", n)), "x")
			h.uses(n+1, n+1)
		}
	}},
}
