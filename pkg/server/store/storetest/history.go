package storetest

import (
	"strings"
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
		equal(h, "history", words(h.versions(records)), "a=3 a=2")
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
	{"tells who, when and by what write, and of which object", func(h *harness) {
		first, last := record("a", "1"), tombstone("a")
		first.UID, last.UID = "uid-1", "uid-1"
		first.Meta = store.Meta{Verb: "create", Manager: "cmctl-create", User: "jane", WriteID: "w1", Time: time.UnixMilli(1_700_000_000_123).UTC()}
		last.Meta = store.Meta{Verb: "delete", User: "joe"}
		h.commit(store.Txn{Writes: []store.Record{first}})
		h.commit(store.Txn{Writes: []store.Record{last}})
		got := h.history("a", "-a a=1")
		equal(h, "meta of the deletion", got[0].Meta, last.Meta)
		equal(h, "meta of the creation", got[1].Meta, first.Meta)
		equal(h, "uid of the deletion", got[0].UID, "uid-1")
		equal(h, "uid of the creation", got[1].UID, "uid-1")
	}},
	{"has labels and the version's offset, of large values too", func(h *harness) {
		for _, size := range []int{3, 100_000} {
			rec := record("a", strings.Repeat("x", size))
			rec.Labels, rec.VersionAt = map[string]string{"app": "web"}, size-1
			h.commit(store.Txn{Writes: []store.Record{rec}})
			heads, err := h.History(h.ctx, "a", 1)
			h.ok(err)
			rec.Revision = heads[0].Revision
			sameRecord(h, h.versions(heads)[0], rec)
		}
	}},
	{"a version is that of one commit exactly", func(h *harness) {
		one := h.put("a", "1")
		between := h.put("b", "x")
		two := h.put("a", "2")
		gone := h.remove("a")
		for rev, want := range map[store.Revision]string{one: "a=1", two: "a=2", gone: "-a"} {
			rec, err := h.Version(h.ctx, "a", rev)
			h.ok(err)
			equal(h, "version", word(rec), want)
			equal(h, "revision", rec.Revision, rev)
			equal(h, "value is nil", rec.Value == nil, rev == gone)
		}
		h.noVersion("a", between, store.ErrNotFound)
		h.noVersion("never", two, store.ErrNotFound)
		h.noVersion("a", gone+1, store.ErrFuture)
		h.noVersion("never", gone+1, store.ErrFuture)
		for _, key := range []store.Key{"", "a\x00", "a\x00b"} {
			h.noVersion(key, two, store.ErrNotFound)
		}
		h.noVersion("a", 0, store.ErrNotFound)
		h.noVersion("a", -1, store.ErrNotFound)
	}},
}
