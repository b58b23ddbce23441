package storetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"example.com/cmctl/pkg/server/store"
)

var commitClaims = []claim{
	{"a guard of 0 holds while the key is absent", func(h *harness) {
		txn := store.Txn{Guards: []store.Guard{absent("a")}, Writes: []store.Record{record("a", "1")}}
		rev := h.commit(txn)
		h.reads("a", 0, "1")
		h.refused(txn, absent("a"), rev)
	}},
	{"a guard holds only for the newest version", func(h *harness) {
		first := h.put("a", "1")
		second := h.commit(store.Txn{Guards: []store.Guard{at("a", first)}, Writes: []store.Record{record("a", "2")}})
		h.refused(store.Txn{Guards: []store.Guard{at("a", first)}, Writes: []store.Record{record("a", "3")}}, at("a", first), second)
		h.reads("a", 0, "2")
	}},
	{"a guard on a key that never was fails", func(h *harness) {
		h.refused(store.Txn{Guards: []store.Guard{at("a", 7)}, Writes: []store.Record{record("a", "1")}}, at("a", 7), 0)
	}},
	{"a guard takes a deleted key as absent", func(h *harness) {
		first := h.put("a", "1")
		gone := h.commit(store.Txn{Guards: []store.Guard{at("a", first)}, Writes: []store.Record{tombstone("a")}})
		h.lacks("a", 0)
		for _, g := range []store.Guard{at("a", first), at("a", gone)} {
			h.refused(store.Txn{Guards: []store.Guard{g}, Writes: []store.Record{record("a", "2")}}, g, 0)
		}
		h.commit(store.Txn{Guards: []store.Guard{absent("a")}, Writes: []store.Record{record("a", "3")}})
		h.reads("a", 0, "3")
	}},
	{"guards may be on keys that are not written", func(h *harness) {
		ns := h.put("ns/team", "open")
		txn := store.Txn{Guards: []store.Guard{at("ns/team", ns)}, Writes: []store.Record{record("cm/team/a", "1")}}
		h.commit(txn)
		closed := h.put("ns/team", "closed")
		h.refused(txn, at("ns/team", ns), closed)
		h.reads("ns/team", 0, "closed")
	}},
	{"a write needs no guard", func(h *harness) {
		h.put("a", "1")
		h.put("a", "2")
		h.reads("a", 0, "2")
	}},
	{"nothing is written when the last of several guards fails", func(h *harness) {
		a, b := h.put("a", "1"), h.put("b", "1")
		h.refused(store.Txn{
			Guards: []store.Guard{at("a", a), at("b", b), absent("c"), at("d", 1)},
			Writes: []store.Record{record("a", "2"), record("b", "2"), record("c", "2")},
		}, at("d", 1), 0)
		h.lists(store.ListOptions{}, "a=1 b=1")
	}},
	{"a failed guard uses up no revision", func(h *harness) {
		rev := h.put("a", "1")
		h.refused(store.Txn{Guards: []store.Guard{absent("a")}, Writes: []store.Record{record("a", "2")}}, absent("a"), rev)
		equal(h, "next revision", h.put("a", "3"), rev+1)
	}},
	{"revisions count up by one over all keys", func(h *harness) {
		last := h.State().Current
		for _, key := range []store.Key{"a", "b", "a", "c"} {
			rev := h.put(key, "x")
			equal(h, "revision", rev, last+1)
			equal(h, "current", h.State().Current, rev)
			last = rev
		}
		equal(h, "revision of a deletion", h.remove("a"), last+1)
	}},
	{"all writes of a transaction share one revision", func(h *harness) {
		rev := h.puts("a", "1", "b", "2")
		equal(h, "a", h.reads("a", 0, "1").Revision, rev)
		equal(h, "b", h.reads("b", 0, "2").Revision, rev)
	}},
	{"a transaction may delete one key and write another", func(h *harness) {
		h.put("old", "1")
		h.commit(store.Txn{Writes: []store.Record{tombstone("old"), record("new", "1")}})
		h.lists(store.ListOptions{}, "new=1")
	}},
	{"deleting what is absent leaves it absent", func(h *harness) {
		h.remove("a")
		h.lacks("a", 0)
		h.commit(store.Txn{Guards: []store.Guard{absent("a")}, Writes: []store.Record{record("a", "1")}})
	}},
	{"a record comes back as it was given", comesBack},
	{"a wrong transaction is an error and changes nothing", refusesNonsense},
	{"a context that has ended writes nothing", func(h *harness) {
		ctx, cancel := context.WithCancel(h.ctx)
		cancel()
		_, err := h.Commit(ctx, store.Txn{Writes: []store.Record{record("a", "1")}})
		h.is(err, context.Canceled)
		h.lacks("a", 0)
	}},
	{"the given Revision is ignored", func(h *harness) {
		rec := record("a", "1")
		rec.Revision = 1 << 40
		rev := h.commit(store.Txn{Writes: []store.Record{rec}})
		equal(h, "revision", h.reads("a", 0, "1").Revision, rev)
	}},
	{"the labels may be changed after the commit", func(h *harness) {
		rec := record("a", "1")
		rec.Labels = map[string]string{"k": "v"}
		h.commit(store.Txn{Writes: []store.Record{rec}})
		rec.Labels["k"] = "changed"
		equal(h, "label", h.reads("a", 0, "1").Labels["k"], "v")
	}},
}

