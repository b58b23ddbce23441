package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/retry"
)

// wire is a transport that does with a request what it says.
type wire func(r *http.Request, connected func()) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	return w(r, func() { httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{}) })
}

// CloseIdleConnections has none to close.
func (wire) CloseIdleConnections() {}

// refuses lets nobody connect, and says so.
func refuses(*http.Request, func()) (*http.Response, error) { return nil, syscall.ECONNREFUSED }

// swallows lets nobody connect, without a word.
func swallows(r *http.Request, _ func()) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// hangs takes the request and never answers.
func hangs(r *http.Request, connected func()) (*http.Response, error) {
	connected()
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// after answers with the object when that time is over.
func after(d time.Duration) wire {
	return func(r *http.Request, connected func()) (*http.Response, error) {
		connected()
		select {
		case <-time.After(d):
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(object(2))), Request: r}, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// counting counts the requests to a server.
func counting(n *atomic.Int64, w wire) wire {
	return func(r *http.Request, connected func()) (*http.Response, error) {
		n.Add(1)
		return w(r, connected)
	}
}

// wired makes a client of servers that behave so.
func wired(t *testing.T, o Options, wires ...wire) *Client {
	t.Helper()
	addresses := make([]string, len(wires))
	for i := range wires {
		addresses[i] = fmt.Sprintf("http://%c.example", 'a'+i)
	}
	target, err := ResolveTarget(TargetOptions{Server: strings.Join(addresses, ",")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(target, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range wires {
		c.peers.all[i].http.Transport = w
	}
	return c
}

func get(ctx context.Context, c *Client) error {
	_, err := c.ConfigMaps("team-a").Get(ctx, "a")
	return err
}

func put(ctx context.Context, c *Client) error {
	d, _ := c.ConfigMaps("team-a").parse([]byte(object(1)), "a")
	_, err := c.ConfigMaps("team-a").Put(ctx, d, "id")
	return err
}

// ending is how a call ended, in a word.
func ending(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*retry.LostError)):
		return "lost"
	case errors.As(err, new(*retry.UnsentError)):
		return "unsent"
	case errors.As(err, new(*retry.UnreadError)):
		return "unread"
	}
	return err.Error()
}

// How long a call takes, and how it ends, where servers are slow or silent.
func TestNoServerTakesTheTimeOfTheOthers(t *testing.T) {
	const (
		request                    = 30 * time.Second // the time of a call
		done, lost, unsent, unread = "", "lost", "unsent", "unread"
	)
	soon := after(0)
	for name, c := range map[string]struct {
		call  func(context.Context, *Client) error
		wires []wire
		takes time.Duration
		ends  string
	}{
		"a read, the first refuses":                   {get, []wire{refuses, soon}, 0, done},
		"a write, the first refuses":                  {put, []wire{refuses, soon}, 0, done},
		"a read, the first can't be connected to":     {get, []wire{swallows, soon}, turnTime, done},
		"a write, the first can't be connected to":    {put, []wire{swallows, soon}, turnTime, done},
		"a read, two can't be connected to":           {get, []wire{swallows, swallows, soon}, 2 * turnTime, done},
		"a read that the first doesn't answer":        {get, []wire{hangs, soon}, turnTime, done},
		"a write that the first doesn't answer":       {put, []wire{hangs, soon}, request, lost},
		"a write that the second doesn't answer":      {put, []wire{swallows, hangs}, request, lost},
		"a slow write":                                {put, []wire{after(20 * time.Second), soon}, 20 * time.Second, done},
		"a slow read, the second is faster":           {get, []wire{after(20 * time.Second), soon}, turnTime, done},
		"a slow read, the second is as slow":          {get, []wire{after(20 * time.Second), after(20 * time.Second)}, turnTime + 20*time.Second, done},
		"a slow read, the second refuses":             {get, []wire{after(20 * time.Second), refuses}, turnTime + 20*time.Second, done},
		"a read that nobody answers":                  {get, []wire{hangs, hangs}, request, unread},
		"a read, nobody can be connected to":          {get, []wire{swallows, swallows}, request, unsent},
		"a write, nobody can be connected to":         {put, []wire{swallows, swallows}, request, unsent},
		"a write, one refuses and one swallows":       {put, []wire{swallows, refuses}, request, unsent},
		"a single server is given all the time there": {get, []wire{after(29 * time.Second)}, 29 * time.Second, done},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := c.call(t.Context(), wired(t, Options{RequestTimeout: request}, c.wires...))
				if took := time.Since(began); took != c.takes {
					t.Errorf("it took %s, want %s", took, c.takes)
				}
				if ends := ending(err); ends != c.ends {
					t.Errorf("it ended with %q (%v), want %q", ends, err, c.ends)
				}
			})
		})
	}
}

// Where a call has little time, its servers share it.
func TestServersShareTheTimeOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := wired(t, Options{RequestTimeout: 3 * time.Second}, hangs, hangs, after(0))
		if err := get(t.Context(), c); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// A server that failed is left alone for a while, also by calls that need not leave the
// one they go to, and is tried again after that.
func TestAServerThatFailedRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second atomic.Int64
		mode := [2]wire{refuses, after(0)}
		c := wired(t, Options{},
			func(r *http.Request, connected func()) (*http.Response, error) {
				return counting(&first, mode[0])(r, connected)
			},
			func(r *http.Request, connected func()) (*http.Response, error) {
				return counting(&second, mode[1])(r, connected)
			})
		step := func(a, b int64, ends string) {
			t.Helper()
			if got := ending(get(t.Context(), c)); got != ends || first.Swap(0) != a || second.Swap(0) != b {
				t.Errorf("it ended with %q, and the requests are not as wanted", got)
			}
		}
		step(1, 1, "")
		mode[0] = after(0)
		step(0, 1, "")
		time.Sleep(restTime)
		step(0, 1, "") // the second works
		mode[1] = hangs
		step(1, 1, "")
		step(1, 0, "")
		mode[0] = refuses
		step(1, 1, "unread") // the second rests, and there is no other
	})
}

