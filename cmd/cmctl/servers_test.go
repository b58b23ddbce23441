package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// dying goes on with two servers of the script's store, $URL. The first one carries the
// first write out that it gets, and is gone before it answers.
func dying(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: dying")
	}
	to, err := url.Parse(ts.Getenv("URL"))
	ts.Check(err)
	front := httptest.NewServer(&dyingServer{proxy: httputil.NewSingleHostReverseProxy(to)})
	ts.Defer(front.Close)
	ts.Setenv("CMCTL_SERVER", front.URL+","+to.String())
}

type dyingServer struct {
	proxy *httputil.ReverseProxy
	gone  atomic.Bool
}

func (d *dyingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isRead := r.Method == http.MethodGet || strings.Contains(r.URL.RawQuery, "dryRun=All")
	switch {
	case d.gone.Load():
		panic(http.ErrAbortHandler)
	case isRead:
		d.proxy.ServeHTTP(w, r)
	default:
		d.gone.Store(true)
		d.proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
}
