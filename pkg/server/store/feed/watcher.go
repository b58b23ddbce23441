package feed

import (
	"context"
	"sync"

	"example.com/cmctl/pkg/server/store"
)

// Backlog is what a store has of the past, for one watcher, which alone uses it.
type Backlog interface {
	// Read returns the next events after a revision, and the revision up to which they
	// are all. It may wait for them. That it is after still means that it knows of no
	// later one: the watcher then joins the hub, unless more was delivered meanwhile.
	Read(ctx context.Context, after store.Revision) (events []store.Event, upTo store.Revision, err error)
	// Close is called once, when the watcher has joined or has ended. It may come from
	// any goroutine, and makes a Read that waits return.
	Close()
}

// Limits say how far a watcher may be behind before it is ended.
type Limits struct {
	Events int // that wait for it
	Bytes  int // of their values
}

// Watcher is a store.Watcher. First it reads its backlog, then it is live: known to the
// hub, which fills its queue.
type Watcher struct {
	hub     *Hub
	prefix  store.Key
	limits  Limits
	backlog Backlog
	done    sync.Once // backlog is closed

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

var _ store.Watcher = (*Watcher)(nil)

// Watch makes a watcher of the changes under prefix after a revision. It is live at once if
// nothing later was delivered; else it reads backlog, which is closed in any case.
func (h *Hub) Watch(prefix store.Key, after store.Revision, limits Limits, backlog Backlog) (*Watcher, error) {
	w := &Watcher{hub: h, prefix: prefix, limits: limits, backlog: backlog, pos: after, wake: make(chan struct{}, 1)}
	if err := w.join(); err != nil {
		return nil, err
	}
	return w, nil
}

// join makes it live if it may be.
func (w *Watcher) join() error {
	var err error
	if w.live, err = w.hub.join(w); w.live || err != nil {
		w.closeBacklog()
	}
	return err
}

func (w *Watcher) closeBacklog() { w.done.Do(w.backlog.Close) }

// catchUp reads what comes next of the backlog, or joins the hub if nothing is left.
func (w *Watcher) catchUp(ctx context.Context) ([]store.Event, error) {
	events, upTo, err := w.backlog.Read(ctx, w.pos)
	if err != nil {
		return nil, err
	}
	if upTo == w.pos {
		return nil, w.join()
	}
	w.pos = upTo
	return events, nil
}

// Next waits for changes. The events are shared with other watchers and must not
// be modified.
func (w *Watcher) Next(ctx context.Context) ([]store.Event, error) {
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
func (w *Watcher) take(ctx context.Context) ([]store.Event, error) {
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
func (w *Watcher) skipSeen(events []store.Event) []store.Event {
	for len(events) > 0 && events[0].Record.Revision <= w.pos {
		events = events[1:]
	}
	if n := len(events); n > 0 {
		w.pos = events[n-1].Record.Revision
	}
	return events
}

// push is false if the watcher is to be forgotten.
func (w *Watcher) push(b batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != nil {
		return false
	}
	tooMuch := w.events+len(b.events) > w.limits.Events || w.bytes+b.bytes > w.limits.Bytes
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

func (w *Watcher) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopLocked(err)
}

func (w *Watcher) stopLocked(err error) {
	if w.stopped == nil {
		w.stopped = err
	}
	w.queue = nil
	w.signal()
}

func (w *Watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watcher) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

func (w *Watcher) end(err error) {
	w.stop(err)
	w.hub.remove(w)
	w.closeBacklog()
}

// Progress is a revision up to which Next has returned everything.
func (w *Watcher) Progress() store.Revision {
	if !w.live {
		return w.pos
	}
	// In this order: what was delivered before the queue is seen empty has been
	// taken out of it.
	delivered := store.Revision(w.hub.delivered.Load())
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 || w.stopped != nil {
		return w.pos
	}
	return max(w.pos, delivered)
}

// Close ends the watch and wakes Next.
func (w *Watcher) Close() { w.end(store.ErrClosed) }
