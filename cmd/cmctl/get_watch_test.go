package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// shaky stands before a server: it ends each watch after two events, by turns
// in good order and not, and answers nothing while it is away.
type shaky struct {
	proxy   *httputil.ReverseProxy
	watches atomic.Int32
	away    atomic.Bool
}

func newShaky(t *testing.T, backend string) (*shaky, string) {
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	s := &shaky{proxy: httputil.NewSingleHostReverseProxy(to)}
	s.proxy.FlushInterval = -1
	s.proxy.ErrorLog = log.New(io.Discard, "", 0) // it would tell of each stream that is cut
	s.proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	s.proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Query().Get("watch") == "true" {
			r.Body = &twoEvents{from: bufio.NewReader(r.Body), body: r.Body, cut: s.watches.Add(1)%2 == 1}
		}
		return nil
	}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, front.URL
}

func (s *shaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.away.Load() {
		panic(http.ErrAbortHandler)
	}
	s.proxy.ServeHTTP(w, r)
}

// twoEvents is a stream that ends after so many.
type twoEvents struct {
	from *bufio.Reader
	body io.Closer
	cut  bool
	sent int
	rest []byte
}

func (b *twoEvents) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.sent == 2 && b.cut {
			return 0, io.ErrUnexpectedEOF
		}
		if b.sent == 2 {
			return 0, io.EOF
		}
		line, err := b.from.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		b.sent++
		b.rest = line
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *twoEvents) Close() error { return b.body.Close() }

// following runs a command that goes on until it is stopped. Its lines come one
// by one; stop returns its exit code and what it said on stderr.
func following(t *testing.T, args ...string) (lines *bufio.Scanner, stop func() (code int, errs string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	var errs strings.Builder
	done := make(chan int, 1)
	go func() {
		code := run(ctx, args, streams{In: strings.NewReader(""), Out: out, Err: &errs}, nil)
		out.Close()
		done <- code
	}()
	return bufio.NewScanner(in), func() (int, string) {
		cancel()
		in.Close()
		return <-done, errs.String()
	}
}

// directly is a client of a server, past what lies before it.
func directly(t *testing.T, server string) *client.ConfigMaps {
	t.Helper()
	target, err := client.ResolveTarget(client.TargetOptions{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(target, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c.ConfigMaps("default")
}

// number is a ConfigMap with a number that changes, past what lies before the server.
type number struct {
	t    *testing.T
	maps *client.ConfigMaps
	doc  types.Document
}

// newNumber makes one that is 0.
func newNumber(t *testing.T, backend string) *number {
	t.Helper()
	n := &number{t: t, maps: directly(t, backend), doc: types.NewDocument("default", "counter")}
	n.doc.Set(types.Field{Section: "data", Key: "n"}, "0")
	var err error
	if n.doc, err = n.maps.Create(t.Context(), n.doc, ""); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *number) set(to int) {
	n.t.Helper()
	n.doc.Set(types.Field{Section: "data", Key: "n"}, fmt.Sprint(to))
	var err error
	if n.doc, err = n.maps.Put(n.t.Context(), n.doc, ""); err != nil {
		n.t.Fatal(err)
	}
}

// Streams that end all the time, and a server that is away for a while, cost
// get -w no change and show none twice.
func TestGetWatchShowsEachChangeOnce(t *testing.T) {
	backend, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	server, front := newShaky(t, backend)
	onlyServer(t, front)
	n := newNumber(t, backend)
	lines, end := following(t, "get", "-w", "-o", `jsonpath={.data.n}{"\n"}`)
	if !lines.Scan() {
		t.Fatal("nothing was shown")
	}
	for i := 1; i <= 20; i++ {
		switch i {
		case 7:
			server.away.Store(true)
		case 12:
			server.away.Store(false)
		}
		n.set(i)
	}
	for i := 1; i <= 20; i++ {
		if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
			t.Fatalf("got %q, want %d", lines.Text(), i)
		}
	}
	if _, errs := end(); !strings.Contains(errs, "the server answers again") {
		t.Errorf("it said\n%s", errs)
	}
}

// Of two servers of one store, each may go as long as the other is there.
func TestGetWatchGoesOnAtTheNextServer(t *testing.T) {
	backend, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	first, a := newShaky(t, backend)
	second, b := newShaky(t, backend)
	onlyServer(t, a+","+b)
	n := newNumber(t, backend)
	lines, end := following(t, "get", "-w", "-o", `jsonpath={.data.n}{"\n"}`)
	for i := 0; i <= 20; i++ {
		first.away.Store(i/5%2 == 1)
		second.away.Store(i/5%2 == 0)
		if i > 0 {
			n.set(i)
		}
		if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
			t.Fatalf("got %q, want %d", lines.Text(), i)
		}
	}
	if _, errs := end(); !strings.Contains(errs, "going on with "+b) || !strings.Contains(errs, "going on with "+a) || strings.Contains(errs, "listing anew") {
		t.Errorf("it said\n%s", errs)
	}
}

// A time limit that ends while the server is away is no good end: there may be
// changes that were not shown.
func TestGetWatchWhoseServerStaysAway(t *testing.T) {
	backend, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	server, front := newShaky(t, backend)
	onlyServer(t, front)
	maps := directly(t, backend)
	for _, name := range []string{"a", "b"} {
		if _, err := maps.Create(t.Context(), types.NewDocument("default", name), ""); err != nil {
			t.Fatal(err)
		}
	}
	lines, end := following(t, "get", "-w", "-o", "name", "--timeout=2s")
	if !lines.Scan() {
		t.Fatal("nothing was shown")
	}
	server.away.Store(true) // before the watch begins: the second name isn't read yet
	for lines.Scan() {
		continue
	}
	if code, errs := end(); code != exitUnreachable || !strings.Contains(errs, "the watch broke") {
		t.Errorf("it ended with %d:\n%s", code, errs)
	}
}

// onlyServer lets commands find a server, and nobody's own settings.
func onlyServer(t *testing.T, server string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("CMCTL_SERVER", server)
}
