package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/test/pipes"
)

// accepting is a store that takes everything and has nothing.
type accepting struct{ store.Store }

func (accepting) Get(context.Context, store.Key, store.Revision) (store.Record, error) {
	return store.Record{}, store.ErrNotFound
}
func (accepting) Commit(context.Context, store.Txn) (store.Revision, error) { return 7, nil }
func (accepting) Healthy() error                                            { return nil }

// named knows users by a header.
type named struct{}

func (named) Authenticate(r *http.Request) (user.Info, error) {
	return &user.DefaultInfo{Name: r.Header.Get("User")}, nil
}

// hall is a server that listens without a network, so that it can live in a bubble.
type hall struct {
	t      *testing.T
	server *Server
	*pipes.Listener
}

// open runs a test beside a server. In the end nothing may be held.
func open(t *testing.T, o Options, test func(h *hall)) {
	synctest.Test(t, func(t *testing.T) {
		if o.Authenticator = (named{}); o.Store == nil {
			o.Store = accepting{}
		}
		h := &hall{t: t, server: New(o), Listener: pipes.Listen()}
		hs := &http.Server{Handler: h.server.Handler()}
		served := make(chan error, 1)
		go func() { served <- hs.Serve(h) }()
		test(h)
		hs.Close()
		<-served
		synctest.Wait()
		in, writes := &h.server.intakes, &h.server.writes
		if len(in.coming)+len(in.by)+len(in.memoryBy)+int(in.memory)+writes.taken+len(writes.by) != 0 {
			t.Errorf("in the end are held: %+v, %+v", in, writes)
		}
		as := &h.server.answers
		if len(as.places)+len(as.going)+len(as.memoryBy)+int(as.memory)+h.server.reads.taken != 0 {
			t.Errorf("in the end answers are held: %+v, and %d reads", as, h.server.reads.taken)
		}
	})
}

// sending is a create whose body comes piece by piece.
type sending struct {
	code   int // 0: there is no answer yet
	body   string
	header http.Header
	took   time.Duration
}

// send begins the request of a user, whose body has so many pieces of this length, one
// every so often, and lets run what can.
func (h *hall) send(who string, pieces, length int, every time.Duration) *sending {
	near := h.Dial()
	h.t.Cleanup(func() { near.Close() })
	r, began := &sending{}, time.Now()
	go func() {
		const end = `{"metadata":{"name":"flags"}}`
		fmt.Fprintf(near, "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nUser: %s\r\nContent-Length: %d\r\n\r\n", who, pieces*length+len(end))
		for range pieces {
			fmt.Fprint(near, strings.Repeat(" ", length)) // which JSON passes over
			select {
			case <-time.After(every):
			case <-h.Closed():
			}
		}
		fmt.Fprint(near, end)
	}()
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(near), nil)
		if err != nil {
			return // the test is over
		}
		r.took = time.Since(began)
		body, _ := io.ReadAll(resp.Body)
		r.code, r.body, r.header = resp.StatusCode, string(body), resp.Header
		near.Close()
	}()
	synctest.Wait()
	return r
}

// stall sends so much at once, and then nothing for an hour.
func (h *hall) stall(who string, length int) *sending { return h.send(who, 1, length, time.Hour) }

func (h *hall) later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (h *hall) is(r *sending, name string, code int, says string) {
	h.t.Helper()
	if r.code != code || !strings.Contains(r.body, says) {
		h.t.Errorf("%s got %d %s, want %d %q", name, r.code, r.body, code, says)
	}
	if code == 429 && r.header.Get("Retry-After") == "" {
		h.t.Errorf("%s is not told when to come back: %v", name, r.header)
	}
}

