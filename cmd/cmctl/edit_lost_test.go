package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// An edit whose answer is lost after it landed is done, also where the server
// keeps no history that could prove it: its values are there.
func TestEditIsDoneThoughItsAnswerIsLost(t *testing.T) {
	b := between(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/history") {
			return false
		}
		http.NotFound(w, r)
		return true
	})
	var puts atomic.Int32
	b.answered = func(r *http.Response) {
		if r.Request.Method == http.MethodPut && puts.Add(1) == 1 {
			r.Body.Close()
			panic(http.ErrAbortHandler) // it landed; its answer goes nowhere
		}
	}
	t.Setenv("CMCTL_EDITOR", "sed -i s/blue/green/")
	b.must("create", "flags", "--from-literal=mode=blue")
	if out := b.must("edit", "flags"); !strings.Contains(out, "edited") {
		t.Errorf("edit said %q", out)
	}
	if n := puts.Load(); n != 1 {
		t.Errorf("%d writes were sent, want 1", n)
	}
	if out := b.must("get", "flags", "-o", "yaml"); !strings.Contains(out, "mode: green") {
		t.Errorf("stored is\n%s", out)
	}
}
