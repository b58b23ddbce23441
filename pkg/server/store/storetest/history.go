package storetest

import (
	"time"

	"example.com/cmctl/pkg/server/store"
)

var historyClaims = []claim{
	{"of a key that never was is not found", func(h *harness) {
		h.put("ab", "1")
		_, err := h.History(h.ctx, "a", 0)
		h.is(err, store.ErrNotFound)
	}},
	{"is newest first and of one key only", func(h *harness) {
		h.put("a", "1")
		h.put("ab", "x")
		h.put("a", "2")
		h.put("a\x01", "y")
		h.put("a", "3")
		h.history("a", "a=3 a=2 a=1")
	}},
	{"stops at the limit", func(h *harness) {
		for _, v := range []string{"1", "2", "3"} {
			h.put("a", v)
		}
		records, err := h.History(h.ctx, "a", 2)
		h.ok(err)
		equal(h, "history", words(records), "a=3 a=2")
	}},
	{"shows deletions, and life after them", func(h *harness) {
		h.put("a", "1")
		h.remove("a")
		h.history("a", "-a a=1")
		h.put("a", "2")
		h.remove("a")
		h.put("a", "3")
		h.history("a", "a=3 -a a=2 -a a=1")
	}},
	{"tells who, when and by what write", func(h *harness) {
		first, last := record("a", "1"), tombstone("a")
		first.Meta = store.Meta{Verb: "create", Manager: "cmctl-create", User: "jane", WriteID: "w1", Time: time.UnixMilli(1_700_000_000_123).UTC()}
		last.Meta = store.Meta{Verb: "delete", User: "joe"}
		h.commit(store.Txn{Writes: []store.Record{first}})
		h.commit(store.Txn{Writes: []store.Record{last}})
		got := h.history("a", "-a a=1")
		equal(h, "meta of the deletion", got[0].Meta, last.Meta)
		equal(h, "meta of the creation", got[1].Meta, first.Meta)
		equal(h, "value of the deletion is nil", got[0].Value == nil, true)
	}},
}
