package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// logged collects what a server logs.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func logTo(l *logged) option {
	return func(o *server.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
}

func TestPanicIsAPlain500(t *testing.T) {
	var log logged
	a, h := hook(t, logTo(&log))
	h.get = func(context.Context, store.Key) (store.Record, error) { panic("secret detail") }
	r := a.do("GET", flags, "")
	isStatus(t, r, 500, "InternalError", r.header.Get("Audit-Id"))
	if strings.Contains(r.body, "secret") || !strings.Contains(log.String(), "secret detail") {
		t.Errorf("answer %s, log %s", r.body, log.String())
	}
	h.get = nil
	isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
}

func TestErrorsOfTheStore(t *testing.T) {
	broken := fmt.Errorf("disk at /var/secret: %w", errors.New("i/o error"))
	for _, c := range []struct {
		name            string
		commit, healthy error
		code            int
		reason, message string
	}{
		{"unknown", broken, nil, 500, "InternalError", "the server's log has the cause"},
		{"failed during this write", fmt.Errorf("%w: %w", store.ErrFailed, broken), nil, 500, "InternalError", "whether this write was stored is open"},
		{"failed before", nil, store.ErrFailed, 503, "ServiceUnavailable", "nothing was stored"},
		{"damage before", nil, fmt.Errorf("%w: %w", store.ErrFailed, &store.DamageError{File: "000007.sst"}), 503, "ServiceUnavailable", "cmserver check --data-dir DIR"},
		{"files taken before", nil, fmt.Errorf("%w: %w", store.ErrFailed, store.ErrTaken), 503, "ServiceUnavailable", "make a backup before the server is stopped"},
		{"closed", store.ErrClosed, nil, 503, "ServiceUnavailable", "shutting down"},
		{"no room", fmt.Errorf("%w: %w", store.ErrFull, broken), nil, 507, "InsufficientStorage", "nothing was stored"},
		{"a disk that hangs", fmt.Errorf("%w: %w", store.ErrStalled, broken), nil, 503, "ServiceUnavailable", "nothing was stored"},
		{"a cluster that is full", fmt.Errorf("%w: %w", store.ErrClusterFull, broken), nil, 507, "InsufficientStorage", "disarms its alarm"},
		{"a cluster that is away", fmt.Errorf("%w: %w", store.ErrUnreachable, broken), nil, 503, "ServiceUnavailable", "nothing was stored"},
		{"more than the store takes", fmt.Errorf("%w: %w", store.ErrTooLarge, broken), nil, 413, "RequestEntityTooLarge", "nothing was stored"},
		{"out of time under way", fmt.Errorf("%w: %w", store.ErrUnknown, context.DeadlineExceeded), nil, 504, "Timeout", "is open"},
		{"out of time", context.DeadlineExceeded, nil, 504, "Timeout", "nothing was stored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log logged
			a, h := hook(t, logTo(&log))
			version := a.create().version()
			if c.commit != nil {
				h.commit = func(context.Context, store.Txn) (store.Revision, error) { return 0, c.commit }
			}
			if c.healthy != nil {
				h.healthy = func() error { return c.healthy }
			}
			for _, r := range []result{
				a.do("POST", collection, `{"metadata":{"name":"new"}}`),
				a.do("PUT", flags, flagsBody(version, `{}`)),
				a.do("DELETE", flags, ""),
			} {
				isStatus(t, r, c.code, c.reason, c.message)
				if strings.Contains(r.body, "/var/secret") {
					t.Errorf("an internal cause got out: %s", r.body)
				}
			}
			if errors.Is(c.commit, broken) && !strings.Contains(log.String(), "i/o error") {
				t.Errorf("the cause is not in the log: %s", log.String())
			}
			// What was there is still served.
			a.must(200, "GET", flags, "")
		})
	}
}

