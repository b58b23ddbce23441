package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// Each verb makes its change again, on a fresh copy, after one refusal.
func TestAChangeIsMadeAgainOnAFreshCopy(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		args   []string
		want   string
	}{
		{"set", "PUT", []string{"set", "app", "a=9"}, `a: "9"`},
		{"set or create", "PUT", []string{"set", "app", "a=9", "--create"}, `a: "9"`},
		{"unset", "PUT", []string{"unset", "app", "c"}, `a: "1"`},
		{"label", "PUT", []string{"label", "app", "t=x"}, "t: x"},
		{"annotate", "PUT", []string{"annotate", "app", "t=x"}, "t: x"},
		{"update", "PUT", []string{"update", "app", "--key=a", "--", "tr", "1", "9"}, `a: "9"`},
		{"patch", "PATCH", []string{"patch", "app", "-p", `{"data":{"a":"9"}}`}, `a: "9"`},
		{"JSON patch", "PATCH", []string{"patch", "app", "--type=json", "-p", `[{"op":"replace","path":"/data/a","value":"9"}]`}, `a: "9"`},
		{"copy", "PUT", []string{"copy", "other", "app", "--overwrite"}, `a: "9"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1", "--from-literal=b=2", "--from-literal=c=3")
			b.past("create", "other", "--from-literal=a=9", "--from-literal=b=3")
			b.meddle = once(c.method, func() { b.past("set", "app", "b=3") })
			b.must(c.args...)
			b.holds(c.want, `b: "3"`)
			reads := "GET 200"
			if c.name == "copy" {
				reads = "GET 200, GET 200"
			}
			want := fmt.Sprintf("%s, %s 409, GET 200, %s 200", reads, c.method, c.method)
			if got := b.seen(); got != want {
				t.Errorf("requests were %s, want %s", got, want)
			}
		})
	}
}

// A condition given by the caller travels in the request: the write that meets
// another one on the way is refused by the server, and that is the end.
func TestAGuardIsDecidedByTheServer(t *testing.T) {
	for method, args := range map[string][]string{
		"PUT":   {"label", "app", "t=x"},
		"PATCH": {"patch", "app", "-p", `{"data":{"a":"9"}}`},
	} {
		t.Run(method, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1")
			b.meddle = once(method, func() { b.past("set", "app", "b=3") })
			e := b.cmctl(append(args, "--resource-version=1")...)
			if got := b.seen(); e.code != exitConflict || got != "GET 200, "+method+" 409" {
				t.Errorf("it ended with %d after %s:\n%s", e.code, got, e.err)
			}
			b.holds(`a: "1"`, `b: "3"`)
		})
	}
}

// A label that somebody else set between two attempts is not overwritten.
func TestALabelIsLookedAtOnEachCopyAnew(t *testing.T) {
	b := newBench(t)
	b.past("create", "app")
	b.meddle = once("PUT", func() { b.past("label", "app", "t=theirs") })
	if e := b.cmctl("label", "app", "t=mine"); e.code != exitConflict || !strings.Contains(e.err, `"theirs"`) {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
	b.holds("t: theirs")
}

// Only a real NotFound is absence; any other failure to read stops before a
// write.
func TestNothingIsMadeAfterAFailedRead(t *testing.T) {
	for name, answer := range map[string]struct {
		code int
		body string
	}{
		"500":                   {500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`},
		"404 that is no Status": {404, "<html>not here</html>"},
		"403":                   {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`},
		"a body cut off":        {200, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"na`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			writes := 0
			b.meddle = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet {
					writes++
				}
				w.WriteHeader(answer.code)
				_, _ = io.WriteString(w, answer.body)
				return true
			}
			if e := b.cmctl("set", "app", "a=1", "--create"); e.code == 0 || writes > 0 {
				t.Errorf("it ended with %d after %d writes:\n%s", e.code, writes, e.err)
			}
		})
	}
}

