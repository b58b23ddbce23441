package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

var compactClaims = []claim{
	{"states before it can't be read or watched any more, those from it on can", func(h *harness) {
		one := h.put("a", "1")
		two := h.put("a", "2")
		h.put("a", "3")
		h.ok(h.Compact(h.ctx, two))
		_, err := h.Get(h.ctx, "a", one)
		h.is(err, store.ErrCompacted)
		_, err = h.List(h.ctx, store.ListOptions{At: one})
		h.is(err, store.ErrCompacted)
		_, err = h.Watch(h.ctx, "", one)
		h.is(err, store.ErrCompacted)
		h.reads("a", two, "2")
		h.reads("a", 0, "3")
		h.lists(store.ListOptions{At: two}, "a=2")
		h.sees(h.watch("", two), "a=3(2)")
		equal(h, "compacted", h.State().Compacted, two)
	}},
	{"a key keeps the version that was current then, however old", func(h *harness) {
		old := h.put("a", "old")
		h.fill("b", 50)
		at := h.State().Current
		h.put("a", "new")
		h.ok(h.Compact(h.ctx, at))
		equal(h, "revision", h.reads("a", at, "old").Revision, old)
		h.sees(h.watch("", at), "a=new(old)")
	}},
	{"a key that was deleted by then keeps nothing", func(h *harness) {
		h.put("a", "1")
		h.put("a", "2")
		gone := h.remove("a")
		h.put("b", "1")
		h.ok(h.Compact(h.ctx, gone))
		h.lacks("a", 0)
		h.lacks("a", gone)
		_, err := h.History(h.ctx, "a", 0)
		h.is(err, store.ErrNotFound)
	}},
	{"a key that was deleted and made anew starts anew", func(h *harness) {
		h.put("a", "1")
		gone := h.remove("a")
		h.put("a", "2")
		h.ok(h.Compact(h.ctx, gone))
		h.history("a", "a=2")
		h.sees(h.watch("", gone), "a=2")
	}},
	{"a deletion after it keeps what was deleted", func(h *harness) {
		at := h.put("a", "1")
		h.remove("a")
		h.ok(h.Compact(h.ctx, at))
		h.reads("a", at, "1")
		h.sees(h.watch("", at), "-a(1)")
	}},
	{"the last versions of a key stay, without gaps", func(h *harness) {
		h.fill("a", 100)
		h.ok(h.Compact(h.ctx, h.State().Current))
		records, err := h.History(h.ctx, "a", 0)
		h.ok(err)
		if n := len(records); n < 2 || n == 100 {
			h.Fatalf("%d versions are kept of 100", n)
		}
		for i, r := range h.versions(records) {
			equal(h, "value", string(r.Value), strconv.Itoa(99-i))
		}
	}},
	{"a version that was given up is told from one that never was", func(h *harness) {
		first := h.put("a", "first")
		for i := range 40 {
			h.put("a", strconv.Itoa(i))
			h.put("b", "x")
		}
		at := h.State().Current
		last := h.put("a", "last")
		h.put("b", "x")
		h.ok(h.Compact(h.ctx, at))
		heads, err := h.History(h.ctx, "a", 0)
		h.ok(err)
		oldest := heads[len(heads)-1].Revision
		h.versions(heads) // those before the compacted revision too
		if oldest >= at || oldest == first {
			h.Fatalf("the oldest version kept is %d, compacted at %d", oldest, at)
		}
		h.noVersion("a", first, store.ErrCompacted)
		h.noVersion("a", oldest-1, store.ErrCompacted) // of b, but who knows
		h.noVersion("a", oldest+1, store.ErrNotFound)  // an older one is here
		h.noVersion("a", at, store.ErrNotFound)
		h.noVersion("a", last+1, store.ErrNotFound)
		h.noVersion("never", at, store.ErrCompacted)
		h.noVersion("never", at+1, store.ErrNotFound)
		h.noVersion("a", last+2, store.ErrFuture)
	}},
	{"a version of what was deleted by then is given up, of what came anew kept", func(h *harness) {
		was := h.put("a", "1")
		gone := h.remove("a")
		h.put("b", "x")
		again := h.put("a", "2")
		end := h.remove("a")
		h.ok(h.Compact(h.ctx, gone))
		h.noVersion("a", was, store.ErrCompacted)
		h.noVersion("a", gone, store.ErrCompacted)
		h.noVersion("a", gone+1, store.ErrNotFound)
		for rev, want := range map[store.Revision]string{again: "a=2", end: "-a"} {
			rec, err := h.Version(h.ctx, "a", rev)
			h.ok(err)
			equal(h, "version", word(rec), want)
		}
		h.ok(h.Compact(h.ctx, end))
		h.noVersion("a", again, store.ErrCompacted)
		h.noVersion("a", end, store.ErrCompacted)
	}},
	{"what came after it stays complete", func(h *harness) {
		h.fill("a", 30)
		at := h.State().Current
		h.fill("a", 60)
		h.ok(h.Compact(h.ctx, at))
		c := newContinuity(h)
		c.values["a"] = "29"
		c.add(h.take(h.watch("", at), 60))
		records, err := h.History(h.ctx, "a", 60)
		h.ok(err)
		equal(h, "versions", len(records), 60)
	}},
	{"an old page can't be continued, a kept one can", func(h *harness) {
		h.puts("a", "1", "b", "1", "c", "1")
		page := h.lists(store.ListOptions{Limit: 1}, "a=1")
		h.puts("b", "2", "d", "2")
		h.ok(h.Compact(h.ctx, page.Revision))
		h.lists(store.ListOptions{Limit: 1, At: page.Revision, After: "a"}, "b=1")
		h.ok(h.Compact(h.ctx, page.Revision+1))
		_, err := h.List(h.ctx, store.ListOptions{Limit: 1, At: page.Revision, After: "b"})
		h.is(err, store.ErrCompacted)
	}},
	{"beyond the current revision is an error", func(h *harness) {
		rev := h.put("a", "1")
		h.is(h.Compact(h.ctx, rev+1), store.ErrFuture)
		h.ok(h.Compact(h.ctx, rev))
	}},
	{"at an earlier revision than before it does nothing", func(h *harness) {
		one := h.put("a", "1")
		two := h.put("a", "2")
		h.ok(h.Compact(h.ctx, two))
		h.ok(h.Compact(h.ctx, one))
		h.ok(h.Compact(h.ctx, 0))
		equal(h, "compacted", h.State().Compacted, two)
		h.reads("a", two, "2")
	}},
	{"it writes no revision", func(h *harness) {
		rev := h.put("a", "1")
		h.ok(h.Compact(h.ctx, rev))
		equal(h, "current", h.State().Current, rev)
		equal(h, "next", h.put("a", "2"), rev+1)
	}},
	{"a caught up watcher goes on", func(h *harness) {
		w := h.watch("", 0)
		h.put("a", "1")
		h.sees(w, "a=1")
		h.ok(h.Compact(h.ctx, h.put("a", "2")))
		h.put("a", "3")
		h.sees(w, "a=2(1) a=3(2)")
	}},
	{"the counter goes on when only old records remain", onlyOldRecords},
	{"deleted keys never come back", deletedStayDeleted},
	{"a watcher under it gets every event in order or an error", watchedUnderCompaction},
	{"reads and writes under it are right", readUnderCompaction},
	{"an ended context ends it, and it can be done again", func(h *harness) {
		h.fill("a", 20)
		ctx, cancel := context.WithCancel(h.ctx)
		cancel()
		h.is(h.Compact(ctx, h.State().Current), context.Canceled)
		h.ok(h.Compact(h.ctx, h.State().Current))
		h.reads("a", 0, "19")
	}},
}