// A read of damaged data says of what, in which file, and what to do, for people and
// for programs.
func TestAReadOfDamagedData(t *testing.T) {
	a, h := hook(t)
	a.create()
	h.get = func(_ context.Context, key store.Key) (store.Record, error) {
		return store.Record{}, &store.DamageError{Key: key, Revision: 1, File: "000007.sst", What: "its checksum"}
	}
	r := a.do("GET", flags, "")
	isStatus(t, r, 500, "InternalError", "the stored data of configmaps/default/flags is damaged (file 000007.sst)")
	isStatus(t, r, 500, "InternalError", "cmserver check --data-dir DIR")
	if d := r.status.Details; d == nil || len(d.Causes) != 1 || d.Causes[0].Type != types.CauseDamaged {
		t.Errorf("details %+v", d)
	}
}

// A client that goes away in the middle of its write: what has come whole is
// carried out.
func TestClientGoneInTheMiddleOfAWrite(t *testing.T) {
	a, h := hook(t)
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
		defer close(done)
		leave()
		// Long enough for the server to notice.
		select {
		case <-ctx.Done():
			t.Error("the write was given up")
		case <-time.After(50 * time.Millisecond):
		}
		return h.Store.Commit(ctx, txn)
	}
	if _, err := a.try(ctx, "POST", collection, flagsBody("", `{"mode":"blue"}`)); !errors.Is(err, context.Canceled) {
		t.Fatalf("the client got %v", err)
	}
	<-done
	h.commit = nil
	a.must(200, "GET", flags, "")
}

// An error that leaves no answer to give must not become the answer 200.
func TestCanceledWorkIsNoSuccess(t *testing.T) {
	st, h := start(t).store, &hooked{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Store = st
	h.commit = func(context.Context, store.Txn) (store.Revision, error) { return 0, context.Canceled }
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(ctx, "POST", collection, strings.NewReader(flagsBody("", `{}`)))
	defer func() {
		if cause := recover(); cause != nil && cause != http.ErrAbortHandler {
			t.Errorf("panic: %v", cause)
		} else if cause == nil && w.Code < 400 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}()
	server.New(server.Options{Store: h}).Handler().ServeHTTP(w, req)
}

// rawRequest sends bytes over TCP, closes the sending side as nc -N does, and
// reads all that comes back.
func rawRequest(t *testing.T, a *api, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, text)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(conn); err != nil {
		t.Log(err)
	}
	return rest.String()
}

// A client that closes its sending side after the request gets the true answer.
func TestHalfClosedClientIsAnswered(t *testing.T) {
	a, h := hook(t)
	slow := func(ctx context.Context) {
		select { // long enough for the server to notice
		case <-ctx.Done():
			t.Error("the request was given up")
		case <-time.After(50 * time.Millisecond):
		}
	}
	h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
		slow(ctx)
		return h.Store.Commit(ctx, txn)
	}
	h.get = func(ctx context.Context, key store.Key) (store.Record, error) {
		slow(ctx)
		return h.Store.Get(ctx, key, 0)
	}
	body := flagsBody("", `{"mode":"blue"}`)
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", collection, body, "HTTP/1.1 201 "},
		{"POST", collection, body, "HTTP/1.1 409 "},
		{"GET", flags, "", "HTTP/1.1 200 "},
		{"PUT", flags, flagsBody("1", `{"mode":"green"}`), "HTTP/1.1 200 "},
		{"DELETE", flags, "", "HTTP/1.1 200 "},
		{"GET", flags, "", "HTTP/1.1 404 "},
	} {
		got := rawRequest(t, a, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", c.method, c.path, len(c.body), c.body))
		if !strings.HasPrefix(got, c.want) || strings.HasSuffix(got, "\r\n\r\n") {
			t.Errorf("%s %s: got %q, want %s and a body", c.method, c.path, got, c.want)
		}
	}
}

