package storetest

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

var lifecycleClaims = []claim{
	{"a new store is healthy, empty and has nothing to compact", func(h *harness) {
		h.ok(h.Healthy())
		h.lists(store.ListOptions{}, "")
		s := h.State()
		if s.Current < 0 || s.Compacted > s.Current {
			h.Fatalf("state %+v", s)
		}
		equal(h, "first revision", h.put("a", "1"), s.Current+1)
	}},
	{"after Close every call says so", func(h *harness) {
		rev := h.put("a", "1")
		h.ok(h.Close())
		_, err := h.Get(h.ctx, "a", 0)
		h.is(err, store.ErrClosed)
		_, err = h.Get(h.ctx, "a", rev)
		h.is(err, store.ErrClosed)
		_, err = h.List(h.ctx, store.ListOptions{})
		h.is(err, store.ErrClosed)
		_, err = h.History(h.ctx, "a", 0)
		h.is(err, store.ErrClosed)
		_, err = h.Version(h.ctx, "a", rev)
		h.is(err, store.ErrClosed)
		_, err = h.Commit(h.ctx, store.Txn{Writes: []store.Record{record("a", "2")}})
		h.is(err, store.ErrClosed)
		_, err = h.Watch(h.ctx, "", 0)
		h.is(err, store.ErrClosed)
		_, err = h.Usage(h.ctx, "a/")
		h.is(err, store.ErrClosed)
		h.is(h.Compact(h.ctx, rev), store.ErrClosed)
		h.is(h.Healthy(), store.ErrClosed)
		h.is(h.Close(), store.ErrClosed)
	}},
	{"Close wakes watchers, those that are behind too", func(h *harness) {
		from := h.put("a", "1")
		h.put("a", "2")
		live, behind := h.watch("", 0), h.watch("", from)
		woken := make(chan error)
		go func() {
			_, err := live.Next(h.ctx)
			woken <- err
		}()
		h.ok(h.Close())
		h.is(<-woken, store.ErrClosed)
		h.ends(behind, store.ErrClosed)
		behind.Close()
	}},
	{"Close lets what runs end, and nobody waits for ever", closesUnderLoad},
}

func closesUnderLoad(h *harness) {
	h.put("a", "0")
	var work sync.WaitGroup
	started := make(chan struct{}, 8)
	run := func(call func(n int) error) {
		work.Go(func() {
			for n := 0; ; n++ {
				err := call(n)
				if n == 0 {
					started <- struct{}{}
				}
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, store.ErrCompacted) {
					h.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		run(func(n int) error {
			_, err := h.Commit(h.ctx, store.Txn{Writes: []store.Record{record("a", strconv.Itoa(n))}})
			return err
		})
	}
	run(func(int) error { _, err := h.Get(h.ctx, "a", h.State().Current); return err })
	run(func(int) error { _, err := h.List(h.ctx, store.ListOptions{}); return err })
	run(func(int) error { _, err := h.History(h.ctx, "a", 5); return err })
	run(func(int) error { _, err := h.Version(h.ctx, "a", h.State().Current); return err })
	run(func(int) error { return h.Compact(h.ctx, h.State().Current) })
	run(func(int) error {
		w, err := h.Watch(h.ctx, "", 0)
		if err != nil {
			return err
		}
		defer w.Close()
		ctx, cancel := context.WithCancel(h.ctx)
		go cancel()
		_, err = w.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
	for range cap(started) {
		<-started
	}
	h.ok(h.Close())
	work.Wait()
}
