package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
)

// quiet is a store of version 7 in which only what a test sends happens. It has no
// goroutines of its own, so it can live in a synctest bubble.
type quiet struct {
	store.Store
	changes chan []store.Event
	current store.Revision // if it is beyond 7; of the watch's goroutine
}

func (q *quiet) State() store.State {
	return store.State{Current: max(q.current, 7), Compacted: 3}
}

func (q *quiet) List(context.Context, store.ListOptions) (store.Page, error) {
	return store.Page{Revision: 7}, nil
}

func (q *quiet) Watch(_ context.Context, _ store.Key, from store.Revision) (store.Watcher, error) {
	return &quietWatcher{quiet: q, progress: max(from, 7)}, nil
}

type quietWatcher struct {
	*quiet
	progress store.Revision
}

func (w *quietWatcher) Next(ctx context.Context) ([]store.Event, error) {
	select {
	case events := <-w.changes:
		w.progress = events[len(events)-1].Record.Revision
		w.current = w.progress
		return events, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *quietWatcher) Progress() store.Revision { return w.progress }

func (w *quietWatcher) Close() {}

// tape notes the events of a watch with the time at which each was flushed.
type tape struct {
	began  time.Time
	header http.Header
	buf    strings.Builder
	slow   time.Duration // that each write takes

	mu   sync.Mutex
	told []string // guarded by mu
}

func (w *tape) Header() http.Header  { return w.header }
func (w *tape) WriteHeader(code int) { fmt.Fprintf(&w.buf, "%d\n", code) }

func (w *tape) Write(b []byte) (int, error) {
	time.Sleep(w.slow)
	return w.buf.Write(b)
}

func (w *tape) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.buf.String()) {
		word := strings.TrimSpace(line)
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			word = e.word()
		}
		w.told = append(w.told, fmt.Sprintf("%s %s", time.Since(w.began), word))
	}
	w.buf.Reset()
}

func (w *tape) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

// record runs a watch to its end in a bubble, and says what came when. The last
// line is when it ended.
func record(t *testing.T, o server.Options, query string, meanwhile func(q *quiet)) []string {
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{changes: make(chan []store.Event)}
		o.Store = q
		w := &tape{began: time.Now(), header: http.Header{}}
		go func() {
			if meanwhile != nil {
				meanwhile(q)
			}
		}()
		server.New(o).Handler().ServeHTTP(w, httptest.NewRequest("GET", collection+"?"+query, nil))
		lines = append(w.lines(), time.Since(w.began).String()+" end")
	})
	return lines
}

func change(revision store.Revision) []store.Event {
	rec := stored("a", "v")
	rec.Revision = revision
	return []store.Event{{Record: rec}}
}