func TestRequestThatTakesTooLong(t *testing.T) {
	a, h := hook(t, func(o *server.Options) { o.RequestTimeout = time.Millisecond })
	h.commit = func(ctx context.Context, _ store.Txn) (store.Revision, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	isStatus(t, a.do("POST", collection, flagsBody("", `{}`)), 504, "Timeout", "nothing was stored")
}

// A body that is cut off in transit is not taken for a whole one, and never
// answered as a success.
func TestBodyThatIsCutOff(t *testing.T) {
	body := flagsBody("", `{"mode":"blue"}`)
	for name, text := range map[string]string{
		"shorter than said": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body)+10, body),
		"without an end":    fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body),
		"not begun":         "Content-Length: 10\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			got := rawRequest(t, a, "POST "+collection+" HTTP/1.1\r\nHost: x\r\n"+text)
			if got != "" && !strings.HasPrefix(got, "HTTP/1.1 400 ") {
				t.Errorf("got %q", got)
			}
			isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
		})
	}
}

func TestAccessLog(t *testing.T) {
	var log logged
	a := start(t, logTo(&log))
	a.must(201, "POST", collection, flagsBody("", `{"password":"hunter2"}`))
	a.must(200, "GET", flags, "")
	text := log.String()
	for _, part := range []string{`"method":"POST"`, `"path":"` + collection + `"`, `"code":201`, `"resourceVersion":"1"`, `"duration":`, `"level":"DEBUG","msg":"request"`} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, "password") {
		t.Errorf("data got into the log: %s", text)
	}
}

func TestProbesAndDiscovery(t *testing.T) {
	a, h := hook(t)
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/readyz/"} {
		if r := a.must(200, "GET", path, ""); r.body != "ok" || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %q", path, r.body)
		}
	}
	if r := a.must(200, "GET", "/readyz?verbose", ""); !strings.Contains(r.body, "[+]store ok\n") {
		t.Errorf("got %q", r.body)
	}
	h.healthy = func() error { return errors.New("secret cause") }
	if r := a.must(500, "GET", "/readyz", ""); !strings.Contains(r.body, "[-]store failed") || strings.Contains(r.body, "secret") {
		t.Errorf("got %q", r.body)
	}
	for err, want := range map[error]string{
		fmt.Errorf("%w: %w", store.ErrFailed, &store.DamageError{File: "000007.sst", What: "secret"}): "stored data is damaged, file 000007.sst",
		fmt.Errorf("%w: secret", store.ErrFull):                                                       store.ErrFull.Error(),
	} {
		h.healthy = func() error { return err }
		if r := a.must(500, "GET", "/readyz?verbose", ""); !strings.Contains(r.body, "[-]store failed: "+want+"\n") || strings.Contains(r.body, "secret") {
			t.Errorf("got %q", r.body)
		}
	}
	a.must(200, "GET", "/livez", "")
	for path, part := range map[string]string{
		"/version": `"gitVersion":`, "/api": `"versions":["v1"]`, "/apis": `"name":"authentication.k8s.io"`, "/api/v1": `"name":"configmaps"`,
	} {
		if r := a.must(200, "GET", path, ""); !strings.Contains(r.body, part) {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

// Whatever the path, the answer is a Status and never a redirect, which clients
// would not follow with a write.
func FuzzPath(f *testing.F) {
	a := start(f)
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, seed := range []string{"/", "//", "/api/v1/../x", flags + "/", flags + "/%2e%2e/x", "/api/v1/namespaces/%2F/configmaps/x", "/%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") {
			return
		}
		req, err := http.NewRequest(http.MethodDelete, a.url+path, nil)
		if err != nil {
			return
		}
		resp, err := a.client.Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode < 400 && !strings.HasSuffix(strings.TrimSuffix(req.URL.EscapedPath(), "/"), "/configmaps") {
			t.Errorf("%q: got %d", path, resp.StatusCode)
		}
		if resp.StatusCode != 400 && resp.Header.Get("Content-Type") != types.MediaJSON {
			t.Errorf("%q: got %d as %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
		}
	})
}
