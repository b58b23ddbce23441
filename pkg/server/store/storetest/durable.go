package storetest

import (
	"strconv"
	"strings"

	"example.com/cmctl/pkg/server/store"
)

var durableClaims = []durableClaim{
	{"what was written is there after a restart, with its revision", func(r *restarter) {
		a := r.put("a", "1")
		r.put("b", "1")
		gone := r.remove("b")
		r.restart()
		equal(r.harness, "revision", r.reads("a", 0, "1").Revision, a)
		r.lists(store.ListOptions{}, "a=1")
		equal(r.harness, "current", r.State().Current, gone)
		r.refused(store.Txn{Guards: []store.Guard{absent("a")}, Writes: []store.Record{record("a", "2")}}, absent("a"), a)
		equal(r.harness, "next", r.put("a", "2"), gone+1)
	}},
	{"the first revision of a new store is 1", func(r *restarter) {
		r.restart()
		equal(r.harness, "first", r.put("a", "1"), 1)
	}},
	{"what a collection holds is known after a restart", func(r *restarter) {
		const long = 100_000
		r.puts("team/a", "1", "team/b", "12", "other/a", "1", "team/c", strings.Repeat("v", long))
		r.put("team/a", "123")
		r.remove("team/b")
		r.restart()
		r.uses(2, 3+long)
		limit := most(2, -1)
		r.exceeds(within(limit, record("team/d", "1")), limit, store.Usage{Records: 2, Bytes: 3 + long}, store.Usage{Records: 1, Bytes: 1})
	}},
	{"history and old states are there after a restart", func(r *restarter) {
		one := r.put("a", "1")
		two := r.put("a", "2")
		r.remove("a")
		r.restart()
		r.history("a", "-a a=2 a=1")
		r.reads("a", one, "1")
		r.lists(store.ListOptions{At: two}, "a=2")
	}},
	{"a watch resumes over a restart", func(r *restarter) {
		from := r.put("a", "1")
		r.put("a", "2")
		r.remove("a")
		r.restart()
		w := r.watch("", from)
		r.put("a", "3")
		r.sees(w, "a=2(1) -a(2) a=3")
	}},
	{"a compaction holds over a restart", func(r *restarter) {
		one := r.put("a", "1")
		two := r.put("a", "2")
		r.put("b", "1")
		gone := r.remove("b")
		r.ok(r.Compact(r.ctx, gone))
		r.restart()
		equal(r.harness, "compacted", r.State().Compacted, gone)
		_, err := r.Get(r.ctx, "a", one)
		r.is(err, store.ErrCompacted)
		_, err = r.Watch(r.ctx, "", two)
		r.is(err, store.ErrCompacted)
		r.lists(store.ListOptions{}, "a=2")
		_, err = r.History(r.ctx, "b", 0)
		r.is(err, store.ErrNotFound)
	}},
	{"the counter survives when only old records remain", func(r *restarter) {
		r.put("a", "1")
		r.fill("b", 250)
		gone := r.remove("b")
		r.ok(r.Compact(r.ctx, gone))
		r.restart()
		equal(r.harness, "current", r.State().Current, gone)
		w := r.watch("", gone)
		equal(r.harness, "next", r.put("c", "1"), gone+1)
		r.sees(w, "c=1")
		r.lists(store.ListOptions{}, "a=1 c=1")
	}},
	{"the counter survives when nothing remains", func(r *restarter) {
		r.put("a", "1")
		gone := r.remove("a")
		r.ok(r.Compact(r.ctx, gone))
		r.restart()
		r.lists(store.ListOptions{}, "")
		equal(r.harness, "next", r.put("a", "2"), gone+1)
	}},
	{"large values are there after a restart", func(r *restarter) {
		big := string(make([]byte, 100_000))
		r.put("a", big)
		r.put("a", big+"2")
		r.restart()
		r.reads("a", 0, big+"2")
		r.lists(store.ListOptions{}, "a="+big+"2")
		r.history("a", "a="+big+"2 a="+big)
	}},
	{"many restarts lose nothing", func(r *restarter) {
		last := r.State().Current
		for i := range 10 {
			rev := r.put("a", strconv.Itoa(i))
			equal(r.harness, "revision", rev, last+1)
			last = rev
			r.restart()
			r.reads("a", 0, strconv.Itoa(i))
		}
		records, err := r.History(r.ctx, "a", 0)
		r.ok(err)
		equal(r.harness, "versions", len(records), 10)
	}},
}
