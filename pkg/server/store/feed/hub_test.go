package feed

import (
	"context"
	"errors"
	"slices"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

// past is a backlog of revisions of one key, two at a time.
type past struct {
	revisions []store.Revision
	closed    int
}

func (p *past) Read(_ context.Context, after store.Revision) ([]store.Event, store.Revision, error) {
	var events []store.Event
	for _, rev := range p.revisions {
		if rev > after && len(events) < 2 {
			events, after = append(events, event("a/1", rev)), rev
		}
	}
	return events, after, nil
}

func (p *past) Close() { p.closed++ }

func event(key store.Key, rev store.Revision) store.Event {
	return store.Event{Record: store.Record{Key: key, Revision: rev, Value: []byte("x")}}
}

func deliver(h *Hub, events ...store.Event) {
	h.Deliver(events[len(events)-1].Record.Revision, func() ([]store.Event, error) { return events, nil })
}

func watchOf(t *testing.T, h *Hub, prefix store.Key, after store.Revision, p *past) *Watcher {
	t.Helper()
	w, err := h.Watch(prefix, after, Limits{Events: 4, Bytes: 1 << 20}, p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// next are the revisions of the next n events.
func next(t *testing.T, w *Watcher, n int) []store.Revision {
	t.Helper()
	var got []store.Revision
	for len(got) < n {
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			got = append(got, e.Record.Revision)
		}
	}
	return got
}

// Between what a watcher reads of the past and what it is given live there is no gap, and
// nothing comes twice.
func TestFromTheBacklogToTheHub(t *testing.T) {
	var h Hub
	h.Start(5)
	p := &past{revisions: []store.Revision{2, 3, 4, 5}}
	w := watchOf(t, &h, "a/", 1, p)
	if got := next(t, w, 2); !slices.Equal(got, []store.Revision{2, 3}) {
		t.Errorf("first come %v", got)
	}
	deliver(&h, event("a/1", 6)) // while it is still reading
	p.revisions = append(p.revisions, 6)
	if got := next(t, w, 3); !slices.Equal(got, []store.Revision{4, 5, 6}) {
		t.Errorf("then come %v", got)
	}
	if p.closed != 0 {
		t.Error("the backlog is closed before it was read to its end")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) { // finds nothing, and joins
		t.Errorf("it is %v", err)
	}
	deliver(&h, event("a/1", 7), event("b/1", 7))
	if got := next(t, w, 1); !slices.Equal(got, []store.Revision{7}) {
		t.Errorf("live come %v", got)
	}
	w.Close()
	w.Close()
	if p.closed != 1 {
		t.Errorf("the backlog is closed %d times", p.closed)
	}
}

func TestABacklogIsClosedHoweverItsWatcherEnds(t *testing.T) {
	for name, end := range map[string]func(*Hub, *Watcher){
		"it is closed":   func(_ *Hub, w *Watcher) { w.Close() },
		"it joins":       func(_ *Hub, w *Watcher) { next(t, w, 2) },
		"the hub closes": func(h *Hub, w *Watcher) { h.Close(store.ErrClosed); next(t, w, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			var h Hub
			h.Start(3)
			p := &past{revisions: []store.Revision{2, 3}}
			w := watchOf(t, &h, "a/", 1, p)
			end(&h, w)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = w.Next(ctx)
			if p.closed != 1 {
				t.Errorf("it is closed %d times", p.closed)
			}
		})
	}
	var h Hub
	h.Close(store.ErrClosed)
	p := &past{}
	if _, err := h.Watch("", 0, Limits{}, p); !errors.Is(err, store.ErrClosed) || p.closed != 1 {
		t.Errorf("a hub that is closed: %v, closed %d times", err, p.closed)
	}
}

// Who does not take what comes is forgotten, and nobody else notices.
func TestAFullBufferIsNotYetTooMuch(t *testing.T) {
	var h Hub
	w, other := watchOf(t, &h, "a/", 0, &past{}), watchOf(t, &h, "b/", 0, &past{})
	for rev := range store.Revision(4) {
		deliver(&h, event("a/1", rev+1))
	}
	if err := w.ended(); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	deliver(&h, event("a/1", 5), event("b/1", 5))
	for range 2 {
		if _, err := w.Next(t.Context()); !errors.Is(err, store.ErrSlow) {
			t.Errorf("it is %v", err)
		}
	}
	if got := next(t, other, 1); !slices.Equal(got, []store.Revision{5}) {
		t.Errorf("the other has %v", got)
	}
	if len(h.groups) != 1 {
		t.Errorf("%d groups are left, want the other's", len(h.groups))
	}
}
