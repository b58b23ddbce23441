package etcd_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
)

const tally store.Key = "configmaps/team/tally"

// through is a store on a cluster behind gates.
func through(t *testing.T, gates ...*gate) store.Store {
	t.Helper()
	o := etcd.Options{Timeout: 3 * time.Second, HistoryLimit: 100}
	for _, g := range gates {
		o.Endpoints = append(o.Endpoints, g.address)
	}
	return open(t, o)
}

// raise adds one to the tally, and demands that it is one more than told before.
func raise(t *testing.T, st store.Store, to int) store.Revision {
	t.Helper()
	guard := store.Guard{Key: tally}
	switch rec, err := st.Get(t.Context(), tally, 0); {
	case errors.Is(err, store.ErrNotFound) && to == 1:
	case err != nil:
		t.Fatalf("before %d: %v", to, err)
	case string(rec.Value) != strconv.Itoa(to-1):
		t.Fatalf("the tally is %s, want %d", rec.Value, to-1)
	default:
		guard.Revision = rec.Revision
	}
	rev, err := st.Commit(t.Context(), store.Txn{Guards: []store.Guard{guard}, Writes: []store.Record{{Key: tally, Value: []byte(strconv.Itoa(to))}}})
	if err != nil {
		t.Fatalf("raise to %d: %v", to, err)
	}
	return rev
}

// madeOnce demands that the tally has had each value once.
func madeOnce(t *testing.T, st store.Store, last int) {
	t.Helper()
	heads, err := st.History(t.Context(), tally, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range heads {
		rec, err := st.Version(t.Context(), tally, h.Revision)
		if err != nil || string(rec.Value) != strconv.Itoa(last-i) {
			t.Errorf("version %d is %s, %v, want %d", h.Revision, rec.Value, err, last-i)
		}
	}
	if len(heads) != last {
		t.Errorf("%d versions, want %d", len(heads), last)
	}
}

func sees(t *testing.T, w store.Watcher, from, to int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for from <= to {
		events, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("before %d: %v", from, err)
		}
		for _, e := range events {
			if string(e.Record.Value) != strconv.Itoa(from) {
				t.Fatalf("the watch has %s, want %d", e.Record.Value, from)
			}
			from++
		}
	}
}

func TestAMemberThatStandsStillFailsNothing(t *testing.T) {
	cluster := embedded(t)
	for _, name := range []string{"the first", "the second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gates := []*gate{newGate(t, cluster), newGate(t, cluster)}
			o := etcd.Options{Timeout: 3 * time.Second, HistoryLimit: 100, Endpoints: []string{gates[0].address, gates[1].address}}
			o.Prefix = "/" + strconv.Itoa(len(name))
			st, err := etcd.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			w, err := st.Watch(t.Context(), "", 0)
			if err != nil {
				t.Fatal(err)
			}
			raise(t, st, 1)
			still := gates[len(name)%2]
			still.pause()
			for n := 2; n <= 6; n++ {
				raise(t, st, n)
			}
			sees(t, w, 1, 6)
			if err := st.Healthy(); err != nil {
				t.Errorf("with one member of two: %v", err)
			}
			// What was under way in it is not made a second time.
			still.resume()
			raise(t, st, 7)
			madeOnce(t, st, 7)
			sees(t, w, 7, 7)
		})
	}
}

func TestAWriteWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	cluster := embedded(t)
	gates := []*gate{newGate(t, cluster), newGate(t, cluster)}
	st := through(t, gates...)
	raise(t, st, 1)
	gates[0].answers.hold()
	for n := 2; n <= 6; n++ {
		raise(t, st, n)
	}
	gates[0].answers.letGo()
	madeOnce(t, st, 6)
}

func TestAClusterThatIsAwayIsToldAndComesBack(t *testing.T) {
	cluster := embedded(t)
	g := newGate(t, cluster)
	st := through(t, g)
	raise(t, st, 1)
	w, err := st.Watch(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	g.pause()
	if _, err := st.Get(t.Context(), tally, 0); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("a read of the present: %v, want ErrUnreachable", err)
	}
	_, err = st.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: "other", Value: []byte("x")}}})
	if !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("a write: %v, want ErrUnreachable or ErrUnknown", err)
	}
	if err := st.Healthy(); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("the store is %v, want ErrUnreachable", err)
	}
	if rec, err := st.Get(t.Context(), tally, store.Any); err != nil || string(rec.Value) != "1" {
		t.Errorf("a read of any state: %s, %v, want 1", rec.Value, err)
	}
	g.resume()
	eventually(t, "the store is healthy", func() bool { return st.Healthy() == nil })
	raise(t, st, 2)
	for seen := ""; seen != "2"; { // what was open may have come before
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = string(events[len(events)-1].Record.Value)
	}
}

// A cluster that was restored from a backup has other data at the versions that clients and
// servers know.
func TestAClusterThatGoesBackIsNotBelieved(t *testing.T) {
	g := newGate(t, embedded(t))
	st := through(t, g)
	for n := 1; n <= 10; n++ {
		raise(t, st, n)
	}
	w, err := st.Watch(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	earlier := embedded(t)
	open(t, etcd.Options{Endpoints: []string{earlier}}) // it is a store as well
	g.move(earlier)
	eventually(t, "the store says so", func() bool { return errors.Is(st.Healthy(), store.ErrFailed) })
	for _, at := range []store.Revision{0, store.Any} {
		if rec, err := st.Get(t.Context(), tally, at); !errors.Is(err, store.ErrFailed) {
			t.Errorf("a read at %d: %s, %v, want ErrFailed", at, rec.Value, err)
		}
	}
	_, err = st.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: "k", Value: []byte("x")}}})
	if !errors.Is(err, store.ErrFailed) {
		t.Errorf("a write: %v, want ErrFailed", err)
	}
	if _, err := w.Next(t.Context()); !errors.Is(err, store.ErrFailed) {
		t.Errorf("a watch: %v, want ErrFailed", err)
	}
}

// A write without a guard has nothing in it that would refuse it when it comes late. The mark
// by which it was settled does.
func TestAWriteThatComesLateIsNotMade(t *testing.T) {
	cluster := embedded(t)
	gates := []*gate{newGate(t, cluster), newGate(t, cluster)}
	st := through(t, gates...)
	for round := range 6 {
		for _, g := range gates {
			g.requests.hold()
			first := put(t, st, "k", "early") // by the other gate, if it was to go by this one
			last := put(t, st, "k", "late")
			g.requests.letGo()
			eventually(t, "all members are used again", func() bool { return st.Healthy() == nil })
			for range 20 { // what was held back is through by then
				put(t, st, "other", "x")
			}
			rec, err := st.Get(t.Context(), "k", 0)
			if err != nil || rec.Revision != last || first >= last {
				t.Fatalf("round %d: %s at %d, %v, want late at %d", round, rec.Value, rec.Revision, err, last)
			}
		}
	}
}