// A late answer of the server that was left brings no call back to it.
func TestALateAnswerMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first atomic.Int64
		c := wired(t, Options{}, counting(&first, after(20*time.Second)), after(0))
		var writing sync.WaitGroup
		writing.Go(func() {
			if err := put(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
		for range 2 {
			if err := get(t.Context(), c); err != nil {
				t.Error(err)
			}
			writing.Wait()
		}
		if n := first.Load(); n != 2 {
			t.Errorf("%d requests went to the first server, want the write and the first read", n)
		}
	})
}

// Whoever breaks a call off has learnt nothing about the server.
func TestABrokenOffCallSaysNothingOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var second atomic.Int64
		c := wired(t, Options{Moved: func(m Move) { t.Errorf("moved: %+v", m) }}, after(time.Second), counting(&second, after(0)))
		for _, call := range []func(context.Context, *Client) error{get, put} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			if err := call(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if err := call(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		if n := second.Load(); n != 0 {
			t.Errorf("%d requests went to the second server", n)
		}
	})
}

// serves is a server with that handler.
func serves(h http.HandlerFunc) wire {
	return func(r *http.Request, connected func()) (*http.Response, error) {
		connected()
		return piped{h}.RoundTrip(r)
	}
}

// follows counts the events of a watch by their type, until one is at that version.
func follows(t *testing.T, c *Client, version string, o WatchOptions) (modified, relisted int) {
	t.Helper()
	for e, err := range c.ConfigMaps("team-a").Watch(t.Context(), o) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Relisted {
			relisted++
		}
		if e.Type == Modified {
			modified++
		}
		if e.ResourceVersion == version {
			break
		}
	}
	return modified, relisted
}

// notThere is what a server answers of a version that it has not come to.
func notThere(w http.ResponseWriter) {
	w.WriteHeader(http.StatusGatewayTimeout)
	fmt.Fprint(w, `{"kind":"Status","status":"Failure","reason":"Timeout","code":504,"message":"Timeout: Too large resource version",`+
		`"details":{"retryAfterSeconds":1,"causes":[{"reason":"ResourceVersionTooLarge"}]}}`)
}

// A watch waits for a replica that is behind, and goes on from where it was. One that
// stays behind is listed anew.
func TestAWatchWaitsForAReplicaThatIsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		behind   time.Duration
		relisted int
	}{
		"for a while": {3 * time.Second, 0},
		"for good":    {time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := &atomic.Int64{}, &atomic.Int64{}
				first.Store(1)
				second.Store(2)
				died := false
				var since time.Time
				a := store(first, func(http.ResponseWriter, *http.Request) { died, since = true, time.Now() })
				b := store(second, func(w http.ResponseWriter, r *http.Request) {
					w.WriteHeader(http.StatusOK)
					fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, object(2))
					<-r.Context().Done()
				})
				client := wired(t, Options{},
					func(r *http.Request, connected func()) (*http.Response, error) {
						if died {
							return refuses(r, connected)
						}
						return serves(a)(r, connected)
					},
					serves(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Query().Get("resourceVersionMatch") != "" && time.Since(since) < c.behind {
							notThere(w)
							return
						}
						b(w, r)
					}))
				modified, relisted := follows(t, client, "2", WatchOptions{})
				if modified != 1 || relisted != c.relisted {
					t.Errorf("%d changes, %d of them relisted", modified, relisted)
				}
			})
		})
	}
}

// A stream is believed only if the server that it is from has what is known: another
// one's word is of no use.
func TestAStreamIsProvenByItsOwnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := &atomic.Int64{}
		version.Store(1)
		ends := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
		mine := store(version, ends)
		listed := false
		client := wired(t, Options{},
			serves(func(w http.ResponseWriter, r *http.Request) {
				if isStream := r.URL.Query().Get("watch") == "true"; isStream && listed {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				listed = true
				mine(w, r)
			}),
			serves(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "true" {
					w.WriteHeader(http.StatusOK)
					fmt.Fprint(w, `{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"team-a","uid":"strange","resourceVersion":"2"}}}`)
					<-r.Context().Done()
					return
				}
				w.WriteHeader(http.StatusServiceUnavailable) // it can't prove anything
			}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for e, err := range client.ConfigMaps("team-a").Watch(ctx, WatchOptions{}) {
			if err == nil && e.Object != nil && e.Object.UID() == "strange" {
				t.Fatal("the other store's change was delivered")
			}
		}
	})
}

// Two stores never make one list, even if one of them takes the other's continue token:
// it begins anew.
func TestAListIsOfOneStore(t *testing.T) {
	page := func(version int, more, name string) string {
		return fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[{"metadata":{"name":%q}}]}`, version, more, name)
	}
	other := serves(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprint(w, page(2, "more", "b1"))
			return
		}
		fmt.Fprint(w, page(2, "", "b2"))
	})
	asked := false
	c := wired(t, Options{}, func(r *http.Request, connected func()) (*http.Response, error) {
		if asked {
			return refuses(r, connected)
		}
		asked = true
		return serves(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page(1, "more", "a1")) })(r, connected)
	}, other)
	list, err := c.ConfigMaps("team-a").List(t.Context(), ListOptions{})
	if err != nil || len(list.Items) != 2 || list.Items[0].Name() != "b1" || list.Items[1].Name() != "b2" {
		t.Errorf("got %+v, %v", list, err)
	}
}
