package storetest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/cmctl/pkg/server/store"
)

var readClaims = []claim{
	{"a key that never was is not found", func(h *harness) {
		h.lacks("a", 0)
		h.lacks("a", h.State().Current)
		h.lacks("", 0)
		h.lacks("a\x00b", 0)
	}},
	{"Get at a revision gives the version of that state", func(h *harness) {
		before := h.State().Current
		one := h.put("a", "1")
		other := h.put("b", "x")
		two := h.put("a", "2")
		gone := h.remove("a")
		three := h.put("a", "3")
		h.lacks("a", max(before, 1))
		h.reads("a", one, "1")
		equal(h, "revision", h.reads("a", other, "1").Revision, one)
		h.reads("a", two, "2")
		h.lacks("a", gone)
		h.reads("a", three, "3")
		h.reads("a", 0, "3")
	}},
	{"a state that is not reached can't be read", func(h *harness) {
		rev := h.put("a", "1")
		_, err := h.Get(h.ctx, "a", rev+1)
		h.is(err, store.ErrFuture)
		_, err = h.List(h.ctx, store.ListOptions{At: rev + 1})
		h.is(err, store.ErrFuture)
	}},
	{"a revision that is not reached is told, one that is can be read at any state", func(h *harness) {
		rev := h.put("a", "1")
		h.is(h.Reach(h.ctx, rev+1), store.ErrFuture)
		for _, reached := range []store.Revision{0, rev - 1, rev} {
			h.ok(h.Reach(h.ctx, reached))
		}
		h.reads("a", store.Any, "1")
		h.lists(store.ListOptions{At: store.Any}, "a=1")
	}},
	{"any state is none before one that was told of", func(h *harness) {
		for i := range 100 {
			value := strconv.Itoa(i)
			rev := h.put("a", value)
			equal(h, "revision of Get", h.reads("a", store.Any, value).Revision, rev)
			equal(h, "revision of List", h.lists(store.ListOptions{At: store.Any}, "a="+value).Revision, rev)
		}
		h.remove("a")
		h.lacks("a", store.Any)
		h.lists(store.ListOptions{At: store.Any}, "")
	}},
	{"List gives live records in key order", func(h *harness) {
		for _, key := range []store.Key{"b", "a", "d", "c", "a/b", "a!"} {
			h.put(key, "1")
		}
		h.remove("c")
		page := h.lists(store.ListOptions{}, "a=1 a!=1 a/b=1 b=1 d=1")
		equal(h, "revision", page.Revision, h.State().Current)
		equal(h, "remaining", page.Remaining, 0)
	}},
	{"List of an empty store is empty", func(h *harness) {
		page := h.lists(store.ListOptions{}, "")
		equal(h, "revision", page.Revision, h.State().Current)
		h.lists(store.ListOptions{Prefix: "a", After: "ab", Limit: 1}, "")
	}},
	{"a prefix ends at its slash", func(h *harness) {
		h.puts("configmaps/a/1", "x", "configmaps/ab/1", "y", "configmaps/a", "z", "configmaps/a0", "w")
		rev := h.State().Current
		h.lists(store.ListOptions{Prefix: "configmaps/a/"}, "configmaps/a/1=x")
		h.put("later", "1")
		h.lists(store.ListOptions{Prefix: "configmaps/a/", At: rev}, "configmaps/a/1=x")
		h.lists(store.ListOptions{Prefix: "configmaps/b"}, "")
	}},
	{"a prefix may end in the highest byte", func(h *harness) {
		h.puts("a\xff", "1", "a\xffz", "2", "b", "3", "\xff\xff", "4", "\xff\xff\xff", "5")
		old := h.State().Current
		h.put("later", "1")
		for _, rev := range []store.Revision{0, old} {
			page := h.lists(store.ListOptions{Prefix: "a\xff", Limit: 1, At: rev}, "a\xff=1")
			equal(h, "remaining", page.Remaining, 1)
			page = h.lists(store.ListOptions{Prefix: "\xff\xff", Limit: 1, At: rev}, "\xff\xff=4")
			equal(h, "remaining", page.Remaining, 1)
		}
	}},
	{"After, Limit and Remaining page through a list", func(h *harness) {
		h.puts("k/1", "a", "k/2", "b", "k/3", "c", "k/4", "d", "l", "no", "j", "no")
		old := h.State().Current
		check := func(rev store.Revision) {
			for _, c := range []struct {
				after store.Key
				limit int
				want  string
				left  int
			}{
				{"", 0, "k/1=a k/2=b k/3=c k/4=d", 0},
				{"", 2, "k/1=a k/2=b", 2},
				{"k/2", 2, "k/3=c k/4=d", 0},
				{"k/2", 1, "k/3=c", 1},
				{"k/25", 1, "k/3=c", 1},
				{"k/4", 2, "", 0},
				{"a", 1, "k/1=a", 3},
				{"z", 1, "", 0},
				{"", 4, "k/1=a k/2=b k/3=c k/4=d", 0},
			} {
				page := h.lists(store.ListOptions{Prefix: "k/", After: c.after, Limit: c.limit, At: rev}, c.want)
				equal(h, fmt.Sprintf("remaining after %q", c.after), page.Remaining, c.left)
			}
		}
		check(0)
		check(old)
		h.puts("k/0", "new", "k/25", "new", "k/5", "new", "k/3", "changed")
		h.remove("k/4")
		check(old)
	}},
	{"List at a revision shows that state", func(h *harness) {
		one := h.puts("a", "1", "b", "1")
		two := h.remove("a")
		three := h.puts("a", "3", "c", "3")
		h.lists(store.ListOptions{At: one}, "a=1 b=1")
		h.lists(store.ListOptions{At: two}, "b=1")
		page := h.lists(store.ListOptions{At: three}, "a=3 b=1 c=3")
		equal(h, "revision", page.Revision, three)
		page = h.lists(store.ListOptions{At: two}, "b=1")
		equal(h, "revision", page.Revision, two)
	}},
	{"pages read at one revision are one state, whatever is written meanwhile", pagesAreOneState},
	{"large values are read like small ones", func(h *harness) {
		big := strings.Repeat("B", 100_000)
		old := h.puts("a", big, "b", "small", "c", big)
		h.put("a", "now small")
		h.put("b", big)
		h.lists(store.ListOptions{At: old}, "a="+big+" b=small c="+big)
		h.lists(store.ListOptions{}, "a=now small b="+big+" c="+big)
		h.reads("b", 0, big)
		h.reads("a", old, big)
	}},
	{"a list of parts has what is needed of each record", listsParts},
	{"an ended context ends a read", func(h *harness) {
		rev := h.put("a", "1")
		h.put("a", "2")
		ctx, cancel := context.WithCancel(h.ctx)
		cancel()
		_, err := h.Get(ctx, "a", rev)
		h.is(err, context.Canceled)
		_, err = h.List(ctx, store.ListOptions{At: rev})
		h.is(err, context.Canceled)
		_, err = h.History(ctx, "a", 0)
		h.is(err, context.Canceled)
		_, err = h.Version(ctx, "a", rev)
		h.is(err, context.Canceled)
	}},
}

