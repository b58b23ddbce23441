package conformance

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// replayOne replays one step, whose path is /, against a handler.
func replayOne(t *testing.T, step string, handler http.HandlerFunc) object {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/{$}", handler)
	hs := httptest.NewServer(mux)
	t.Cleanup(hs.Close)
	scenarios, err := parse([]byte(`{"scenarios": [{"name": "a", "steps": [` + step + `]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answers, err := Server{URL: hs.URL}.Replay(scenarios[0])
	if err != nil {
		t.Fatal(err)
	}
	return answers[0].(object)
}

func TestRequestsAreSentAsWritten(t *testing.T) {
	for _, c := range []struct{ name, step, want string }{
		{"the defaults", `{"method": "GET", "path": "/api"}`,
			"GET /base/api HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer secret\r\nUser-Agent: conformance\r\nAccept: application/json\r\n\r\n"},
		{"a body, in its order", `{"method": "POST", "path": "/a%zz", "body": {"b": [1, 2.50], "a": {"repeat": ["é<", 2]}}}`,
			"POST /base/a%zz HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer secret\r\n" +
				"User-Agent: conformance\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: 31\r\n\r\n" +
				`{"b": [1, 2.50], "a": "é<é<"}`},
		{"a raw body", `{"method": "DELETE", "path": "/", "raw": ["{", {"repeat": ["x", 3]}]}`,
			"DELETE /base/ HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer secret\r\n" +
				"User-Agent: conformance\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n{xxx"},
		{"headers given and left out", `{"method": "PUT", "path": "/", "headers": {"user-agent": null, "Accept": "*/*"}}`,
			"PUT /base/ HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer secret\r\nAccept: */*\r\nContent-Length: 0\r\n\r\n"},
		{"query parameters, repeated ones too", `{"method": "FOO", "path": "/", "query": {"z": "a b&", "limit": ["1", "2"]}}`,
			"FOO /base/?z=a+b%26&limit=1&limit=2 HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer secret\r\nUser-Agent: conformance\r\nAccept: application/json\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenarios, err := parse([]byte(`{"scenarios": [{"name": "a", "steps": [` + c.step + `]}]}`))
			if err != nil {
				t.Fatal(err)
			}
			client, err := newClient(Server{URL: "http://HOST:80/base/", Token: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			r, err := values{}.request(scenarios[0].Steps[0])
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(c.want, "HOST", "HOST:80")
			if got := string(client.encode(r)); got != want {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

func TestAnAnswerThatComesBeforeTheBodyIsReadCounts(t *testing.T) {
	answer := replayOne(t, `{"method": "POST", "path": "/", "raw": {"repeat": ["x", 8000000]}}`,
		func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
	if got := encodeJSON(answer); got != `{"code": 413, "contentType": null}` {
		t.Errorf("got %s", got)
	}
}

func TestNoAnswerIsAnAnswerToCompare(t *testing.T) {
	answer := replayOne(t, `{"method": "GET", "path": "/"}`,
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if answer.text("error") == "" {
		t.Errorf("got %s", encodeJSON(answer))
	}
}

// stream gives these lines and more later, which does not come.
func stream(lines string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, lines) // a client that left needs nothing
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// ended gives these lines and ends.
func ended(lines string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, lines) }
}

func TestAWatchThatIsNotClosedInTimeIsOpen(t *testing.T) {
	t.Parallel()
	answer := replayOne(t, `{"kind": "watch", "method": "GET", "path": "/", "timeout": 1}`, stream(""))
	if answer.get("closed") != false {
		t.Errorf("got %s", encodeJSON(answer))
	}
}

func TestAWatchTellsItsEventsAndWhetherItEnded(t *testing.T) {
	t.Parallel()
	const event = `{"type": "ADDED", "object": {"metadata": {"resourceVersion": "7"}}}` + "\n"
	const wantEvent = `{"type": "ADDED", "object": {"metadata": {"resourceVersion": "<rv1>"}}}`
	for _, c := range []struct {
		name, step string
		server     http.HandlerFunc
		want       string
	}{
		{"as many as are awaited", `"events": 1`, stream(event + event), `"events": [` + wantEvent + `]`},
		{"fewer, as it ended", `"events": 2`, ended(event), `"events": [` + wantEvent + `]`},
		{"all until it ended", `"timeout": 30`, ended(event + event), `"events": [` + wantEvent + `, ` + wantEvent + `], "closed": true`},
		{"lines that are no events", `"timeout": 30`, ended("\n{\"type\": 1}\n{x\n"),
			`"events": [{"notAnEvent": {"type": 1}}, {"text": "{x\n"}], "closed": true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			step := `{"kind": "watch", "method": "GET", "path": "/", ` + c.step + `}`
			answer := replayOne(t, step, c.server)
			for _, m := range Compare(mustDecode(t, `{"code": 200, "contentType": "text/plain; charset=utf-8", `+c.want+`}`), answer) {
				t.Error(m)
			}
		})
	}
}

// A server that speaks no HTTP, so that nothing of the answer is net/http's.
func TestHeadersThatCountAreCompared(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 504 Gateway Timeout\r\nwarning: one\r\nWarning: two\r\nRetry-After: 1\r\nDate: now\r\n"+
					"Content-Type: application/json; charset=x\r\nConnection: close\r\n\r\n{x")
			}
			conn.Close()
		}
	}()
	scenarios, err := parse([]byte(`{"scenarios": [{"name": "a", "steps": [{"method": "GET", "path": "/"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answers, err := Server{URL: "http://" + listener.Addr().String()}.Replay(scenarios[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"code": 504, "contentType": "application/json; charset=x",
		"headers": {"Retry-After": ["1"], "Warning": ["one", "two"]}, "body": {"text": "{x"}}`
	for _, m := range Compare(mustDecode(t, want), answers[0]) {
		t.Error(m)
	}
}
