package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

var concurrencyClaims = []claim{
	{"of writers that swap one version exactly one wins", func(h *harness) {
		rev := h.put("a", "0")
		for round := range 50 {
			const writers = 8
			results := make(chan error, writers)
			for i := range writers {
				go func() {
					_, err := h.Commit(h.ctx, store.Txn{
						Guards: []store.Guard{at("a", rev)},
						Writes: []store.Record{record("a", fmt.Sprintf("%d by %d", round, i))},
					})
					results <- err
				}()
			}
			won := 0
			for range writers {
				err := <-results
				var moved *store.GuardError
				switch {
				case err == nil:
					won++
				case errors.As(err, &moved):
					equal(h, "current revision of the key", moved.Current, rev+1)
				default:
					h.Fatal(err)
				}
			}
			equal(h, "winners", won, 1)
			rev++
			equal(h, "revision", h.State().Current, rev)
		}
	}},
	{"a counter that many raise by swapping loses nothing", countsBySwapping},
	{"of those that create one key exactly one wins", func(h *harness) {
		const writers = 16
		results := make(chan error, writers)
		for i := range writers {
			go func() {
				_, err := h.Commit(h.ctx, store.Txn{Guards: []store.Guard{absent("a")}, Writes: []store.Record{record("a", strconv.Itoa(i))}})
				results <- err
			}()
		}
		won := 0
		for range writers {
			if <-results == nil {
				won++
			}
		}
		equal(h, "winners", won, 1)
		h.history("a", "a="+string(h.reads("a", 0, h.valueOf("a")).Value))
	}},
	{"a writer reads its own write at once", func(h *harness) {
		var work sync.WaitGroup
		for i := range 8 {
			key := store.Key(fmt.Sprintf("w%d", i))
			work.Go(func() {
				for n := range 200 {
					rev, err := h.Commit(h.ctx, store.Txn{Writes: []store.Record{record(key, strconv.Itoa(n))}})
					if current := h.State().Current; err != nil || current < rev {
						h.Errorf("wrote %d, %v, then the store is at %d", rev, err, current)
						return
					}
					rec, err := h.Get(h.ctx, key, 0)
					if err != nil || rec.Revision != rev {
						h.Errorf("wrote %d, then read %d, %v", rev, rec.Revision, err)
						return
					}
				}
			})
		}
		work.Wait()
	}},
	{"whoever learns of a commit can read it", readsWhatWasTold},
	{"a refusal names a revision that can be read", func(h *harness) {
		done := make(chan struct{})
		var work sync.WaitGroup
		work.Go(func() {
			defer close(done)
			for i := range 200 {
				if _, err := h.Commit(h.ctx, store.Txn{Writes: []store.Record{record("a", strconv.Itoa(i))}}); err != nil {
					h.Error(err)
				}
			}
		})
		for range 3 {
			work.Go(func() {
				for running := true; running; {
					select {
					case <-done:
						running = false
					default:
					}
					_, err := h.Commit(h.ctx, store.Txn{Guards: []store.Guard{absent("a")}, Writes: []store.Record{record("b", "x")}})
					var moved *store.GuardError
					if errors.As(err, &moved) {
						rec, err := h.Get(h.ctx, "a", 0)
						if err != nil || rec.Revision < moved.Current {
							h.Errorf("refused for revision %d, then read %d, %v", moved.Current, rec.Revision, err)
							return
						}
					}
				}
			})
		}
		work.Wait()
	}},
	{"revisions that a reader sees never step back", neverStepsBack},
	{"a swap of two keys is seen whole or not at all", func(h *harness) {
		h.puts("a", "0", "b", "0")
		done := make(chan struct{})
		var work sync.WaitGroup
		work.Go(func() {
			defer close(done)
			for i := range 200 {
				v := strconv.Itoa(i)
				if _, err := h.Commit(h.ctx, store.Txn{Writes: []store.Record{record("a", v), record("b", v)}}); err != nil {
					h.Error(err)
				}
			}
		})
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			page, err := h.List(h.ctx, store.ListOptions{})
			h.ok(err)
			equal(h, "a and b", string(page.Records[0].Value), string(page.Records[1].Value))
		}
		work.Wait()
	}},
	{"a commit that was given up wrote everything or nothing", givenUp},
}

