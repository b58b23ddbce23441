package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
)

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestNobodyListens(t *testing.T) {
	server := closedPort(t)
	m := connect(t, client.TargetOptions{Server: server}, client.Options{}).ConfigMaps(namespace)
	want := "cannot reach " + server + ": connection refused; is cmserver running? give another address with --server"
	for verb, call := range calls {
		err := call(t.Context(), m)
		if !isUnsent(err) || !client.IsUnreachable(err) || err.Error() != want {
			t.Errorf("%s: got %v, want an UnsentError: %s", verb, err, want)
		}
	}
}

func TestACallThatWasCancelledBeforeIsNotSent(t *testing.T) {
	api := record(realAPI(t))
	m := mapsOf(t, api)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for verb, call := range calls {
		err := call(ctx, m)
		if !isUnsent(err) || !errors.Is(err, context.Canceled) || client.IsUnreachable(err) {
			t.Errorf("%s: got %v", verb, err)
		}
	}
	if n := len(api.requests); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestHTTPSToAServerOfHTTP(t *testing.T) {
	server := strings.Replace(listen(t, realAPI(t)), "http://", "https://", 1)
	m := connect(t, client.TargetOptions{Server: server}, client.Options{}).ConfigMaps(namespace)
	if err := calls["put"](t.Context(), m); !isUnsent(err) || !strings.Contains(err.Error(), "does not speak https") {
		t.Errorf("got %v", err)
	}
}

// hangUp reads a request and closes the connection, after a beginning of an
// answer.
func hangUp(beginning string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what can't be read is as good as read
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, beginning) // the other side may be gone
	})
}

// unanswered tells whether the answer to a call was lost, as it is called for a write
// and for a read.
func unanswered(verb string, err error) bool {
	reads := slices.Contains([]string{"get", "list"}, verb)
	return !isUnsent(err) && isUnread(err) == reads && isLost(err) != reads
}

func TestAConnectionThatBreaksLosesTheAnswer(t *testing.T) {
	for name, beginning := range map[string]string{
		"before the answer":    "",
		"in its first line":    "HTTP/1.1 20",
		"in its header":        "HTTP/1.1 200 OK\r\nContent-Le",
		"before its body":      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
		"in the middle of it":  "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"kind\":",
		"in the middle of 201": "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"kind\":\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			m := mapsOf(t, hangUp(beginning))
			for verb, call := range calls {
				err := call(t.Context(), m)
				if !unanswered(verb, err) || !client.IsUnreachable(err) {
					t.Errorf("%s: got %v, want an UnreadError or a LostError", verb, err)
				}
				if text := err.Error(); strings.Contains(text, "dial tcp") || strings.Contains(text, `Get "`) || !strings.Contains(text, "configmaps ") {
					t.Errorf("%s: %q is not for a person", verb, text)
				}
			}
		})
	}
}

func TestARefusalWhoseBodyBreaksOffIsNoAnswerOfTheAPI(t *testing.T) {
	m := mapsOf(t, hangUp("HTTP/1.1 404 Not Found\r\nContent-Length: 500\r\n\r\n{\"kind\":\"Status\""))
	for verb, call := range calls {
		err := call(t.Context(), m)
		if !errors.As(err, new(*client.UnexpectedError)) || passesForAnAnswer(err) || isLost(err) {
			t.Errorf("%s: got %v", verb, err)
		}
	}
}

func TestTheCodeOfAConflictIsEnoughForAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		beginning string
		reads     bool // as the API's answer, by a write
	}{
		"no body":          {"Content-Type: application/json\r\n\r\n", true},
		"half a Status":    {"Content-Type: application/json\r\n\r\n{\"kind\":\"Status\"", true},
		"half a page":      {"Content-Type: text/html\r\n\r\n<html>", false},
		"half of a string": {"\r\nconfl", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapsOf(t, hangUp("HTTP/1.1 409 Conflict\r\nContent-Length: 500\r\n"+c.beginning))
			for verb, call := range calls {
				err := call(t.Context(), m)
				isWrite := slices.Contains(writes, verb)
				switch {
				case isLost(err) || isUnsent(err):
					t.Errorf("%s: a refusal is taken for a loss: %v", verb, err)
				case !c.reads || !isWrite:
					if !errors.As(err, new(*client.UnexpectedError)) || passesForAnAnswer(err) {
						t.Errorf("%s: got %v", verb, err)
					}
				case apierrors.IsAlreadyExists(err) != (verb == "create"), apierrors.IsConflict(err) == (verb == "create"):
					t.Errorf("%s: got %v", verb, err)
				}
			}
		})
	}
}

