package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// bench is a cmserver behind a front that a test may let misbehave.
type bench struct {
	t *testing.T
	// meddle may answer a request in the server's place. Nil, or false, passes it
	// on.
	meddle func(w http.ResponseWriter, r *http.Request) bool
	// answered may look at the server's answers, or panic to lose one. Nil lets all
	// through.
	answered func(r *http.Response)
	direct   string // the server's own address

	mu       sync.Mutex
	requests []string // guarded by mu: method, and code where a write was refused
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t}
	direct, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	b.direct = direct
	to, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		b.note(fmt.Sprintf("%s %d", r.Request.Method, r.StatusCode))
		if b.answered != nil {
			b.answered(r)
		}
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.meddle == nil || !b.meddle(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("CMCTL_SERVER", front.URL)
	return b
}

// between is a bench whose requests go through meddle first.
func between(t *testing.T, meddle func(http.ResponseWriter, *http.Request) bool) *bench {
	t.Helper()
	b := newBench(t)
	b.meddle = meddle
	return b
}

// cmctl runs one command line.
func cmctl(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, streams{In: strings.NewReader(""), Out: &o, Err: &e}, nil)
	return code, o.String(), e.String()
}

func (b *bench) note(request string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, request)
}

// seen are the requests since the last call.
func (b *bench) seen() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := strings.Join(b.requests, ", ")
	b.requests = nil
	return all
}

// ended is how a command ended.
type ended struct {
	code     int
	out, err string
}

// cmctl runs a command through the front.
func (b *bench) cmctl(args ...string) ended {
	b.t.Helper()
	code, out, errs := cmctl(b.t, args...)
	return ended{code, out, errs}
}

// must runs a command that has to succeed.
func (b *bench) must(args ...string) string {
	b.t.Helper()
	e := b.cmctl(args...)
	if e.code != 0 {
		b.t.Fatalf("cmctl %v ended with %d:\n%s", args, e.code, e.err)
	}
	return e.out
}

// past runs a command of somebody else, past the front.
func (b *bench) past(args ...string) {
	b.t.Helper()
	b.must(append(args, "--server="+b.direct)...)
}

// holds demands texts in the object app.
func (b *bench) holds(wants ...string) {
	b.t.Helper()
	text := b.must("get", "app", "-o", "yaml", "--server="+b.direct)
	for _, want := range wants {
		if !strings.Contains(text, want) {
			b.t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// once is a meddler that does something before the first request of a method,
// and then lets it through.
func once(method string, do func()) func(http.ResponseWriter, *http.Request) bool {
	var first sync.Once
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == method && !strings.HasSuffix(r.URL.Path, "/history") {
			first.Do(do)
		}
		return false
	}
}
