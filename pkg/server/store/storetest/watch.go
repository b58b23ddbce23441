package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

var watchClaims = []claim{
	{"live changes come with what was before", func(h *harness) {
		w := h.watch("", 0)
		h.put("a", "1")
		h.put("a", "2")
		h.remove("a")
		h.put("a", "3")
		h.sees(w, "a=1 a=2(1) -a(2) a=3")
	}},
	{"changes already made come with what was before", func(h *harness) {
		from := h.put("a", "0")
		h.put("a", "1")
		h.remove("a")
		h.put("a", "2")
		h.sees(h.watch("", from), "a=1(0) -a(1) a=2")
	}},
	{"the backlog is followed by what is live", func(h *harness) {
		from := h.put("a", "1")
		h.put("a", "2")
		w := h.watch("", from)
		h.put("a", "3")
		h.sees(w, "a=2(1) a=3(2)")
		h.put("a", "4")
		h.sees(w, "a=4(3)")
	}},
	{"from 0 is from now on", func(h *harness) {
		h.put("a", "1")
		w := h.watch("", 0)
		h.put("a", "2")
		h.sees(w, "a=2(1)")
	}},
	{"from the current revision is from now on", func(h *harness) {
		w := h.watch("", h.put("a", "1"))
		h.put("a", "2")
		h.sees(w, "a=2(1)")
	}},
	{"from a future revision waits for it in silence", func(h *harness) {
		current := h.put("a", "1")
		w := h.watch("", current+2)
		h.put("a", "2")
		h.put("a", "3")
		h.put("a", "4")
		h.sees(w, "a=4(3)")
	}},
	{"only changes under the prefix come", func(h *harness) {
		from := h.put("configmaps/a/1", "x")
		h.puts("configmaps/ab/1", "no", "configmaps/a/2", "old", "configmaps/a", "no")
		w := h.watch("configmaps/a/", from)
		h.puts("configmaps/ab/1", "no", "configmaps/a/2", "new", "configmaps/b/1", "no")
		h.remove("configmaps/a/1")
		h.sees(w, "configmaps/a/2=old configmaps/a/2=new(old) -configmaps/a/1(x)")
	}},
	{"events of one revision come together", func(h *harness) {
		from := h.put("start", "1")
		live := h.watch("", from)
		for i := range 300 {
			h.puts("a", strconv.Itoa(i), "b", strconv.Itoa(i), "c", strconv.Itoa(i))
		}
		for _, w := range []store.Watcher{live, h.watch("", from)} {
			for left := 900; left > 0; {
				events, err := w.Next(h.ctx)
				h.ok(err)
				if len(events)%3 != 0 || events[0].Record.Key != "a" {
					h.Fatalf("%d events of transactions of three, the first is %s", len(events), word(events[0].Record))
				}
				left -= len(events)
			}
		}
	}},
	{"deleting what is absent has nothing before", func(h *harness) {
		from := h.put("x", "1")
		live := h.watch("", 0)
		h.remove("a")
		h.sees(live, "-a")
		h.sees(h.watch("", from), "-a")
	}},
	{"large values come whole, also the ones before", func(h *harness) {
		big, bigger := strings.Repeat("b", 50_000), strings.Repeat("B", 60_000)
		from := h.put("a", big)
		live := h.watch("", from)
		h.put("a", bigger)
		h.put("a", "small")
		h.puts("a", big, "c", big)
		want := "a=" + bigger + "(" + big + ") a=small(" + bigger + ") a=" + big + "(small) c=" + big
		h.sees(live, want)
		h.sees(h.watch("", from), want)
	}},
	{"Progress tells up to where everything was returned", progressTells},
	{"Progress never passes what is still to be returned", progressWaits},
	{"Progress of a future watch is not below its start", func(h *harness) {
		current := h.put("a", "1")
		w := h.watch("", current+10)
		h.put("a", "2")
		equal(h, "progress", w.Progress(), current+10)
	}},
	{"a context that ends leaves the watch going", func(h *harness) {
		w := h.watch("", 0)
		ctx, cancel := context.WithCancel(h.ctx)
		cancel()
		_, err := w.Next(ctx)
		h.is(err, context.Canceled)
		h.put("a", "1")
		h.sees(w, "a=1")
	}},
	{"Close wakes Next and ends the watch for good", func(h *harness) {
		w := h.watch("", 0)
		woken := make(chan error)
		go func() {
			_, err := w.Next(h.ctx)
			woken <- err
		}()
		w.Close()
		h.is(<-woken, store.ErrClosed)
		w.Close()
		h.put("a", "1")
		_, err := w.Next(h.ctx)
		h.is(err, store.ErrClosed)
	}},
	{"closing one watch leaves the others going", func(h *harness) {
		w, other := h.watch("", 0), h.watch("", 0)
		w.Close()
		h.put("a", "1")
		h.sees(other, "a=1")
	}},
	{"a watcher that nobody reads holds up no commit, and misses nothing without an error", slowWatcher},
	{"backlog and live join without gap or repetition under load", joinsUnderLoad},
	{"many watchers see the same", manyWatchers},
}