// silence never answers; its request ends when the client goes away.
func silence(arrived chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then net/http does not notice a client that is gone
		arrived <- struct{}{}
		<-r.Context().Done()
	})
}

func TestASilentServerIsGivenUpAfterTheRequestTimeout(t *testing.T) {
	arrived := make(chan struct{}, 1)
	server := listen(t, silence(arrived))
	m := connect(t, client.TargetOptions{Server: server}, client.Options{RequestTimeout: 500 * time.Millisecond}).ConfigMaps(namespace)
	for _, verb := range []string{"get", "put"} {
		err := calls[verb](t.Context(), m)
		<-arrived
		if !unanswered(verb, err) || !client.IsUnreachable(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", verb, err)
		}
		if !strings.Contains(err.Error(), "no answer within 500ms") {
			t.Errorf("%s: got %v", verb, err)
		}
	}
}

func TestACallerThatGoesAwayDuringAWriteHasLostItsAnswer(t *testing.T) {
	arrived := make(chan struct{}, 1)
	m := mapsOf(t, silence(arrived))
	for _, verb := range writes {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		err := calls[verb](ctx, m)
		if !isLost(err) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", verb, err)
		}
	}
}

// mortal serves connections that die under their second request, after reading
// it whole: the moment at which net/http likes to try again by itself.
type mortal struct {
	net.Listener
	requests chan string // methods; deep enough for every test
	wait     chan struct{}
}

func serveMortal(t *testing.T) *mortal {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mortal{Listener: l, requests: make(chan string, 16), wait: make(chan struct{})}
	go func() {
		defer close(m.wait)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			m.serve(conn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-m.wait })
	return m
}

func (m *mortal) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for n := range 2 {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		m.requests <- req.Method
		if n == 0 {
			const body = `{"gitVersion":"v1"}`
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n"+body) // read by the client or not
		}
	}
}

func TestAWriteIsSentOnceWhenAnOldConnectionDies(t *testing.T) {
	for _, verb := range writes {
		t.Run(verb, func(t *testing.T) {
			server := serveMortal(t)
			c := connect(t, client.TargetOptions{Server: server.Addr().String()}, client.Options{})
			if _, err := c.ServerVersion(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := calls[verb](t.Context(), c.ConfigMaps(namespace))
			if !isLost(err) {
				t.Errorf("got %v, want a LostError", err)
			}
			c.CloseIdleConnections()
			var methods []string
			for len(server.requests) > 0 {
				methods = append(methods, <-server.requests)
			}
			if len(methods) != 2 || methods[0] != "GET" {
				t.Errorf("the server got %v, want the GET and one write", methods)
			}
		})
	}
}

func TestARedirectedWriteIsNotFollowed(t *testing.T) {
	elsewhere := record(realAPI(t))
	other := listen(t, elsewhere)
	for _, code := range []int{301, 302, 303, 307, 308} {
		m := mapsOf(t, stub(code, "text/plain", "", "Location", other+"/moved"))
		for _, verb := range writes {
			err := calls[verb](t.Context(), m)
			if err == nil || !strings.Contains(err.Error(), other+"/moved") {
				t.Errorf("%d %s: got %v, want the location named", code, verb, err)
			}
		}
	}
	if n := len(elsewhere.requests); n != 0 {
		t.Errorf("%d requests were followed", n)
	}
}

func TestARedirectedWriteIsNotTakenForDone(t *testing.T) {
	// On its own server too: followed as a GET, it would bring an object back
	// that looks like the result of a write that never was.
	api := realAPI(t)
	mustCreate(t, mapsOf(t, api), flags("a", "0"))
	m := mapsOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Redirect(w, r, "/api/v1/namespaces/team-a/configmaps/flags", http.StatusSeeOther)
			return
		}
		api.ServeHTTP(w, r)
	}))
	for _, verb := range writes {
		if err := calls[verb](t.Context(), m); !errors.As(err, new(*client.UnexpectedError)) {
			t.Errorf("%s: got %v", verb, err)
		}
	}
}

