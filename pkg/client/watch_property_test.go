package client_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
)

// durable is a server that can be restarted on what it has stored.
type durable struct {
	tb    testing.TB
	fs    vfs.FS
	store *local.Store
	api   atomic.Pointer[http.Handler]
}

func newDurable(tb testing.TB) *durable {
	d := &durable{tb: tb, fs: vfs.NewMem()}
	d.open()
	tb.Cleanup(d.close)
	return d
}

func (d *durable) open() {
	d.tb.Helper()
	st, err := local.Open(local.Options{Dir: "store", FS: d.fs})
	if err != nil {
		d.tb.Fatal(err)
	}
	h := server.New(server.Options{Store: st}).Handler()
	d.store = st
	d.api.Store(&h)
}

func (d *durable) close() {
	d.tb.Helper()
	if err := d.store.Close(); err != nil {
		d.tb.Error(err)
	}
}

func (d *durable) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*d.api.Load()).ServeHTTP(w, r) }

// However the streams are cut and ended, the server restarted, and the version
// refused: what was delivered adds up to what is there; no version of an object
// comes twice, none comes out of order, and none is missing except where the
// event says that a list was held against what was known.
func TestAWatchMissesNothingAndTellsNothingTwice(t *testing.T) {
	for range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { checkWatch(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func checkWatch(t *testing.T, r *rand.Rand) {
	real := newDurable(t)
	api := newFlaky(real)
	w := writer{t, mapsOf(t, real)}
	history := map[string][]string{} // by name: the versions, "gone" for deletions
	present := map[string]bool{}
	writes := 0
	write := func() {
		writes++
		name := string(rune('a' + r.IntN(4)))
		if present[name] && r.IntN(4) == 0 {
			w.delete(name)
			delete(present, name)
			history[name] = append(history[name], "gone")
			return
		}
		d := w.set(name, fmt.Sprint(writes))
		present[name] = true
		history[name] = append(history[name], d.ResourceVersion())
	}
	for range 3 {
		write()
	}
	before := map[string]int{}
	for name, versions := range history {
		before[name] = len(versions)
	}

	told := make(chan []client.Event, 1) // an empty one stands where it listed anew
	synced := make(chan struct{})
	go func() {
		var events []client.Event
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		relisting := func(n client.WatchNotice) {
			if n.Kind == client.WatchRelisting {
				events = append(events, client.Event{})
			}
		}
		for e, err := range mapsOf(t, api).Watch(ctx, client.WatchOptions{Backoff: quick, Observe: relisting}) {
			if err != nil {
				t.Errorf("the watch ended: %v", err)
				break
			}
			if e.Type == client.Synced {
				close(synced)
				continue
			}
			events = append(events, e)
			if e.Object.Name() == "end" {
				break
			}
		}
		told <- events
	}()
	<-synced
	for range 60 {
		switch r.IntN(8) {
		case 0:
			api.end(errCut)
		case 1:
			api.end(errEnd)
		case 2:
			api.answer(refuseWatch(r.IntN(2) == 0))
			api.end(errCut)
		case 3:
			api.leave()
			real.close()
			real.open()
			api.come(real)
		case 4:
			api.leave()
			write()
			api.come(real)
		default:
			write()
		}
	}
	w.set("end", "")
	events := <-told
	checkSum(t, w.maps, events)
	for name := range history {
		checkOrder(t, name, history[name], before[name], events)
	}
}

// refuseWatch answers the next watch with 410, in one of its two forms.
func refuseWatch(asEvent bool) func(http.ResponseWriter, *http.Request) bool {
	done := atomic.Bool{}
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) || done.Swap(true) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		if asEvent {
			_, _ = io.WriteString(w, `{"type":"ERROR","object":`+expiredStatus+"}\n")
			return true
		}
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, expiredStatus)
		return true
	}
}

// checkSum demands that the events lead to what a list shows.
func checkSum(t *testing.T, m *client.ConfigMaps, events []client.Event) {
	t.Helper()
	sum := map[string]string{}
	for _, e := range events {
		if e.Object == nil {
			continue
		}
		was, ok := sum[e.Object.Name()]
		if ok != (e.Previous != nil) || ok && was != e.Previous.ResourceVersion() {
			t.Errorf("%s of %s: the previous one is %v, known was %q", e.Type, e.Object.Name(), e.Previous, was)
		}
		if ok != (e.Type != client.Added) {
			t.Errorf("%s of %s, which was known: %v", e.Type, e.Object.Name(), ok)
		}
		sum[e.Object.Name()] = e.Object.ResourceVersion()
		if e.Type == client.Deleted {
			delete(sum, e.Object.Name())
		}
	}
	list, err := m.List(t.Context(), client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, d := range list.Items {
		want[d.Name()] = d.ResourceVersion()
	}
	if !maps.Equal(sum, want) {
		t.Errorf("the events add up to %v, the list is %v", sum, want)
	}
}

// checkOrder holds what was told of one object against what was written.
func checkOrder(t *testing.T, name string, written []string, before int, events []client.Event) {
	t.Helper()
	at := max(before-1, 0) // what was there when the watch began
	if before > 0 && written[before-1] == "gone" {
		at = before
	}
	relisted := false // since the last event of this object
	// What came and went before a list is in neither of the two states.
	unseen := func(skipped []string) bool {
		return len(skipped) == 0 || relisted && skipped[len(skipped)-1] == "gone"
	}
	for _, e := range events {
		if e.Object == nil {
			relisted = true
		}
		if e.Object == nil || e.Object.Name() != name {
			continue
		}
		version := e.Object.ResourceVersion()
		if e.Type == client.Deleted {
			version = "gone"
		}
		next := slices.Index(written[at:], version)
		if next < 0 {
			t.Fatalf("%s: %s %s comes twice, out of order or from nowhere, after %d of %v", name, e.Type, version, at, written)
		}
		if !e.Relisted && !unseen(written[at:at+next]) {
			t.Fatalf("%s: %s %s comes without %v before it: %v", name, e.Type, version, written[at:at+next], written)
		}
		at += next + 1
		// Which one of several deletions a list came after is not known.
		relisted = e.Relisted && e.Type == client.Deleted
	}
	if left := written[at:]; !unseen(left) {
		t.Errorf("%s: %v is missing at the end", name, left)
	}
}
