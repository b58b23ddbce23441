package local

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"example.com/cmctl/pkg/server/store"
)

// hub hands each batch of events to the watchers that have caught up. A watcher
// begins by reading from disk what it missed, without being known here, and joins
// when it has read all that was delivered: under mu, so that the next delivery is
// the first that it gets. That leaves no gap and needs no buffer before.
type hub struct {
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
	watchers map[*watcher]struct{}
	events   []store.Event // of the batch being delivered
	bytes    int
}

// deliver gives the events of a batch to the watchers, and doesn't wait for any.
// make is called only if somebody watches.
func (h *hub) deliver(current store.Revision, make func() ([]store.Event, error)) {
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
func (h *hub) sortLocked(events []store.Event) {
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

func (h *hub) pushLocked(g *group) {
	b := batch{events: slices.Clip(g.events), bytes: g.bytes}
	g.events, g.bytes = nil, 0
	for w := range g.watchers {
		if !w.push(b) {
			h.removeLocked(w)
		}
	}
}

// join makes w live if it has read everything that was delivered.
func (h *hub) join(w *watcher) (bool, error) {
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
		g = &group{prefix: w.prefix, watchers: map[*watcher]struct{}{}}
		h.groups[w.prefix] = g
		h.measureLocked()
	}
	g.watchers[w] = struct{}{}
	return true, nil
}

func (h *hub) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(w)
}

func (h *hub) removeLocked(w *watcher) {
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

func (h *hub) measureLocked() {
	h.lengths = h.lengths[:0]
	for prefix := range h.groups {
		if !slices.Contains(h.lengths, len(prefix)) {
			h.lengths = append(h.lengths, len(prefix))
		}
	}
}

// closeAll ends every watch and lets nobody join.
func (h *hub) closeAll(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = err
	h.endAllLocked(err)
}

func (h *hub) endAllLocked(err error) {
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

// watcher is a store.Watcher. First it reads the backlog, then it is live: known
// to the hub, which fills its queue.
type watcher struct {
	s      *Store
	prefix store.Key

	// Of the goroutine that calls Next and Progress.
	pos  store.Revision // Next has returned everything up to here
	live bool

	// wake tells Next that there is something in what mu guards. It has room for
	// one signal; a second says no more than the first.
	wake    chan struct{}
	mu      sync.Mutex // guards what follows
	queue   []batch
	events  int // in queue
	bytes   int
	stopped error // why the watch has ended
}

var _ store.Watcher = (*watcher)(nil)

// Watch returns the changes under prefix after the revision from. See store.Store.
func (s *Store) Watch(ctx context.Context, prefix store.Key, from store.Revision) (store.Watcher, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	v := s.view.Load()
	if from != 0 && from < v.compacted {
		return nil, store.ErrCompacted
	}
	w := &watcher{s: s, prefix: prefix, pos: from, wake: make(chan struct{}, 1)}
	if from == 0 {
		w.pos = v.current
	}
	var err error
	if w.live, err = s.hub.join(w); err != nil {
		return nil, err
	}
	return w, nil
}

// Next waits for changes. The events are shared with other watchers and must not
// be modified.
func (w *watcher) Next(ctx context.Context) ([]store.Event, error) {
	for {
		if err := w.ended(); err != nil {
			return nil, err
		}
		var events []store.Event
		var err error
		if w.live {
			events, err = w.take(ctx)
		} else {
			events, err = w.catchUp(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				w.end(err)
			}
			return nil, err
		}
		if len(events) > 0 {
			return events, nil
		}
	}
}

// take returns the next of what the hub delivered, or nothing after a wait.
func (w *watcher) take(ctx context.Context) ([]store.Event, error) {
	w.mu.Lock()
	if w.stopped != nil {
		defer w.mu.Unlock()
		return nil, w.stopped
	}
	if len(w.queue) > 0 {
		b := w.queue[0]
		w.queue[0] = batch{}
		w.queue = w.queue[1:]
		w.events -= len(b.events)
		w.bytes -= b.bytes
		w.mu.Unlock()
		return w.skipSeen(b.events), nil
	}
	w.mu.Unlock()
	select {
	case <-w.wake:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// skipSeen leaves out what the backlog had, or what a watch from a future
// revision is not to see.
func (w *watcher) skipSeen(events []store.Event) []store.Event {
	for len(events) > 0 && events[0].Record.Revision <= w.pos {
		events = events[1:]
	}
	if n := len(events); n > 0 {
		w.pos = events[n-1].Record.Revision
	}
	return events
}

// push is false if the watcher is to be forgotten.
func (w *watcher) push(b batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != nil {
		return false
	}
	tooMuch := w.events+len(b.events) > w.s.opts.WatchBuffer || w.bytes+b.bytes > w.s.opts.watchBytes
	if tooMuch && len(w.queue) > 0 { // one batch always fits: waiting would not make it smaller
		w.stopLocked(store.ErrSlow)
		return false
	}
	w.queue = append(w.queue, b)
	w.events += len(b.events)
	w.bytes += b.bytes
	w.signal()
	return true
}

func (w *watcher) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked(err)
}

func (w *watcher) stopLocked(err error) {
	if w.stopped == nil {
		w.stopped = err
	}
	w.queue = nil
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

func (w *watcher) end(err error) {
	w.stop(err)
	w.s.hub.remove(w)
}

// Progress is a revision up to which Next has returned everything.
func (w *watcher) Progress() store.Revision {
	if !w.live {
		return w.pos
	}
	// In this order: what was delivered before the queue is seen empty has been
	// taken out of it.
	delivered := store.Revision(w.s.hub.delivered.Load())
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 || w.stopped != nil {
		return w.pos
	}
	return max(w.pos, delivered)
}

// Close ends the watch and wakes Next.
func (w *watcher) Close() { w.end(store.ErrClosed) }