// unavailable answers writes as a server does that is starting or can't store.
func unavailable(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"storage takes no writes; nothing was stored","reason":"ServiceUnavailable","code":503}`)
	return true
}

// A server that says when to come back has stored nothing, so the outcome is
// known; how often it was tried, how long and why it failed is said.
func TestGivingUpOnAnUnavailableServer(t *testing.T) {
	for name, args := range map[string][]string{
		"set":    {"set", "app", "a=2"},
		"create": {"create", "app2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1")
			b.meddle = unavailable
			e := b.cmctl(append(args, "--max-attempts=1")...)
			if e.code != exitUnreachable {
				t.Errorf("it ended with %d", e.code)
			}
			for _, want := range []string{"after 1 attempt in ", "1 delay)", "storage takes no writes; nothing was stored"} {
				if !strings.Contains(e.err, want) {
					t.Errorf("no %q in\n%s", want, e.err)
				}
			}
			if strings.Contains(e.err, "unknown") {
				t.Errorf("the outcome is known, and it says\n%s", e.err)
			}
		})
	}
}

// A store that takes no writes until it is restarted is not waited for: the server's
// words come at once, and no advice to try again.
func TestAStoreThatTakesNoWritesIsNotWaitedFor(t *testing.T) {
	for name, args := range map[string][]string{
		"set":    {"set", "app", "a=2"},
		"create": {"create", "app2"},
		"apply":  {"apply", "-f", manifestFile(t, `{a: "2"}`), "--force"},
		"delete": {"delete", "app"},
		"undo":   {"undo", "app", "--dry-run=server"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1")
			b.past("set", "app", "a=3")
			writes := 0
			b.meddle = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet {
					return false
				}
				writes++
				answerStatus(t, w, types.StoreReadOnly())
				return true
			}
			e := b.cmctl(args...)
			if e.code != exitUnreachable || writes != 1 {
				t.Errorf("it ended with %d after %d writes", e.code, writes)
			}
			if !strings.Contains(e.err, "takes no writes until the server is restarted; nothing was stored") ||
				!strings.Contains(e.err, "hint: waiting is in vain") || strings.Contains(e.err, "again") {
				t.Errorf("it says\n%s", e.err)
			}
		})
	}
}

// answerStatus answers as a server that refuses with err.
func answerStatus(t *testing.T, w http.ResponseWriter, err *types.StatusError) {
	body, fault := json.Marshal(err.ErrStatus)
	if fault != nil {
		t.Error(fault)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	_, _ = w.Write(body) // a client that is gone fails the test by itself
}

// A computed change whose answer is lost ends with both versions named where
// nothing can tell, and is not made twice.
func TestAComputedChangeIsNotMadeTwice(t *testing.T) {
	for name, args := range map[string][]string{
		"update":                 {"update", "app", "--key=a", "--", "sed", "s/$/x/"},
		"set with a condition":   {"set", "app", "a=1x", "--if=a=1"},
		"unset with a condition": {"unset", "app", "b", "--if=a=1"},
		"JSON patch":             {"patch", "app", "--type=json", "-p", `[{"op":"replace","path":"/data/a","value":"1x"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1", "--from-literal=b=2")
			writes := 0
			b.meddle = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case strings.HasSuffix(r.URL.Path, "/history"):
					http.NotFound(w, r)
					return true
				case r.Method == http.MethodGet:
					return false
				}
				writes++
				to, err := url.Parse(b.direct)
				if err != nil {
					t.Error(err)
				}
				httputil.NewSingleHostReverseProxy(to).ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler) // it landed; its answer goes nowhere
			}
			e := b.cmctl(args...)
			if e.code != exitUnreachable || writes != 1 {
				t.Errorf("it ended with %d after %d writes", e.code, writes)
			}
			for _, want := range []string{"made from version 1", "it is at version 2 now", "cmctl get app"} {
				if !strings.Contains(e.err, want) {
					t.Errorf("no %q in\n%s", want, e.err)
				}
			}
		})
	}
}

