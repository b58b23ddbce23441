package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

// piped serves requests in this process over pipes, which a synctest bubble
// understands.
type piped struct{ handler http.Handler }

// CloseIdleConnections has none to close.
func (piped) CloseIdleConnections() {}

func (p piped) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, w := io.Pipe()
	head := make(chan *http.Response, 1)
	go func() {
		answer := &pipedWriter{w: w, head: head, reader: reader, header: http.Header{}}
		p.handler.ServeHTTP(answer, r)
		answer.WriteHeader(http.StatusOK)
		w.Close()
	}()
	context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
	select {
	case resp := <-head:
		resp.Request = r
		return resp, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type pipedWriter struct {
	w      io.Writer
	head   chan *http.Response
	reader io.ReadCloser
	header http.Header
	begun  bool
}

func (w *pipedWriter) Header() http.Header { return w.header }

func (w *pipedWriter) WriteHeader(code int) {
	if !w.begun {
		w.begun = true
		w.head <- &http.Response{StatusCode: code, Header: w.header, Body: w.reader, ContentLength: -1}
	}
}

func (w *pipedWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.w.Write(b)
}

// over makes a client of a handler, without a network.
func over(t *testing.T, h http.HandlerFunc) *ConfigMaps {
	t.Helper()
	target, err := ResolveTarget(TargetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(target, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.peers.all[0].http.Transport = piped{h}
	return c.ConfigMaps("team-a")
}

// object is a ConfigMap as it is on the wire.
func object(version int) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"team-a","uid":"u","resourceVersion":"%d"}}`, version)
}

// store answers lists with one object in that version, and each watch with what
// watch does.
func store(version *atomic.Int64, watch http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			watch(w, r)
			return
		}
		at := version.Load()
		if exact := r.URL.Query().Get("resourceVersion"); exact != "" {
			_, _ = fmt.Sscan(exact, &at)
		}
		fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, at, object(int(at)))
	}
}

// A connection that died without a word is given up after the idle limit, and
// what was missed is delivered then.
func TestASilentConnectionIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := &atomic.Int64{}
		version.Store(1)
		watches := atomic.Int64{}
		m := over(t, store(version, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			if watches.Add(1) > 1 {
				fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, object(2))
			}
			<-r.Context().Done()
		}))
		began := time.Now()
		for e, err := range m.Watch(t.Context(), WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == Modified {
				break
			}
		}
		if took := time.Since(began); took < DefaultIdleLimit || took >= 90*time.Second {
			t.Errorf("the change was told after %s, want it soon after %s", took, DefaultIdleLimit)
		}
	})
}

// Bookmarks, however few, keep a quiet watch alive.
func TestBookmarksKeepAWatchAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := &atomic.Int64{}
		version.Store(1)
		watches := atomic.Int64{}
		m := over(t, store(version, func(w http.ResponseWriter, r *http.Request) {
			watches.Add(1)
			w.WriteHeader(http.StatusOK)
			for i := range 10 {
				select {
				case <-time.After(time.Minute):
				case <-r.Context().Done():
					return
				}
				fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`, 1)
				if i == 8 {
					fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, object(2))
				}
			}
		}))
		for e, err := range m.Watch(t.Context(), WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == Modified {
				break
			}
		}
		if n := watches.Load(); n != 1 {
			t.Errorf("%d watches, want 1", n)
		}
	})
}

// The time that the caller takes for an event is not the server's silence.
func TestASlowCallerIsNoDeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := &atomic.Int64{}
		version.Store(1)
		watches := atomic.Int64{}
		m := over(t, store(version, func(w http.ResponseWriter, r *http.Request) {
			watches.Add(1)
			w.WriteHeader(http.StatusOK)
			for i := range 3 {
				fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, object(2+i))
			}
			<-r.Context().Done()
		}))
		for e, err := range m.Watch(t.Context(), WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			if e.ResourceVersion == "4" {
				break
			}
		}
		if n := watches.Load(); n != 1 {
			t.Errorf("%d watches, want 1", n)
		}
	})
}

