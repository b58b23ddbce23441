package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// refusing answers all requests with a Status of that code that says as little as
// it may.
func refusing(code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","code":%d}`, code)
		return true
	}
}

// A refused question about many objects names what was asked, whom, and what to
// do next.
func TestARefusedListNamesWhatWasAsked(t *testing.T) {
	b := newBench(t)
	t.Setenv("CMCTL_EDITOR", "true")
	file := manifestFile(t, `{a: "1"}`)
	var code atomic.Int32
	b.meddle = func(w http.ResponseWriter, r *http.Request) bool { return refusing(int(code.Load()))(w, r) }
	const here, all = `configmaps in namespace "default"`, "configmaps in all namespaces"
	for _, c := range []struct {
		args, names string
	}{
		{"get", here},
		{"get -A", all},
		{"get -o yaml -A", all},
		{"get -w", here},
		{"get app -w", `configmaps "app" in namespace "default"`},
		{"label -l a=b c=d", here},
		{"annotate --all c=d", here},
		{"delete -l a=b", here},
		{"label -l a=b c=d -o json", here},
		{"delete --field-selector=metadata.name=app -o json", here},
		{"edit -l a=b --dry-run=server -o json", here},
		{"apply view-last-applied --all", here},
		{"edit -l a=b", here},
		{"apply --set s --prune -f " + file, here},
		{"diff --set s --prune -f " + file, here},
		{"apply --set s --prune -f " + file, "set \"s\" can't be listed"},
		{"export -A", all},
		{"wait -l a=b --for=create --timeout=0", here},
		{"wait app other --for=create --timeout=0", here},
		{"auth can-i get", "what you may do"},
		{"auth whoami", "who you are"},
	} {
		for _, status := range []int32{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
			code.Store(status)
			hint := "hint: try again later"
			if status == http.StatusInternalServerError {
				hint = "hint: the fault is the server's"
			}
			e := b.cmctl(append(strings.Fields(c.args), "--max-attempts=1")...)
			// Nothing on stdout: an empty List would say that nothing is there.
			if e.code != exitUnreachable || e.out != "" || !strings.Contains(e.err, c.names) || !strings.Contains(e.err, "http://") || !strings.Contains(e.err, hint) {
				t.Errorf("%s on a %d ended with %d and no %q, server or hint in\n%s", c.args, status, e.code, c.names, e.err)
			}
		}
	}
}

// A server that takes the question and never answers is named by wait.
func TestWaitNamesASilentServer(t *testing.T) {
	b := newBench(t)
	b.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	e := b.cmctl("wait", "app", "--for=create", "--timeout=50ms")
	if e.code != exitUnreachable || !strings.Contains(e.err, `configmaps "app" in namespace "default"`) || !strings.Contains(e.err, "http://") {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
}