// listsParts lists now, in an old state, and page by page, records of all lengths,
// with a brief and without. A value may be left out up to what was asked for, and
// never be another.
func listsParts(h *harness) {
	var txn store.Txn
	for _, size := range []int{0, 10, 3000, 5000, 100_000} {
		for name, b := range map[string]store.Brief{
			"none":     {},
			"headless": {Created: time.Unix(1e9, 0).UTC(), Keys: 4},
			"headed":   {Created: time.Unix(1e9, 0).UTC(), Keys: 4, Head: size / 2},
			"all-head": {Head: size},
		} {
			txn.Writes = append(txn.Writes, store.Record{Key: store.Key(fmt.Sprintf("k/%s-%d", name, size)),
				Value: []byte(strings.Repeat("h", b.Head) + strings.Repeat("v", size-b.Head)), Brief: b, UID: name})
		}
	}
	old := h.commit(txn)
	for _, at := range []store.Revision{0, old} {
		for _, part := range []store.Part{store.Whole, store.HeadAlone, store.BriefAlone} {
			for _, limit := range []int{0, 7} {
				h.listsPart(store.ListOptions{Prefix: "k/", At: at, Part: part, Limit: limit})
			}
		}
		h.put("k/later", "1")
		h.remove("k/later")
	}
}

func (h *harness) listsPart(o store.ListOptions) {
	h.Helper()
	whole := h.wholeList(store.ListOptions{Prefix: o.Prefix, At: o.At})
	got := h.wholeList(o)
	equal(h, "records", len(got), len(whole))
	for i, want := range whole {
		rec := got[i]
		least := len(want.Value)
		switch {
		case o.Part == store.HeadAlone && want.Brief.Head > 0:
			least = want.Brief.Head
		case o.Part == store.BriefAlone && !want.Brief.IsZero():
			least = 0
		}
		if len(rec.Value) < least || !bytes.HasPrefix(want.Value, rec.Value) {
			h.Fatalf("part %d of %s: %d bytes, want at least %d of %d", o.Part, want.Key, len(rec.Value), least, len(want.Value))
		}
		rec.Value = want.Value
		sameRecord(h, rec, want)
	}
}

// wholeList reads all pages.
func (h *harness) wholeList(o store.ListOptions) (all []store.Record) {
	h.Helper()
	for {
		page, err := h.List(h.ctx, o)
		h.ok(err)
		all = append(all, page.Records...)
		if page.Remaining == 0 {
			return all
		}
		o.At, o.After = page.Revision, all[len(all)-1].Key
	}
}

// pagesAreOneState moves one unit at a time between accounts while it pages: any
// page of another state would change the sum or the number of keys.
func pagesAreOneState(h *harness) {
	const accounts, pageSize = 50, 7
	var txn store.Txn
	for i := range accounts {
		txn.Writes = append(txn.Writes, record(account(i), "1"))
	}
	h.commit(txn)
	for round := range 20 {
		var got []store.Record
		page, err := h.List(h.ctx, store.ListOptions{Prefix: "acc/", Limit: pageSize})
		for {
			h.ok(err)
			got = append(got, page.Records...)
			equal(h, "read and remaining", len(got)+page.Remaining, accounts)
			if page.Remaining == 0 {
				break
			}
			i := (round*7 + len(got)) % accounts
			gone, double := h.moveOne(account(i), account((i+25)%accounts))
			page, err = h.List(h.ctx, store.ListOptions{Prefix: "acc/", Limit: pageSize, At: page.Revision, After: got[len(got)-1].Key})
			h.undoMove(gone, double)
		}
		equal(h, "keys", len(got), accounts)
		for _, r := range got {
			equal(h, "value of "+string(r.Key), string(r.Value), "1")
		}
	}
}

func account(i int) store.Key { return store.Key(fmt.Sprintf("acc/%03d", i)) }

func (h *harness) moveOne(from, to store.Key) (gone, double store.Key) {
	h.Helper()
	h.commit(store.Txn{Writes: []store.Record{tombstone(from), record(to, "2")}})
	return from, to
}

func (h *harness) undoMove(gone, double store.Key) {
	h.Helper()
	h.commit(store.Txn{Writes: []store.Record{record(gone, "1"), record(double, "1")}})
}