// A dry run that a server stores all the same is no preview, and is shouted
// about.
func TestAStoredDryRunIsFound(t *testing.T) {
	for name, args := range map[string][]string{
		"set":   {"set", "app", "a=2"},
		"patch": {"patch", "app", "-p", `{"data":{"a":"2"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1")
			args := append(args, "--dry-run=server")
			if e := b.cmctl(args...); e.code != 0 || e.err != "" {
				t.Errorf("with a server that knows dry runs it ended with %d:\n%s", e.code, e.err)
			}
			b.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
				q := r.URL.Query()
				q.Del("dryRun")
				r.URL.RawQuery = q.Encode()
				return false
			}
			if e := b.cmctl(args...); e.code != exitFailed || !strings.Contains(e.err, "THE DRY RUN WAS STORED, as version 2") {
				t.Errorf("with one that doesn't it ended with %d:\n%s", e.code, e.err)
			}
		})
	}
}

// A server that keeps nothing of what it was sent is told from one that does.
func TestWhatIsNotKeptIsFound(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	b.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			body = bytes.ReplaceAll(body, []byte(`"a":"2"`), []byte(`"a":"1"`))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		return false
	}
	if e := b.cmctl("set", "app", "a=2"); e.code != exitFailed || !strings.Contains(e.err, "stored nothing of it (data[a])") {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
}

// Dozens of refusals are not told one by one.
func TestManyConflictsAreToldShortly(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	n := 0
	b.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && n < 9 {
			n++
			b.past("set", "app", fmt.Sprintf("b=%d", n))
		}
		return false
	}
	e := b.cmctl("set", "app", "a=2")
	if e.code != 0 || strings.Count(e.err, "refused") != 5 || !strings.Contains(e.err, "attempt 10 of 50: landed") {
		t.Errorf("it ended with %d:\n%s", e.code, e.err)
	}
}

// Hints repeat the flags that choose the server.
func TestHintsLeadToTheSameServer(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a=1")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "nope"}, "'cmctl get -A --server=" + b.direct + "' lists"},
		{[]string{"set", "app", "a=1", "--uid=other"}, "'cmctl get app --server=" + b.direct + " --namespace=default'"},
		{[]string{"copy", "app", "app", "--to-namespace=default"}, "give NEWNAME"},
	} {
		e := b.cmctl(append(c.args, "--server="+b.direct, "--namespace=default")...)
		if !strings.Contains(e.err, c.want) {
			t.Errorf("%v: no %q in\n%s", c.args, c.want, e.err)
		}
	}
}

// What would be larger than a server takes is not sent, and the error names what
// makes it so.
func TestWhatIsTooLargeIsNotSent(t *testing.T) {
	b := newBench(t)
	b.past("create", "app", "--from-literal=a="+strings.Repeat("x", 900<<10))
	large := strings.Repeat("y", 100<<10)
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, []byte(large+large), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"set", "app", "--from-file=b=" + path}, "data[a] 921600, data[b] 204800"},
		{[]string{"set", "new", "--create", "--from-file=a=" + path, "--from-file=b=" + path, "--from-file=c=" + path, "--from-file=d=" + path, "--from-file=e=" + path, "--from-file=f=" + path}, "data[a] 204800"},
		{[]string{"update", "app", "--key=a", "--", "sh", "-c", "cat; cat " + path}, "data[a] 1126400"},
		{[]string{"annotate", "app", "a=" + large, "b=" + large, "c=" + large}, "the annotations are 307203 bytes together"},
	} {
		b.seen()
		e := b.cmctl(c.args...)
		if e.code != exitFailed || !strings.Contains(e.err, "too large: ") || !strings.Contains(e.err, c.want) || !strings.Contains(e.err, "nothing was written") {
			t.Errorf("%s ended with %d and no %q in\n%s", c.args[0], e.code, c.want, e.err)
		}
		if seen := b.seen(); strings.Contains(seen, "PUT") || strings.Contains(seen, "POST") || strings.Contains(seen, "PATCH") {
			t.Errorf("%s sent a write: %s", c.args[0], seen)
		}
	}
}