func TestARedirectedReadStaysOnItsServer(t *testing.T) {
	api := realAPI(t)
	elsewhere := record(api)
	other := listen(t, elsewhere)
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/away"):
			http.Redirect(w, r, other+"/version", http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/loop"):
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/here"):
			http.Redirect(w, r, strings.TrimSuffix(r.URL.Path, "here")+"flags", http.StatusFound)
		default:
			api.ServeHTTP(w, r)
		}
	})
	m := connect(t, client.TargetOptions{Server: listen(t, front), Credentials: client.Credentials{Token: "secret"}}, client.Options{}).ConfigMaps(namespace)
	mustCreate(t, m, flags("a", "1"))

	for _, name := range []string{"away", "loop"} {
		if _, err := m.Get(t.Context(), name); !errors.As(err, new(*client.UnexpectedError)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(elsewhere.requests); n != 0 {
		t.Errorf("%d requests went to another server, with the credentials", n)
	}
	// It is followed, and what it leads to is then seen to be another object.
	if _, err := m.Get(t.Context(), "here"); err == nil || !strings.Contains(err.Error(), "200 OK") {
		t.Errorf("here: got %v", err)
	}
}

func TestATraceTellsNeitherCredentialsNorData(t *testing.T) {
	var lines []string
	server := listen(t, realAPI(t))
	c := connect(t, client.TargetOptions{Server: server, Credentials: client.Credentials{Token: "token-secret"}}, client.Options{
		FieldManager: "tester", Trace: func(line string) { lines = append(lines, line) },
	})
	m := c.ConfigMaps(namespace)
	mustCreate(t, m, flags("password", "data-secret"))
	mustGet(t, m, "flags")
	if _, err := m.Get(t.Context(), "nope"); err == nil {
		t.Fatal("found what is not there")
	}
	for i, want := range []string{
		"POST " + server + "/api/v1/namespaces/team-a/configmaps?fieldManager=tester&fieldValidation=Strict 201 Created in ",
		"GET " + server + "/api/v1/namespaces/team-a/configmaps/flags 200 OK in ",
		"GET " + server + "/api/v1/namespaces/team-a/configmaps/nope 404 Not Found in ",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d of %q does not begin with %q", i, lines, want)
		}
	}
	if text := strings.Join(lines, "\n"); strings.Contains(text, "secret") {
		t.Errorf("a secret is in %s", text)
	}
}

func TestWarningsArePassedOn(t *testing.T) {
	var warnings []string
	h := stub(404, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`,
		"Warning", `299 - "first"`, "Warning", `299 - "second \"quoted\""`, "Warning", "not a warning")
	c := connect(t, client.TargetOptions{Server: listen(t, h)}, client.Options{Warn: func(m string) { warnings = append(warnings, m) }})
	if _, err := c.ConfigMaps(namespace).Get(t.Context(), "flags"); err == nil {
		t.Fatal("no error")
	}
	if want := []string{"first", `second "quoted"`}; !slices.Equal(warnings, want) {
		t.Errorf("got %q, want %q", warnings, want)
	}
}

func TestManyGoroutinesShareAClient(t *testing.T) {
	var traced atomic.Int64
	c := connect(t, client.TargetOptions{Server: listen(t, realAPI(t))}, client.Options{Trace: func(string) { traced.Add(1) }})
	done := make(chan error)
	for range 16 {
		go func() {
			_, err := c.ConfigMaps(namespace).List(t.Context(), client.ListOptions{})
			done <- err
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if traced.Load() != 16 {
		t.Errorf("%d lines of trace", traced.Load())
	}
}
