package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
	"example.com/cmctl/test/etcd/internal/procs"
)

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	procs.Eventually(t, what, time.Minute, holds)
}

// pair are two stores on one cluster, as two servers have them.
func pair(t *testing.T) (a, b store.Store, cluster string) {
	t.Helper()
	cluster = embedded(t)
	o := etcd.Options{Endpoints: []string{cluster}, HistoryLimit: 3, DeletedRetention: -1}
	return open(t, o), open(t, o), cluster
}

// others is a client of somebody else on the cluster.
func others(t *testing.T, cluster string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{cluster}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func put(t testing.TB, st store.Store, key store.Key, value string) store.Revision {
	t.Helper()
	rev, err := st.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: key, Value: []byte(value)}}})
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return rev
}

func TestWhatOneHasWrittenTheOtherReadsAtOnce(t *testing.T) {
	a, b, cluster := pair(t)
	foreign := others(t, cluster)
	for n := range 300 {
		value := strconv.Itoa(n)
		rev := put(t, a, "k", value)
		if n%3 == 0 {
			if _, err := foreign.Put(t.Context(), "/elsewhere", value); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := b.Get(t.Context(), "k", 0)
		if err != nil || rec.Revision != rev || string(rec.Value) != value {
			t.Fatalf("wrote %s at %d, and the other reads %s at %d, %v", value, rev, rec.Value, rec.Revision, err)
		}
		page, err := b.List(t.Context(), store.ListOptions{})
		if err != nil || page.Revision < rev || string(page.Records[0].Value) != value {
			t.Fatalf("wrote %s at %d, and the other lists %v, %v", value, rev, page, err)
		}
		if err := a.Reach(t.Context(), page.Revision); err != nil {
			t.Fatalf("the other has listed at %d: %v", page.Revision, err)
		}
		if any, err := a.List(t.Context(), store.ListOptions{At: store.Any}); err != nil || any.Revision < page.Revision {
			t.Fatalf("reached %d, then any state is %d, %v", page.Revision, any.Revision, err)
		}
	}
}

func TestCountersOfTwoLoseNothing(t *testing.T) {
	a, b, _ := pair(t)
	const each = 60
	var work sync.WaitGroup
	for _, st := range []store.Store{a, a, b, b} {
		work.Go(func() {
			for range each {
				for {
					guard, n := store.Guard{Key: tally}, 0
					if rec, err := st.Get(t.Context(), tally, 0); err == nil {
						guard.Revision = rec.Revision
						n, _ = strconv.Atoi(string(rec.Value))
					} else if !errors.Is(err, store.ErrNotFound) {
						t.Error(err)
						return
					}
					_, err := st.Commit(t.Context(), store.Txn{Guards: []store.Guard{guard}, Writes: []store.Record{{Key: tally, Value: []byte(strconv.Itoa(n + 1))}}})
					if moved := (*store.GuardError)(nil); errors.As(err, &moved) {
						if rec, err := st.Get(t.Context(), tally, store.Any); err != nil || rec.Revision < moved.Current {
							t.Errorf("refused for %d, then any state has %d, %v", moved.Current, rec.Revision, err)
						}
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					break
				}
			}
		})
	}
	work.Wait()
	if rec, err := b.Get(t.Context(), tally, 0); err != nil || string(rec.Value) != strconv.Itoa(4*each) {
		t.Errorf("the tally is %s, %v, want %d", rec.Value, err, 4*each)
	}
}

func TestTwoKeepWithinOneLimit(t *testing.T) {
	a, b, _ := pair(t)
	const room = 25
	limit := store.Limit{Collection: "team/", Most: store.Usage{Records: room, Bytes: 2 * room}}
	var work sync.WaitGroup
	for i, st := range []store.Store{a, b, a, b} {
		work.Go(func() {
			for n := range 20 {
				key := store.Key(fmt.Sprintf("team/%d-%d", i, n))
				_, err := st.Commit(t.Context(), store.Txn{Limits: []store.Limit{limit}, Writes: []store.Record{{Key: key, Value: []byte("xx")}}})
				if over := (*store.LimitError)(nil); err != nil && !errors.As(err, &over) {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for _, st := range []store.Store{a, b} {
		if used, err := st.Usage(t.Context(), "team/"); err != nil || used != limit.Most {
			t.Errorf("the collection holds %v, %v, want %v", used, err, limit.Most)
		}
	}
}

// Both watch while both write, and others too.
func TestWatchersOfBothSeeEverythingOnceAndInOrder(t *testing.T) {
	a, b, cluster := pair(t)
	foreign := others(t, cluster)
	start := put(t, a, "start", "1")
	const each = 100
	var work sync.WaitGroup
	for i, st := range []store.Store{a, b} {
		work.Go(func() {
			for n := range each {
				put(t, st, store.Key(fmt.Sprintf("k%d", i)), strconv.Itoa(n))
				_, _ = foreign.Put(t.Context(), "/elsewhere", "x") // to be in between
			}
		})
		for range 4 {
			work.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				w, err := st.Watch(ctx, "k", start)
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Close()
				next := map[store.Key]int{}
				for last := start; next["k0"]+next["k1"] < 2*each; {
					events, err := w.Next(ctx)
					if err != nil {
						t.Errorf("after %v: %v", next, err)
						return
					}
					for _, e := range events {
						if e.Record.Revision <= last || string(e.Record.Value) != strconv.Itoa(next[e.Record.Key]) {
							t.Errorf("%s=%s at %d after %v at %d", e.Record.Key, e.Record.Value, e.Record.Revision, next, last)
							return
						}
						last = e.Record.Revision
						next[e.Record.Key]++
					}
				}
			})
		}
	}
	work.Wait()
}

func TestACompactionByOthersGivesUpStatesAndNoHistory(t *testing.T) {
	a, b, cluster := pair(t)
	first := put(t, a, "k", "1")
	live, err := b.Watch(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	last := put(t, a, "k", "2")
	put(t, a, "k", "3")
	foreign := others(t, cluster)
	now, err := foreign.Put(t.Context(), "/elsewhere", "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := foreign.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	for _, st := range []store.Store{a, b} {
		if rec, err := st.Get(t.Context(), "k", 0); err != nil || string(rec.Value) != "3" {
			t.Errorf("it is %s, %v, want 3", rec.Value, err)
		}
		if _, err := st.Get(t.Context(), "k", first); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("an old state: %v, want ErrCompacted", err)
		}
		heads, err := st.History(t.Context(), "k", 0)
		if err != nil || len(heads) != 3 {
			t.Errorf("%d versions, %v, want 3", len(heads), err)
		}
		if rec, err := st.Version(t.Context(), "k", last); err != nil || string(rec.Value) != "2" {
			t.Errorf("version %d is %s, %v, want 2", last, rec.Value, err)
		}
		w, err := st.Watch(t.Context(), "", first)
		if err == nil {
			_, err = w.Next(t.Context())
		}
		if !errors.Is(err, store.ErrCompacted) {
			t.Errorf("a watch from an old state: %v, want ErrCompacted", err)
		}
	}
	put(t, a, "k", "4")
	sees(t, live, 2, 4)
}

// The store's own compactions say what the history lacks, also where others are ahead of them.
func TestTheHistoryIsTrimmedByItsOwnCompactionsAlone(t *testing.T) {
	a, b, cluster := pair(t) // they keep three versions at least
	first := put(t, a, "k", "1")
	for n := 2; n <= 6; n++ {
		put(t, a, "k", strconv.Itoa(n))
	}
	own := put(t, a, "end", "1")
	foreign := others(t, cluster)
	now, err := foreign.Put(t.Context(), "/elsewhere", "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := foreign.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	late := open(t, etcd.Options{Endpoints: []string{cluster}, HistoryLimit: 3, DeletedRetention: -1}) // it learns of that when it opens
	if w, err := b.Watch(t.Context(), "", first); err == nil {                                         // and this one now
		_, err = w.Next(t.Context())
		if !errors.Is(err, store.ErrCompacted) {
			t.Fatalf("a watch from an old state: %v, want ErrCompacted", err)
		}
	}
	all := []store.Store{a, b, late}
	versions := func(want int) {
		t.Helper()
		for i, st := range all {
			if heads, err := st.History(t.Context(), "k", 0); err != nil || len(heads) != want {
				t.Errorf("store %d has %d versions, %v, want %d", i, len(heads), err, want)
			}
		}
	}
	versions(6)
	for _, st := range all {
		if err := st.(*etcd.Store).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	versions(6)
	if err := late.Compact(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	versions(3)
}

func TestWhatIsGivenUpIsRemovedAndTheOtherKnows(t *testing.T) {
	a, b, cluster := pair(t)
	long := string(make([]byte, 50_000))
	for n := range 10 {
		put(t, a, "k", long+strconv.Itoa(n))
	}
	put(t, a, "gone", long)
	if _, err := a.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: "gone", Deleted: true}}}); err != nil {
		t.Fatal(err)
	}
	at := put(t, a, "end", "1")
	if err := a.Compact(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if err := a.(*etcd.Store).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context(), "k", 0); err != nil { // it has then seen the note
		t.Fatal(err)
	}
	if got := b.State().Compacted; got != at {
		t.Errorf("the other takes %d for compacted, want %d", got, at)
	}
	heads, err := b.History(t.Context(), "k", 0)
	if err != nil || len(heads) != 3 {
		t.Errorf("%d versions, %v, want 3", len(heads), err)
	}
	for i, h := range heads {
		if rec, err := b.Version(t.Context(), "k", h.Revision); err != nil || string(rec.Value) != long+strconv.Itoa(9-i) {
			t.Errorf("version %d of them: %v", i, err)
		}
	}
	if _, err := b.History(t.Context(), "gone", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of what was deleted: %v, want ErrNotFound", err)
	}
	left, err := others(t, cluster).Get(t.Context(), "/cmserver/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	// k: o, q shared, 3 × history, 3 × v; end: o, history; meta: format, compacted.
	if len(left.Kvs) != 1+1+3+3+2+2 {
		for _, kv := range left.Kvs {
			t.Logf("%q", kv.Key)
		}
		t.Errorf("%d keys are left, want 12", len(left.Kvs))
	}
}