func TestWhatAWatchSendsWhen(t *testing.T) {
	for name, c := range map[string]struct {
		query     string
		meanwhile func(*quiet)
		want      []string
	}{
		"the head comes at once, the end when the time is over": {
			query: "watch=1&resourceVersion=7&timeoutSeconds=90",
			want:  []string{"0s 200", "1m30s end"},
		},
		"a bookmark comes each minute, and one before the end": {
			query: "watch=1&resourceVersion=7&timeoutSeconds=150&allowWatchBookmarks=true",
			want:  []string{"0s 200", "1m0s BOOKMARK @7", "2m0s BOOKMARK @7", "2m28s BOOKMARK @7", "2m30s end"},
		},
		"a version that is not reached has no bookmark": {
			query: "watch=1&resourceVersion=99&timeoutSeconds=90&allowWatchBookmarks=true",
			want:  []string{"0s 200", "1m30s end"},
		},
		"a short watch has no bookmark before its end": {
			query: "watch=1&resourceVersion=7&timeoutSeconds=2&allowWatchBookmarks=true",
			want:  []string{"0s 200", "2s end"},
		},
		"a bookmark says how far the events came": {
			query:     "watch=1&resourceVersion=7&timeoutSeconds=10&allowWatchBookmarks=true",
			meanwhile: func(q *quiet) { time.Sleep(time.Second); q.changes <- change(12) },
			want:      []string{"0s 200", "1s ADDED a@12=v", "8s BOOKMARK @12", "10s end"},
		},
		"changes are sent at once, and together if they come together": {
			query: "watch=1&resourceVersion=7&timeoutSeconds=5",
			meanwhile: func(q *quiet) {
				time.Sleep(time.Second)
				q.changes <- append(change(8), change(9)...)
			},
			want: []string{"0s 200", "1s ADDED a@8=v", "1s ADDED a@9=v", "5s end"},
		},
		"the initial events end with a bookmark at once": {
			query: "watch=1&timeoutSeconds=1&allowWatchBookmarks=true",
			want:  []string{"0s 200", "0s BOOKMARK @7 (end)", "1s end"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := record(t, server.Options{}, c.query, c.meanwhile); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Bookmarks are not put off by changes, though there always are more.
func TestABusyWatchHasItsBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{changes: make(chan []store.Event)}
		stop := make(chan struct{})
		go func() {
			for revision := store.Revision(8); ; revision++ {
				select {
				case q.changes <- change(revision):
				case <-stop:
					return
				}
			}
		}()
		w := &tape{began: time.Now(), header: http.Header{}, slow: time.Second}
		request := httptest.NewRequest("GET", collection+"?watch=1&resourceVersion=7&timeoutSeconds=100&allowWatchBookmarks=true", nil)
		server.New(server.Options{Store: q}).Handler().ServeHTTP(w, request)
		close(stop)
		bookmarks := slices.DeleteFunc(w.lines(), func(line string) bool { return !strings.Contains(line, "BOOKMARK") })
		if len(bookmarks) != 2 || !strings.HasPrefix(bookmarks[0], "1m") || !strings.HasPrefix(bookmarks[1], "1m") {
			t.Errorf("got %q, want one after a minute and one before the end", bookmarks)
		}
	})
}

// A watch that names no time lasts for half an hour to an hour, whatever the time
// for requests is.
func TestHowLongAWatchLasts(t *testing.T) {
	seen := map[string]bool{}
	for range 10 {
		lines := record(t, server.Options{RequestTimeout: time.Second}, "watch=1&resourceVersion=7", nil)
		end, _, _ := strings.Cut(lines[len(lines)-1], " ")
		took, err := time.ParseDuration(end)
		if err != nil || took < 30*time.Minute || took > time.Hour {
			t.Errorf("it lasted %s", end)
		}
		seen[end] = true
	}
	if len(seen) < 2 {
		t.Error("all last for the same time")
	}
}

// stuck is a ResponseWriter whose client takes the head and nothing else: each
// write waits until its deadline.
type stuck struct {
	tape
	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{} // closed when the deadline is changed
}

func (w *stuck) SetReadDeadline(time.Time) error { return nil }

func (w *stuck) SetWriteDeadline(d time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = d
	if w.moved != nil {
		close(w.moved)
	}
	w.moved = make(chan struct{})
	return nil
}

func (w *stuck) Write(b []byte) (int, error) {
	for {
		w.mu.Lock()
		deadline, moved := w.deadline, w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-time.After(time.Until(deadline)):
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// A client that takes nothing can't hold its watch: not for long, and not when
// the server wants to stop.
func TestAStuckClientLosesItsWatch(t *testing.T) {
	for name, c := range map[string]struct {
		stopAfter time.Duration // 0: the server does not stop
		want      time.Duration
	}{
		"a frame has half a minute":                {want: 30 * time.Second},
		"a server that stops waits for one second": {stopAfter: 5 * time.Second, want: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &quiet{changes: make(chan []store.Event, 1)}
				q.changes <- change(8)
				s := server.New(server.Options{Store: q})
				began := time.Now()
				if c.stopAfter > 0 {
					time.AfterFunc(c.stopAfter, s.EndWatches)
				}
				w := &stuck{tape: tape{header: http.Header{}}}
				s.Handler().ServeHTTP(w, httptest.NewRequest("GET", collection+"?watch=1&resourceVersion=7", nil))
				if took := time.Since(began); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
			})
		})
	}
}
