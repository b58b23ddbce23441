package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

const (
	// minWatchTime is how long a watch lasts at least that names no
	// timeoutSeconds; at most it is twice as long. Spread out, watches that began
	// together don't all come back together.
	minWatchTime = 30 * time.Minute
	// bookmarkEvery is how long a client that wants bookmarks waits for one.
	bookmarkEvery = time.Minute
	// lastBookmark is how long before its end a watch has its last bookmark, so
	// that the next one begins where this one ended.
	lastBookmark = 2 * time.Second
	// firstPage is how many objects are read at first for the initial events. While
	// they are small, each page has twice as many, at most largestPage: a client
	// that does not read holds one.
	firstPage   = 4
	largestPage = 64
	pageBytes   = 1 << 20
)

// watch answers GET on the paths that are nothing but watches.
func (s *Server) watch(r *request) (answer, error) {
	o, err := listOptions(r)
	if err != nil {
		return answer{}, err
	}
	return s.follow(r, o)
}

// follow answers a watch. What can be refused is refused here; then the watch is
// a stream, whose errors are events.
func (s *Server) follow(r *request, o *internalversion.ListOptions) (answer, error) {
	sel, err := selectionOf(r, o)
	if err != nil {
		return answer{}, err
	}
	version, err := watchVersion(o)
	if err != nil {
		return answer{}, err
	}
	stream, err := s.render.Stream(r.form, r.resource)
	if err != nil {
		return answer{}, err
	}
	w := &watching{
		server:    s,
		request:   r,
		sender:    senderOf(r.http),
		selection: sel,
		stream:    stream,
		bookmarks: o.AllowWatchBookmarks,
		timeout:   s.faults.WatchTime(r.writer, watchTime(o.TimeoutSeconds)),
	}
	if err := s.watches.admit(w); err != nil {
		return answer{}, err
	}
	if err := w.begin(version, o.SendInitialEvents); err != nil {
		w.close()
		return answer{}, err
	}
	return answer{stream: w}, nil
}

// watchVersion is the version after which a watch begins; 0: none is named.
func watchVersion(o *internalversion.ListOptions) (store.Revision, error) {
	if o.ResourceVersion == "" {
		return 0, nil
	}
	rev, err := parseRevision(o.ResourceVersion)
	if err != nil {
		return 0, types.BadRequest(fmt.Sprintf("resourceVersion: Invalid value: %q: %v", o.ResourceVersion, err))
	}
	return rev, nil
}

// watchTime is how long a watch may last.
func watchTime(seconds *int64) time.Duration {
	if seconds == nil || *seconds == 0 {
		return time.Duration(float64(minWatchTime) * (1 + rand.Float64()))
	}
	return time.Duration(min(*seconds, math.MaxInt64/int64(time.Second))) * time.Second
}

// watching is one watch. It belongs to the goroutine of its request.
type watching struct {
	server  *Server
	request *request
	sender  sender
	selection
	stream    *render.Stream
	bookmarks bool
	timeout   time.Duration

	initial    bool           // the current objects come first
	page       store.Page     // the first of them
	initialEnd bool           // a bookmark says where they end
	from       store.Revision // the changes that are sent come after this
	changes    store.Watcher
	failure    error // why there is nothing to send

	frames frames
}

// begin fixes where the watch starts: what is written once the client has the
// head of the answer is sent as a change.
func (w *watching) begin(version store.Revision, sendInitial *bool) error {
	ctx, st := w.request.context(), w.server.store
	w.initial = sendInitial == nil && version == 0 || sendInitial != nil && *sendInitial
	w.from = version
	var err error
	if w.initial && version > 0 {
		err = w.server.reach(ctx, version)
	}
	switch {
	case err != nil:
	case w.initial:
		w.initialEnd = w.bookmarks && sendInitial != nil
		w.page, err = st.List(ctx, store.ListOptions{Prefix: w.scope(), Limit: firstPage})
		w.from = w.page.Revision
	case version > 0 && w.server.faults.Gone(w.request.writer):
		err = store.ErrCompacted
	default:
		w.changes, err = st.Watch(ctx, w.scope(), version)
	}
	var status *types.StatusError
	switch {
	case errors.Is(err, store.ErrCompacted), errors.As(err, &status):
		w.failure = err // told as an event
	case err != nil:
		return fmt.Errorf("watch %s: %w", w.scope(), err)
	}
	return nil
}

// mediaType is what the head of the answer says.
func (w *watching) mediaType() string { return w.stream.ContentType() }

// run sends the events until the time is over, the client or the server goes, or
// the watch can't go on.
func (w *watching) run(ctx context.Context, rw http.ResponseWriter) {
	ctx, cancel := w.server.watches.start(ctx, w)
	defer cancel()
	defer w.close()
	w.frames.open(ctx, rw)
	defer w.frames.close()
	w.end(ctx, w.send(ctx))
}

// close gives back what the watch holds.
func (w *watching) close() {
	if w.changes != nil {
		w.changes.Close()
	}
	w.server.watches.remove(w)
}

