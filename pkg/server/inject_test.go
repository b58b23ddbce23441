package server_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/inject"
)

// injecting lets the server misbehave.
func injecting(t testing.TB, spec string) option {
	t.Helper()
	s, err := inject.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *server.Options) { o.Inject = s }
}

// A conflict is injected where a real one could be: into a write that names the
// version which is stored, after everything that is refused before a stale version.
// Nothing is stored.
func TestInjectedConflict(t *testing.T) {
	a := start(t, injecting(t, "conflict=100%"), putMode(server.PutAlways))
	version := a.create().version()
	const modified, stale = "please apply your changes to the latest version", "sent resourceVersion 99"
	patchOf := func(version string) string {
		return `{"metadata":{"resourceVersion":"` + version + `"},"data":{"mode":"red"}}`
	}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		message                  string
		injected                 bool
	}{
		{"put", "PUT", flags, flagsBody(version, `{"mode":"red"}`), nil, 409, modified, true},
		{"patch with a version", "PATCH", flags, patchOf(version), mergePatch, 409, modified, true},
		{"JSON patch with a version", "PATCH", flags, `[{"op":"test","path":"/metadata/resourceVersion","value":"` + version + `"}]`, jsonPatch, 409, modified, true},
		{"apply with a version", "PATCH", flags + "?fieldManager=x", flagsBody(version, `{"other":"red"}`), applyPatch, 409, modified, true},
		{"delete with a version", "DELETE", flags, `{"preconditions":{"resourceVersion":"` + version + `"}}`, nil, 409, modified, true},
		{"stale put", "PUT", flags, flagsBody("99", `{}`), nil, 409, stale, false},
		{"stale patch", "PATCH", flags, patchOf("99"), mergePatch, 409, stale, false},
		{"put to nothing", "PUT", collection + "/none", strings.Replace(flagsBody(version, `{}`), "flags", "none", 1), nil, 404, "not found", false},
		{"put of another name", "PUT", collection + "/none", flagsBody(version, `{}`), nil, 400, "does not match", false},
		{"create", "POST", collection, flagsBody("", `{}`), nil, 409, "already exists", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := a.do(c.method, c.path, c.body, c.headers...)
			if r.code != c.code || !strings.Contains(r.status.Message, c.message) {
				t.Errorf("got %d %s, want %d %s", r.code, r.body, c.code, c.message)
			}
			if marked := r.header.Get(inject.Header) == "conflict" && strings.Contains(r.header.Get("Warning"), "injected fault: conflict"); marked != c.injected {
				t.Errorf("marked: %v", r.header)
			}
			if got := a.must(200, "GET", flags, ""); got.version() != version || got.object.Data["mode"] != "blue" {
				t.Errorf("now %s", got.body)
			}
		})
	}
	// Who names no version meets no conflict.
	a.must(200, "PATCH", flags, `{"data":{"mode":"red"}}`, mergePatch...)
	a.must(200, "PUT", flags, flagsBody("", `{"mode":"green"}`))
	a.must(200, "DELETE", flags, "")
	if got := a.server.Injected()[inject.Conflict]; got != (inject.Count{Struck: 5, Of: 5}) {
		t.Errorf("counted %v", got)
	}
}

// A watch from a version and the next page of a list are told that they expired, as
// by a server that has compacted: the page with a token that goes on.
func TestInjectedGone(t *testing.T) {
	a := watched(t, injecting(t, "gone=100%"))
	a.put("a", "1", "")
	a.put("b", "1", "")
	w := a.watch(collection + "?watch=1&resourceVersion=1")
	if e := w.next(); !strings.HasPrefix(e.word(), "ERROR 410 too old resource version") {
		t.Errorf("got %s", e.word())
	}
	w.ends()
	first := a.must(200, "GET", collection+"?limit=1", "")
	r := a.do("GET", collection+"?limit=1&continue="+first.list.Continue, "")
	isStatus(t, r, 410, "Expired", "continue parameter is too old")
	if r.header.Get(inject.Header) != "gone" {
		t.Errorf("marked: %v", r.header)
	}
	if r = a.must(200, "GET", collection+"?limit=1&continue="+r.status.Continue, ""); len(r.list.Items) != 1 || r.list.Items[0].Name != "b" {
		t.Errorf("with the token of the refusal: %s", r.body)
	}
	// What needs no history is spared.
	a.watch(collection+"?watch=1").sees("ADDED a@2=1", "ADDED b@3=1")
}

func TestInjectedEndOfAWatch(t *testing.T) {
	a := watched(t, injecting(t, "watch-close=1ms"))
	a.watch(collection + "?watch=1&resourceVersion=1").ends()
}

// A write that is lost is made, and made whole; one that is reset is not made.
func TestInjectedCuts(t *testing.T) {
	for spec, code := range map[string]int{"lost=1x": 200, "reset=1x": 404} {
		t.Run(spec, func(t *testing.T) {
			a := start(t, injecting(t, spec))
			if r, err := a.try(t.Context(), "POST", collection, flagsBody("", `{"mode":"blue"}`)); err == nil {
				t.Errorf("got an answer: %d %s", r.code, r.body)
			}
			if r := a.do("GET", flags, ""); r.code != code {
				t.Errorf("afterwards: %d %s", r.code, r.body)
			}
		})
	}
}

// Whoever looks at the server or at its log sees what it does.
func TestInjectionIsTold(t *testing.T) {
	var log logged
	a := start(t, injecting(t, "lost=1x,429=1x,seed=5"), logTo(&log))
	r := a.do("GET", collection, "")
	isStatus(t, r, 429, "TooManyRequests", "")
	if r.header.Get("Retry-After") != "1" || r.header.Get(inject.Header) != "429" {
		t.Errorf("got %v", r.header)
	}
	_, _ = a.try(t.Context(), http.MethodPost, collection, flagsBody("", `{}`)) // its answer is lost
	if r := a.must(200, "GET", "/readyz?verbose", ""); !strings.Contains(r.body, "[!]faults are injected on purpose: lost=1x,429=1x,seed=5\n") {
		t.Errorf("got %q", r.body)
	}
	// The client may know that the connection is cut before that is logged.
	for until := time.Now().Add(patience); !strings.Contains(log.String(), `"lost"`) && time.Now().Before(until); {
		runtime.Gosched()
	}
	for _, part := range []string{`"injected":"429"`, `"code":0,`, `"injected":"lost"`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("no %s in %s", part, log.String())
		}
	}
	if strings.Contains(start(t).must(200, "GET", "/readyz?verbose", "").body, "injected") {
		t.Error("a server without faults speaks of them")
	}
}