// A server that never answers is given up after the time that was given, and is
// not run down meanwhile.
func TestAWatchBacksOffAndGivesUp(t *testing.T) {
	for name, broken := range map[string]http.HandlerFunc{
		"which answers with an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"which does not answer":       func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := atomic.Int64{}
				m := over(t, func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					broken(w, r)
				})
				began := time.Now()
				for _, err := range m.Watch(t.Context(), WatchOptions{Patient: true, GiveUpAfter: 5 * time.Minute}) {
					var gaveUp *GaveUpError
					if !errors.As(err, &gaveUp) || !IsUnreachable(err) {
						t.Fatalf("got %v", err)
					}
				}
				if took := time.Since(began); took < 4*time.Minute || took > 6*time.Minute {
					t.Errorf("gave up after %s", took)
				}
				if n := requests.Load(); n < 8 || n > 150 {
					t.Errorf("%d requests in five minutes", n)
				}
			})
		})
	}
}

// Nor is a server run down that ends each stream at once, or that can show the
// collection at none of its versions.
func TestAWatchBacksOffFromAServerThatEndsIt(t *testing.T) {
	version := &atomic.Int64{}
	version.Store(1)
	for name, h := range map[string]http.HandlerFunc{
		"streams end": store(version, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
		"versions expire": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("resourceVersionMatch") == "" {
				store(version, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })(w, r)
				return
			}
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"Expired","code":410}`)
		},
		"versions expire as an event, and each list differs": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("resourceVersion") == "" {
				version.Add(1)
			}
			store(version, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}`)
			})(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := atomic.Int64{}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				m := over(t, func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					h(w, r)
				})
				for _, err := range m.Watch(ctx, WatchOptions{}) {
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Fatal(err)
					}
				}
				if n := requests.Load(); n > 400 {
					t.Errorf("%d requests in five minutes", n)
				}
			})
		})
	}
}

// A server that is back without what it had is listed soon: the pauses that grew
// while it was away are over.
func TestAServerThatCameBackWithAnotherStoreIsListedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := &atomic.Int64{}
		version.Store(1)
		var answered time.Time // when it told that the old version is gone
		began := time.Now()
		stored := store(version, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			select {
			case <-time.After(time.Minute):
			case <-r.Context().Done():
			}
		})
		m := over(t, func(w http.ResponseWriter, r *http.Request) {
			switch gone := r.URL.Query().Get("resourceVersion") == "1"; {
			case time.Since(began) < time.Minute:
				stored(w, r)
			case time.Since(began) < 10*time.Minute:
				w.WriteHeader(http.StatusBadGateway)
			case gone && r.URL.Query().Get("watch") == "true":
				answered = time.Now()
				version.Store(2)
				w.WriteHeader(http.StatusGone)
				fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"Expired","code":410}`)
			default:
				stored(w, r)
			}
		})
		var backoff retry.Backoff
		backoff.Rand = func(n int64) int64 { return n - 1 }
		for e, err := range m.Watch(t.Context(), WatchOptions{Backoff: backoff}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == Modified {
				break
			}
		}
		if took := time.Since(answered); answered.IsZero() || took > time.Second {
			t.Errorf("it was listed %s after its answer", took)
		}
	})
}

// An endless event is not collected in memory.
func TestAnEventHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := &atomic.Int64{}
		version.Store(1)
		var notices []WatchNotice
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := over(t, store(version, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"type":"MODIFIED","object":{"kind":"`)
			for chunk := make([]byte, 1<<20); ; {
				for i := range chunk {
					chunk[i] = 'x'
				}
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}))
		for range m.Watch(ctx, WatchOptions{Observe: func(n WatchNotice) {
			notices = append(notices, n)
			cancel()
		}}) {
			continue
		}
		if len(notices) == 0 || !errors.Is(notices[0].Err, errTooLarge) {
			t.Errorf("got %+v", notices)
		}
	})
}