// position is the version up to which everything was sent.
func (w *watching) position() store.Revision {
	if w.changes == nil {
		return w.from
	}
	return w.changes.Progress()
}

// end tells the client why the watch could not go on, where it has to know. A
// client that was too slow just sees the end, as all whose time is over do.
func (w *watching) end(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil, errors.Is(err, errUnsent), errors.Is(err, store.ErrSlow), errors.Is(err, store.ErrClosed):
		return
	case errors.Is(err, store.ErrCompacted):
		err = types.Expired(fmt.Sprintf("too old resource version: %s (%s)", w.position(), w.server.store.State().Compacted))
	}
	status := w.server.statusOf(w.request, err).ErrStatus
	// There is nobody to tell that this could not be told.
	_ = w.frames.add(func(dst []byte) ([]byte, error) { return w.stream.Error(dst, &status) })
	_ = w.frames.flush()
}

// send returns only with an error.
func (w *watching) send(ctx context.Context) error {
	if w.failure != nil {
		return w.failure
	}
	if w.initial {
		if err := w.sendInitial(ctx); err != nil {
			return err
		}
	}
	if err := w.frames.flush(); err != nil { // the head at least
		return err
	}
	due := w.bookmarkAfter(ctx, time.Now())
	for {
		events, err := w.next(ctx, due)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := w.sendChange(e); err != nil {
				return err
			}
		}
		if now := time.Now(); w.bookmarks && !now.Before(due) {
			// A watch from a version that is not reached has come to none yet.
			if at := w.position(); at <= w.server.store.State().Current {
				if err := w.sendBookmark(w.stream.Bookmark, at); err != nil {
					return err
				}
			}
			due = w.bookmarkAfter(ctx, now)
		}
		if err := w.frames.flush(); err != nil {
			return err
		}
	}
}

// next waits for changes; it returns none when a bookmark is due.
func (w *watching) next(ctx context.Context, due time.Time) ([]store.Event, error) {
	if !w.bookmarks {
		return w.changes.Next(ctx)
	}
	wait, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	events, err := w.changes.Next(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return events, err
}

// bookmarkAfter is when the next bookmark is due.
func (w *watching) bookmarkAfter(ctx context.Context, now time.Time) time.Time {
	next := now.Add(bookmarkEvery)
	if end, ok := ctx.Deadline(); ok {
		if last := end.Add(-lastBookmark); last.After(now) && last.Before(next) {
			return last
		}
	}
	return next
}

// sendInitial sends the objects of one state in the order of their keys, then
// follows what changes after it.
func (w *watching) sendInitial(ctx context.Context) error {
	page, size := w.page, firstPage
	w.page = store.Page{} // not to be kept as long as the watch
	for {
		var err error
		for _, rec := range page.Records {
			if !w.matches(rec) {
				continue
			}
			if err := w.sendObject(watch.Added, rec, rec.Revision); err != nil {
				return err
			}
		}
		if page.Remaining == 0 || len(page.Records) == 0 {
			break
		}
		last := page.Records[len(page.Records)-1].Key
		size = nextPage(page, size)
		page, err = w.server.store.List(ctx, store.ListOptions{Prefix: w.scope(), After: last, At: w.from, Limit: size})
		if err != nil {
			return err
		}
	}
	var err error
	if w.changes, err = w.server.store.Watch(ctx, w.scope(), w.from); err != nil {
		return err
	}
	if w.initialEnd {
		return w.sendBookmark(w.stream.InitialEventsEnd, w.from)
	}
	return nil
}

// nextPage is how many objects to read after a page of so many.
func nextPage(page store.Page, size int) int {
	largest := 1
	for _, rec := range page.Records {
		largest = max(largest, len(rec.Value))
	}
	return max(1, min(2*size, largestPage, pageBytes/largest))
}

// sendChange sends what a change is to a client that sees the selected objects
// only: what comes among them is added, what leaves is deleted, with the content
// that it had and the version in which it left.
func (w *watching) sendChange(e store.Event) error {
	was := e.Prev != nil && w.matches(*e.Prev)
	is := !e.Record.Deleted && w.matches(e.Record)
	switch version := e.Record.Revision; {
	case is && was:
		return w.sendObject(watch.Modified, e.Record, version)
	case is:
		return w.sendObject(watch.Added, e.Record, version)
	case was:
		return w.sendObject(watch.Deleted, *e.Prev, version)
	}
	return nil
}

func (w *watching) sendObject(event watch.EventType, rec store.Record, version store.Revision) error {
	item := render.Item{Encoded: encoded(w.resource, rec), Version: version.String()}
	if len(rec.Value) > frameBytes {
		return w.frames.addShared(func() ([]byte, error) { return w.stream.Shared(event, item) })
	}
	return w.frames.add(func(dst []byte) ([]byte, error) { return w.stream.Event(dst, event, item) })
}

func (w *watching) sendBookmark(mark func([]byte, string) ([]byte, error), version store.Revision) error {
	return w.frames.add(func(dst []byte) ([]byte, error) { return mark(dst, version.String()) })
}