// fill writes n versions of a key: 0, 1, 2, ...
func (h *harness) fill(key store.Key, n int) {
	h.Helper()
	for i := range n {
		h.put(key, strconv.Itoa(i))
	}
}

func onlyOldRecords(h *harness) {
	h.put("a", "1")
	h.fill("b", 100)
	gone := h.remove("b")
	h.ok(h.Compact(h.ctx, gone))
	equal(h, "current", h.State().Current, gone)
	w := h.watch("", gone)
	equal(h, "next", h.put("c", "1"), gone+1)
	h.sees(w, "c=1")
}

func deletedStayDeleted(h *harness) {
	for round := range 30 {
		for k := range 5 {
			h.put(store.Key(fmt.Sprintf("k%d", k)), strconv.Itoa(round))
		}
		for k := range 5 {
			h.remove(store.Key(fmt.Sprintf("k%d", k)))
		}
		h.ok(h.Compact(h.ctx, h.State().Current-store.Revision(round%7)))
		h.lists(store.ListOptions{}, "")
	}
	h.ok(h.Compact(h.ctx, h.State().Current))
	for k := range 5 {
		_, err := h.History(h.ctx, store.Key(fmt.Sprintf("k%d", k)), 0)
		h.is(err, store.ErrNotFound)
	}
}