func (h *harness) valueOf(key store.Key) string {
	h.Helper()
	rec, err := h.Get(h.ctx, key, 0)
	h.ok(err)
	return string(rec.Value)
}

func countsBySwapping(h *harness) {
	const writers, each = 8, 40
	h.put("n", "0")
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for range each {
				if err := raise(h.ctx, h.Store, "n"); err != nil {
					h.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	h.reads("n", 0, strconv.Itoa(writers*each))
}

// raise adds one to a counter, trying again for as long as others are faster.
func raise(ctx context.Context, s store.Store, key store.Key) error {
	for {
		rec, err := s.Get(ctx, key, 0)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(rec.Value))
		if err != nil {
			return err
		}
		_, err = s.Commit(ctx, store.Txn{
			Guards: []store.Guard{at(key, rec.Revision)},
			Writes: []store.Record{record(key, strconv.Itoa(n+1))},
		})
		var moved *store.GuardError
		if !errors.As(err, &moved) {
			return err
		}
	}
}

// readsWhatWasTold: the writer tells a revision to readers, which must find it by
// every way of reading the present.
func readsWhatWasTold(h *harness) {
	const readers = 4
	told := make(chan store.Revision)
	var work sync.WaitGroup
	for range readers {
		work.Go(func() {
			for rev := range told {
				rec, err := h.Get(h.ctx, "a", 0)
				if err != nil || rec.Revision < rev {
					h.Errorf("told %d, Get gave %d, %v", rev, rec.Revision, err)
				}
				page, err := h.List(h.ctx, store.ListOptions{})
				if err != nil || page.Revision < rev {
					h.Errorf("told %d, List gave %d, %v", rev, page.Revision, err)
				}
				if rec, err = h.Get(h.ctx, "a", rev); err != nil || rec.Revision != rev {
					h.Errorf("told %d, Get at it gave %d, %v", rev, rec.Revision, err)
				}
				if current := h.State().Current; current < rev {
					h.Errorf("told %d, State gave %d", rev, current)
				}
			}
		})
	}
	for i := range 200 {
		told <- h.put("a", strconv.Itoa(i))
	}
	close(told)
	work.Wait()
}

func neverStepsBack(h *harness) {
	h.put("a", "0")
	done := make(chan struct{})
	var work sync.WaitGroup
	for i := range 2 {
		work.Go(func() {
			for n := range 150 {
				if _, err := h.Commit(h.ctx, store.Txn{Writes: []store.Record{record("a", fmt.Sprintf("%d-%d", i, n))}}); err != nil {
					h.Error(err)
				}
			}
		})
	}
	go func() { work.Wait(); close(done) }()
	var last store.Revision
	see := func(what string, rev store.Revision) {
		if rev < last {
			h.Fatalf("%s is at %d after %d", what, rev, last)
		}
		last = rev
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		rec, err := h.Get(h.ctx, "a", 0)
		h.ok(err)
		see("Get", rec.Revision)
		page, err := h.List(h.ctx, store.ListOptions{})
		h.ok(err)
		see("List", page.Revision)
		see("State", h.State().Current)
	}
}

// givenUp cancels commits at any moment. Those that say so wrote nothing.
func givenUp(h *harness) {
	w := h.watch("", 0)
	acknowledged := map[string]bool{}
	var mu sync.Mutex
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for n := range 50 {
				ctx, cancel := context.WithCancel(h.ctx)
				go cancel()
				v := fmt.Sprintf("%d-%d", i, n)
				_, err := h.Commit(ctx, store.Txn{Writes: []store.Record{record("a", v)}})
				if err != nil && !errors.Is(err, context.Canceled) {
					h.Error(err)
				}
				mu.Lock()
				acknowledged[v] = err == nil
				mu.Unlock()
			}
		})
	}
	work.Wait()
	h.put("a", "end")
	for {
		for _, e := range h.take(w, 1) {
			v := string(e.Record.Value)
			if v == "end" {
				for v, ok := range acknowledged {
					if ok {
						h.Errorf("%s was acknowledged and is not there", v)
					}
				}
				return
			}
			if !acknowledged[v] {
				h.Errorf("%s was given up and is there", v)
			}
			delete(acknowledged, v)
		}
	}
}
