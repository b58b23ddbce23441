package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// An edit whose answer is lost after it landed is done, also where the server
// keeps no history that could prove it: its values are there.
func TestEditIsDoneThoughItsAnswerIsLost(t *testing.T) {
	backend, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	var puts atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodPut && puts.Add(1) == 1 {
			r.Body.Close()
			panic(http.ErrAbortHandler) // it landed; its answer goes nowhere
		}
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/history") {
			http.NotFound(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("CMCTL_SERVER", front.URL)
	t.Setenv("CMCTL_EDITOR", "sed -i s/blue/green/")
	var out, errs bytes.Buffer
	cmctl := func(args ...string) int {
		out.Reset()
		errs.Reset()
		return run(t.Context(), args, streams{In: strings.NewReader(""), Out: &out, Err: &errs}, nil)
	}
	if code := cmctl("create", "flags", "--from-literal=mode=blue"); code != 0 {
		t.Fatalf("create ended with %d:\n%s", code, &errs)
	}
	if code := cmctl("edit", "flags"); code != 0 || !strings.Contains(out.String(), "edited") {
		t.Errorf("edit ended with %d, %q:\n%s", code, &out, &errs)
	}
	if n := puts.Load(); n != 1 {
		t.Errorf("%d writes were sent, want 1", n)
	}
	if code := cmctl("get", "flags", "-o", "yaml"); code != 0 || !strings.Contains(out.String(), "mode: green") {
		t.Errorf("stored is\n%s", &out)
	}
}