// watchedUnderCompaction has watchers that fall behind while keys come and go and
// everything is compacted as soon as it is old.
func watchedUnderCompaction(h *harness) {
	start := h.put("start", "1")
	done := make(chan struct{})
	var work, watch sync.WaitGroup
	work.Go(func() {
		defer close(done)
		for i := range 300 {
			key := store.Key(fmt.Sprintf("k%d", i%3))
			for _, rec := range []store.Record{record(key, strconv.Itoa(i)), tombstone(key)} {
				if _, err := h.Commit(h.ctx, store.Txn{Writes: []store.Record{rec}}); err != nil {
					h.Error(err)
					return
				}
			}
		}
	})
	work.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := h.Compact(h.ctx, h.State().Current); err != nil {
				h.Error(err)
				return
			}
		}
	})
	for range 4 {
		watch.Go(func() { followAnyhow(h, start) })
	}
	work.Wait()
	h.put("end", "1")
	watch.Wait()
}

// followAnyhow watches from start, and again from now each time history is gone,
// until the end. In between it demands every revision.
func followAnyhow(h *harness, start store.Revision) {
	for from := start; ; {
		ended, err := followFrom(h, from)
		if ended {
			return
		}
		if !errors.Is(err, store.ErrCompacted) && !errors.Is(err, store.ErrSlow) {
			h.Error(err)
			return
		}
		from = h.State().Current // before the end is looked for, which may come in between
		if _, err := h.Get(h.ctx, "end", 0); err == nil {
			return
		}
	}
}

func followFrom(h *harness, from store.Revision) (ended bool, err error) {
	w, err := h.Watch(h.ctx, "", from)
	if err != nil {
		return false, err
	}
	defer w.Close()
	for {
		events, err := w.Next(h.ctx)
		if err != nil {
			return false, err
		}
		for _, e := range events {
			from++
			if e.Record.Revision != from {
				return false, fmt.Errorf("revision %d, want %d", e.Record.Revision, from)
			}
			if e.Record.Deleted && (e.Prev == nil || e.Prev.Revision != from-1) {
				return false, fmt.Errorf("deletion at %d without what was deleted", from)
			}
			if e.Record.Key == "end" {
				return true, nil
			}
		}
	}
}

func readUnderCompaction(h *harness) {
	big := make([]byte, 20_000)
	for i := range big {
		big[i] = 'x'
	}
	value := func(i int) string { return string(big) + strconv.Itoa(i) }
	h.puts("a", value(0), "b", value(0))
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		defer close(done)
		for i := 1; i < 80; i++ {
			txn := store.Txn{Writes: []store.Record{record("a", value(i)), record("b", value(i))}}
			rev, err := h.Commit(h.ctx, txn)
			if err == nil {
				err = h.Compact(h.ctx, rev)
			}
			if err != nil {
				h.Error(err)
				return
			}
		}
	})
	for range 3 {
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				o := store.ListOptions{}
				if n%2 == 1 {
					o.At = h.State().Current
				}
				page, err := h.List(h.ctx, o)
				if o.At != 0 && errors.Is(err, store.ErrCompacted) {
					continue
				}
				if err != nil || len(page.Records) != 2 || string(page.Records[0].Value) != string(page.Records[1].Value) {
					h.Errorf("list %+v: %d records, %v", o, len(page.Records), err)
					return
				}
				if _, err := h.Get(h.ctx, "a", 0); err != nil {
					h.Errorf("get: %v", err)
					return
				}
			}
		})
	}
	work.Wait()
}