func comesBack(h *harness) {
	for _, size := range []int{0, 1, 100, 5000, 200_000} {
		want := store.Record{
			Key:       "configmaps/team-a/ü",
			Value:     []byte(strings.Repeat("v", size)),
			VersionAt: size / 2,
			Labels:    map[string]string{"app": "web", "empty": ""},
			UID:       "0b0d4a5e-6d1f-4f6e-9f9a-2f6d8a3c1e10",
			Brief:     store.Brief{Created: time.Date(2024, 2, 29, 12, 0, 0, 999, time.FixedZone("", 3600)), Keys: 3, Head: size / 3},
			Meta: store.Meta{
				Verb: "patch", Manager: "cmctl-patch", User: "jane", WriteID: "w-1",
				Time: time.Date(2024, 2, 29, 12, 30, 1, 234_567_890, time.FixedZone("", 3600)),
			},
		}
		want.Revision = h.commit(store.Txn{Writes: []store.Record{want}})
		want.Time = time.Date(2024, 2, 29, 11, 30, 1, 234_000_000, time.UTC)
		want.Brief.Created = time.Date(2024, 2, 29, 11, 0, 0, 0, time.UTC)
		now, err := h.Get(h.ctx, want.Key, 0)
		h.ok(err)
		then, err := h.Get(h.ctx, want.Key, want.Revision)
		h.ok(err)
		h.put("other", "makes that state an old one")
		old, err := h.Get(h.ctx, want.Key, want.Revision)
		h.ok(err)
		page, err := h.List(h.ctx, store.ListOptions{Prefix: want.Key})
		h.ok(err)
		version, err := h.Version(h.ctx, want.Key, want.Revision)
		h.ok(err)
		heads, err := h.History(h.ctx, want.Key, 1)
		h.ok(err)
		for _, got := range []store.Record{now, then, old, page.Records[0], version} {
			sameRecord(h, got, want)
		}
		want.Value = nil
		sameRecord(h, heads[0], want)
	}
}

func sameRecord(h *harness, got, want store.Record) {
	h.Helper()
	equal(h, "key", got.Key, want.Key)
	equal(h, "revision", got.Revision, want.Revision)
	equal(h, "deleted", got.Deleted, want.Deleted)
	equal(h, "value is nil", got.Value == nil, want.Value == nil)
	equal(h, "value", string(got.Value), string(want.Value))
	equal(h, "offset", got.VersionAt, want.VersionAt)
	equal(h, "number of labels", len(got.Labels), len(want.Labels))
	for name, value := range want.Labels {
		equal(h, "label "+name, got.Labels[name], value)
	}
	equal(h, "uid", got.UID, want.UID)
	equal(h, "brief", got.Brief, want.Brief)
	equal(h, "meta", got.Meta, want.Meta)
}

func refusesNonsense(h *harness) {
	offset := record("a", "1")
	offset.VersionAt = 2
	negative := record("a", "1")
	negative.VersionAt = -1
	longHead := record("a", "1")
	longHead.Brief.Head = 2
	noKeys := record("a", "1")
	noKeys.Brief.Keys = -1
	goneWithBrief := tombstone("a")
	goneWithBrief.Brief.Keys = 1
	for name, txn := range map[string]store.Txn{
		"no writes":            {},
		"only a guard":         {Guards: []store.Guard{absent("a")}},
		"a key written twice":  {Writes: []store.Record{record("a", "1"), record("b", "1"), record("a", "2")}},
		"an empty key":         {Writes: []store.Record{record("", "1")}},
		"a NUL in a key":       {Writes: []store.Record{record("a\x00b", "1")}},
		"no value":             {Writes: []store.Record{{Key: "a"}}},
		"offset outside":       {Writes: []store.Record{offset}},
		"offset below 0":       {Writes: []store.Record{negative}},
		"value of a tombstone": {Writes: []store.Record{{Key: "a", Deleted: true, Value: []byte("1")}}},
		"head outside":         {Writes: []store.Record{longHead}},
		"keys below 0":         {Writes: []store.Record{noKeys}},
		"brief of a tombstone": {Writes: []store.Record{goneWithBrief}},
		"guard of no key":      {Guards: []store.Guard{{}}, Writes: []store.Record{record("a", "1")}},
		"guard below 0":        {Guards: []store.Guard{at("a", -1)}, Writes: []store.Record{record("a", "1")}},
	} {
		before := h.State()
		_, err := h.Commit(h.ctx, txn)
		var moved *store.GuardError
		if err == nil || errors.As(err, &moved) || errors.Is(err, store.ErrFailed) {
			h.Errorf("%s: error is %v, want a plain one", name, err)
		}
		equal(h, name+": state", h.State(), before)
	}
	h.lacks("a", 0)
	h.ok(h.Healthy())
}
