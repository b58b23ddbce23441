package client_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

// flaky is a server whose streams can be cut, which can be away, answer with
// 410, and be replaced.
type flaky struct {
	mu       sync.Mutex // guards what follows
	api      http.Handler
	away     bool
	before   func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
	streams  map[int]context.CancelCauseFunc
	next     int
	requests []string
}

func newFlaky(api http.Handler) *flaky {
	return &flaky{api: api, streams: map[int]context.CancelCauseFunc{}}
}

// errEnd ends a stream as if its time were over; any other cause cuts it.
var errEnd, errCut = fmt.Errorf("in good order"), fmt.Errorf("cut")

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.String())
	api, away, before := f.api, f.away, f.before
	id := f.next
	f.next++
	f.streams[id] = cancel
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.streams, id)
		f.mu.Unlock()
	}()
	if away {
		panic(http.ErrAbortHandler)
	}
	if before != nil && before(w, r) {
		return
	}
	api.ServeHTTP(w, r.WithContext(ctx))
	if context.Cause(ctx) == errCut {
		panic(http.ErrAbortHandler)
	}
}

// end ends all that is under way.
func (f *flaky) end(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.streams {
		cancel(why)
	}
}

// leave lets all requests fail until come.
func (f *flaky) leave() {
	f.mu.Lock()
	f.away = true
	f.mu.Unlock()
	f.end(errCut)
}

func (f *flaky) come(api http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.api = false, api
}

// answer puts a function before the server. It returns true if it has answered.
func (f *flaky) answer(before func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// seen counts the requests whose text has all the parts.
func (f *flaky) seen(parts ...string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(r, p) }) {
			n++
		}
	}
	return n
}

// isWatch tells a watch from a list.
func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// inMemory is a server over a store of its own, in memory, whose versions begin
// with that one.
func inMemory(tb testing.TB, initial store.Revision) http.Handler {
	tb.Helper()
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: initial})
	if err != nil {
		tb.Fatal(err)
	}
	s := server.New(server.Options{Store: st})
	if err := s.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.Stop()
		if err := st.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s.Handler()
}

// quick makes attempts follow each other at once.
var quick = retry.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond}

// following is a watch in a goroutine of its own, read event by event.
type following struct {
	tb     testing.TB
	events chan client.Event
	failed chan error
	cancel context.CancelFunc
}

// follow begins a watch; it ends with the test.
func follow(tb testing.TB, m *client.ConfigMaps, o client.WatchOptions) *following {
	tb.Helper()
	if o.Backoff.Base == 0 {
		o.Backoff = quick
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{tb: tb, events: make(chan client.Event), failed: make(chan error, 1), cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range m.Watch(ctx, o) {
			if err != nil {
				f.failed <- err
				return
			}
			select {
			case f.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	tb.Cleanup(func() { cancel(); <-done })
	return f
}

// next is the next event. The limit is for tests that fail.
func (f *following) next() client.Event {
	f.tb.Helper()
	select {
	case e := <-f.events:
		return e
	case err := <-f.failed:
		f.tb.Fatalf("the watch ended: %v", err)
	case <-time.After(30 * time.Second):
		f.tb.Fatal("no event came")
	}
	return client.Event{}
}

// end is the error with which the watch ended.
func (f *following) end() error {
	f.tb.Helper()
	select {
	case e := <-f.events:
		f.tb.Fatalf("an event instead of the end: %s", brief(e))
	case err := <-f.failed:
		return err
	case <-time.After(30 * time.Second):
		f.tb.Fatal("the watch goes on")
	}
	return nil
}

// expect demands these events, as told words them.
func (f *following) expect(want ...string) {
	f.tb.Helper()
	for _, w := range want {
		if got := brief(f.next()); got != w {
			f.tb.Fatalf("got %q, want %q", got, w)
		}
	}
}

// brief is an event in words: its type, the object, the key v of its data and,
// after an arrow, that of the previous one.
func brief(e client.Event) string {
	if e.Object == nil {
		return string(e.Type)
	}
	text := fmt.Sprintf("%s %s %v", e.Type, e.Object.Name(), value(e.Object, "v"))
	if e.Previous != nil {
		text += fmt.Sprintf(" was %v", value(e.Previous, "v"))
	}
	if e.Relisted {
		text += " relisted"
	}
	return text
}

// writer changes objects past what lies between the watch and the server.
type writer struct {
	tb   testing.TB
	maps *client.ConfigMaps
}

func (w writer) set(name, v string, labels ...string) types.Document {
	w.tb.Helper()
	d, err := w.maps.Get(w.tb.Context(), name)
	if err != nil {
		d = types.NewDocument(namespace, name)
	}
	d.Set(types.Field{Section: "data", Key: "v"}, v)
	for i := 0; i+1 < len(labels); i += 2 {
		d.Set(types.Field{Section: "metadata.labels", Key: labels[i]}, labels[i+1])
	}
	if d.ResourceVersion() == "" {
		return mustCreate(w.tb, w.maps, d)
	}
	if d, err = w.maps.Put(w.tb.Context(), d, ""); err != nil {
		w.tb.Fatal(err)
	}
	return d
}

func (w writer) delete(name string) {
	w.tb.Helper()
	if err := w.maps.Delete(w.tb.Context(), name, retry.Version{}, ""); err != nil {
		w.tb.Fatal(err)
	}
}