// A body must keep coming, and be there in the time of its request.
func TestThePaceOfABody(t *testing.T) {
	for name, c := range map[string]struct {
		pieces, length int
		every          time.Duration
		code           int
		says           string
		after          time.Duration
	}{
		"at once":                            {1, 1000, 0, 201, "", 0},
		"as large as may be, and no hurry":   {47, 64 << 10, time.Second, 201, "", 47 * time.Second},
		"small, and slow":                    {9, 1, time.Second, 201, "", 9 * time.Second},
		"a byte a second":                    {100, 1, time.Second, 504, "too slowly", 10 * time.Second},
		"much at first, and then no more":    {1, 160 << 10, time.Hour, 504, "too slowly", 20 * time.Second},
		"at half the pace":                   {100, 16 << 10, 2 * time.Second, 504, "too slowly", 20 * time.Second},
		"steady, but beyond the time of all": {100, 16 << 10, time.Second, 504, "longer than it may", time.Minute},
		"too large":                          {4, 1 << 20, 0, 413, "too large", 0},
	} {
		t.Run(name, func(t *testing.T) {
			open(t, Options{}, func(h *hall) {
				r := h.send("jane", c.pieces, c.length, c.every)
				h.later(2 * time.Minute)
				h.is(r, "it", c.code, c.says)
				if took := r.took; took < c.after-2*time.Second || took > c.after+2*time.Second {
					t.Errorf("it took %v, want %v", took, c.after)
				}
			})
		})
	}
}

// Where bodies come slowly from everywhere, the slowest makes room for one that is
// there at once.
func TestTheSlowestBodyMakesRoom(t *testing.T) {
	open(t, Options{MaxReceiving: 3}, func(h *hall) {
		slow, slower, other := h.stall("a", 1000), h.stall("b", 10), h.stall("c", 1000)
		h.is(h.send("d", 1, 10, 0), "one that comes while nobody is slow yet", 429, "too many request bodies")
		h.later(2 * time.Second)
		h.is(h.send("d", 1, 10, 0), "one that comes later", 201, "")
		h.is(slower, "the slowest", 429, "nothing was stored")
		if slow.code != 0 || other.code != 0 {
			t.Errorf("others were given up: %+v, %+v", slow, other)
		}
	})
}

// Memory is given as bytes come, and taken from the slowest. Small bodies ask for none.
func TestTheMemoryOfBodies(t *testing.T) {
	open(t, Options{MaxReceivedBytes: 160 << 10}, func(h *hall) {
		announced := h.stall("x", 10) // and says that there is more
		first, second := h.stall("a", 60<<10), h.stall("b", 50<<10)
		h.is(h.send("c", 1, 70<<10, 0), "a large one, at once", 429, "bytes of request bodies at once")
		h.is(h.send("c", 1, 3<<10, 0), "a small one", 201, "")
		h.later(2 * time.Second)
		h.is(h.send("c", 1, 70<<10, 0), "a large one, later", 201, "")
		h.is(second, "the slowest that has memory", 429, "nothing was stored")
		if first.code != 0 || announced.code != 0 {
			t.Errorf("others were given up: %+v, %+v", first, announced)
		}
	})
}

// One user has half of the bodies that come in, and half of the memory.
func TestTheBodiesOfOneUser(t *testing.T) {
	open(t, Options{MaxReceiving: 4, MaxReceivedBytes: 128 << 10}, func(h *hall) {
		h.stall("jane", 10)
		h.is(h.send("jane", 1, 100<<10, 0), "jane's large one", 429, `bytes of request bodies of user \"jane\"`)
		h.stall("jane", 10)
		h.later(2 * time.Second)
		h.is(h.send("jane", 1, 10, 0), "jane's third", 429, `of user \"jane\"`)
		h.is(h.send("joe", 1, 10, 0), "joe's", 201, "")
	})
}

// Bodies that are on their way have no place among the writes, and reads that have one,
// which nobody reads, are over when they are answered.
func TestSlowBodiesTakeNoPlaceFromOthers(t *testing.T) {
	open(t, Options{MaxMutatingInFlight: 2, MaxInFlight: 1}, func(h *hall) {
		for range 20 {
			h.stall("jane", 1000)
		}
		h.is(h.send("jane", 1, 1000, 0), "one that is there", 201, "")
		for range 3 {
			near := h.Dial()
			go io.Copy(io.Discard, near)
			fmt.Fprint(near, "GET /openapi/v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
			h.t.Cleanup(func() { near.Close() })
		}
		h.later(time.Second)
		if taken := h.server.reads.taken; taken != 0 {
			t.Errorf("%d reads are not over", taken)
		}
	})
}