func progressTells(h *harness) {
	w := h.watch("a/", 0)
	h.put("a/1", "x")
	h.sees(w, "a/1=x")
	// A change elsewhere moves it on too. It may take a moment until the watcher
	// has heard of it, which a change under the prefix ends.
	last := h.put("b/1", "y")
	reached := w.Progress()
	if reached > last || reached < last-1 {
		h.Fatalf("progress is %d, want %d or one less", reached, last)
	}
	last = h.put("a/2", "z")
	h.sees(w, "a/2=z")
	equal(h, "progress", w.Progress(), last)
}

func progressWaits(h *harness) {
	w := h.watch("a/", 0)
	first := h.put("a/1", "1")
	for i := range 50 {
		h.put("b/1", strconv.Itoa(i))
		if p := w.Progress(); p >= first {
			h.Fatalf("progress is %d, but %d has not been returned", p, first)
		}
	}
	h.sees(w, "a/1=1")
}

func slowWatcher(h *harness) {
	w := h.watch("", 0)
	const txns, keys = 100, 200
	for i := range txns {
		var txn store.Txn
		for k := range keys {
			txn.Writes = append(txn.Writes, record(store.Key(fmt.Sprintf("k%03d", k)), strconv.Itoa(i)))
		}
		h.commit(txn)
	}
	c := newContinuity(h)
	for c.events < txns*keys {
		events, err := w.Next(h.ctx)
		if errors.Is(err, store.ErrSlow) {
			_, err = w.Next(h.ctx)
			h.is(err, store.ErrSlow)
			return
		}
		h.ok(err)
		c.add(events)
	}
}

// continuity follows a watch and knows what each event must say was before.
type continuity struct {
	h      *harness
	last   store.Revision
	values map[store.Key]string
	events int
}

func newContinuity(h *harness) *continuity {
	return &continuity{h: h, values: map[store.Key]string{}}
}

// add demands that revisions rise and that each previous value is the value that
// the last event of the key had: then none is missing, and none comes twice.
func (c *continuity) add(events []store.Event) {
	c.h.Helper()
	for _, e := range events {
		c.events++
		if e.Record.Revision < c.last {
			c.h.Fatalf("revision %d after %d", e.Record.Revision, c.last)
		}
		c.last = e.Record.Revision
		before, known := c.values[e.Record.Key]
		if known != (e.Prev != nil) || (known && string(e.Prev.Value) != before) {
			c.h.Fatalf("event %s at %d: before was %v, want %q (%t)", word(e.Record), c.last, e.Prev, before, known)
		}
		if e.Record.Deleted {
			delete(c.values, e.Record.Key)
		} else {
			c.values[e.Record.Key] = string(e.Record.Value)
		}
	}
}

// joinsUnderLoad starts watches all the time while others write. Each must see
// everything from its start to the last commit.
func joinsUnderLoad(h *harness) {
	const writers, each, watchers = 4, 150, 8
	start := h.put("start", "1")
	var writing, watching sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			key := store.Key(fmt.Sprintf("k%d", i))
			for n := range each {
				rec := record(key, fmt.Sprintf("%d-%d", i, n))
				if n%10 == 9 {
					rec = tombstone(key)
				}
				if _, err := h.Commit(h.ctx, store.Txn{Writes: []store.Record{rec}}); err != nil {
					h.Error(err)
					return
				}
			}
		})
	}
	last := start + writers*each
	for range watchers {
		watching.Go(func() {
			w, err := h.Watch(h.ctx, "", start)
			if err != nil {
				h.Error(err)
				return
			}
			defer w.Close()
			want := start + 1
			values := map[store.Key]string{}
			for want <= last {
				events, err := w.Next(h.ctx)
				if err != nil {
					h.Error(err)
					return
				}
				for _, e := range events {
					if e.Record.Revision != want {
						h.Errorf("revision %d, want %d", e.Record.Revision, want)
						return
					}
					want++
					before := ""
					if e.Prev != nil {
						before = string(e.Prev.Value)
					}
					if before != values[e.Record.Key] {
						h.Errorf("before %s was %q, want %q", word(e.Record), before, values[e.Record.Key])
						return
					}
					values[e.Record.Key] = string(e.Record.Value)
				}
			}
		})
	}
	writing.Wait()
	watching.Wait()
}

func manyWatchers(h *harness) {
	const watchers, commits = 300, 30
	ws := make([]store.Watcher, watchers)
	for i := range ws {
		ws[i] = h.watch(store.Key([]string{"", "a", "a/", "b/"}[i%4]), 0)
	}
	for i := range commits {
		h.puts("a/1", strconv.Itoa(i), "b/1", strconv.Itoa(i))
	}
	for i, w := range ws {
		want := commits
		if i%4 == 0 {
			want *= 2
		}
		c := newContinuity(h)
		c.add(h.take(w, want))
		equal(h, "events", c.events, want)
	}
}
