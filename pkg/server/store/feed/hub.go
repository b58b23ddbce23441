// Package feed hands the changes of a store to those who watch it. A store delivers each
// batch of events to a Hub; a watcher begins with what the store has of the past, its
// backlog, and joins the hub without gap or repetition once it has read all of that.
package feed

import (
	"slices"
	"sync"
	"sync/atomic"

	"example.com/cmctl/pkg/server/store"
)

// Hub hands each batch of events to the watchers that have caught up. A watcher begins
// by reading its backlog, without being known here, and joins when it has read all that was delivered: under mu, so that the next delivery is
// the first that it gets. That leaves no gap and needs no buffer before.
type Hub struct {
	mu      sync.Mutex           // guards what follows; taken before a watcher's mu
	groups  map[store.Key]*group // by prefix
	lengths []int                // the distinct lengths of the prefixes
	closed  error                // why nobody may join any more
	touched []*group             // by the batch being delivered

	// delivered is the revision up to which every watcher here has been given its
	// events. It is set under mu, after the watchers have them.
	delivered atomic.Int64
}

// group is the watchers of one prefix. They share the slices of events.
type group struct {
	prefix   store.Key
	watchers map[*Watcher]struct{}
	events   []store.Event // of the batch being delivered
	bytes    int
}

// Start tells up to which revision there is a past. It comes before everything else.
func (h *Hub) Start(current store.Revision) { h.delivered.Store(int64(current)) }

// Deliver gives the events of a batch to the watchers, and doesn't wait for any.
// make is called only if somebody watches.
func (h *Hub) Deliver(current store.Revision, make func() ([]store.Event, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.groups) > 0 {
		events, err := make()
		if err != nil {
			h.endAllLocked(err)
		}
		h.sortLocked(events)
		for _, g := range h.touched {
			h.pushLocked(g)
		}
		h.touched = h.touched[:0]
	}
	h.delivered.Store(int64(current))
}

// sortLocked puts each event into the groups whose prefix it has. Prefixes of one
// length are found by one lookup, so the cost doesn't grow with the watchers.
func (h *Hub) sortLocked(events []store.Event) {
	for i := range events {
		e := &events[i]
		for _, n := range h.lengths {
			if n > len(e.Record.Key) {
				continue
			}
			g := h.groups[e.Record.Key[:n]]
			if g == nil {
				continue
			}
			if len(g.events) == 0 {
				h.touched = append(h.touched, g)
			}
			g.events = append(g.events, *e)
			g.bytes += len(e.Record.Value)
			if e.Prev != nil {
				g.bytes += len(e.Prev.Value)
			}
		}
	}
}

func (h *Hub) pushLocked(g *group) {
	b := batch{events: slices.Clip(g.events), bytes: g.bytes}
	g.events, g.bytes = nil, 0
	for w := range g.watchers {
		if !w.push(b) {
			h.removeLocked(w)
		}
	}
}

// join makes w live if it has read everything that was delivered.
func (h *Hub) join(w *Watcher) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed != nil {
		return false, h.closed
	}
	if int64(w.pos) < h.delivered.Load() {
		return false, nil
	}
	if h.groups == nil {
		h.groups = map[store.Key]*group{}
	}
	g := h.groups[w.prefix]
	if g == nil {
		g = &group{prefix: w.prefix, watchers: map[*Watcher]struct{}{}}
		h.groups[w.prefix] = g
		h.measureLocked()
	}
	g.watchers[w] = struct{}{}
	return true, nil
}

func (h *Hub) remove(w *Watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(w)
}

func (h *Hub) removeLocked(w *Watcher) {
	g := h.groups[w.prefix]
	if g == nil {
		return
	}
	delete(g.watchers, w)
	if len(g.watchers) == 0 {
		delete(h.groups, w.prefix)
		h.measureLocked()
	}
}

func (h *Hub) measureLocked() {
	h.lengths = h.lengths[:0]
	for prefix := range h.groups {
		if !slices.Contains(h.lengths, len(prefix)) {
			h.lengths = append(h.lengths, len(prefix))
		}
	}
}

// Close ends every watch and lets nobody join.
func (h *Hub) Close(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = err
	h.endAllLocked(err)
}

func (h *Hub) endAllLocked(err error) {
	for _, g := range h.groups {
		for w := range g.watchers {
			w.stop(err)
		}
	}
	h.groups, h.lengths = nil, nil
}

// batch is what one delivery has for a prefix. It is shared and never changed.
type batch struct {
	events []store.Event
	bytes  int
}
