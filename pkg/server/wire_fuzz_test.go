package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// wire is a connection on which a client has sent all it ever will.
type wire struct {
	net.Conn // nil; addresses and deadlines are below
	in       *bytes.Reader

	mu   sync.Mutex
	out  bytes.Buffer  // guarded by mu
	done chan struct{} // closed with the last answer
	end  func()        // closes done
}

func newWire(sent []byte) *wire {
	w := &wire{in: bytes.NewReader(sent), done: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.done) })
	return w
}

func (w *wire) Read(b []byte) (int, error) { return w.in.Read(b) }

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// CloseWrite comes before Close, which net/http puts off for clients that still send.
func (w *wire) CloseWrite() error { w.end(); return nil }
func (w *wire) Close() error      { w.end(); return nil }

func (w *wire) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (w *wire) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// wires are what a server listens on.
type wires chan net.Conn

func (l wires) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l wires) Close() error   { return nil }
func (l wires) Addr() net.Addr { return &net.TCPAddr{} }

// served is a request that reached the handler, and the version before and after.
type served struct {
	method, path  string
	before, after store.Revision
}

// send gives raw bytes to the server as those of a connection, and tells what came
// back, and which requests they were taken for.
func (a *api) send(t *testing.T, raw []byte) (answers []byte, requests []served) {
	t.Helper()
	listener := make(wires, 1)
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := served{method: r.Method, path: r.URL.Path, before: a.store.State().Current}
		defer func() {
			s.after = a.store.State().Current
			requests = append(requests, s) // one at a time, and read when the connection is done
		}()
		a.server.Handler().ServeHTTP(w, r)
	}), MaxHeaderBytes: 64 << 10, DisableGeneralOptionsHandler: true} // else OPTIONS * is net/http's to answer
	ended := make(chan error, 1)
	go func() { ended <- hs.Serve(listener) }()
	w := newWire(raw)
	listener <- w
	<-w.done
	close(listener)
	if err := hs.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.out.Bytes()), requests
}

// statusIn reads a Status in any form that a client may have asked for.
func statusIn(mediaType string, body []byte) (status metav1.Status, err error) {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	switch mediaType {
	case types.MediaJSON:
		err = json.Unmarshal(body, &status)
	case types.MediaYAML:
		err = yaml.Unmarshal(body, &status)
	case types.MediaProtobuf:
		var envelope runtime.Unknown
		if err = envelope.Unmarshal(bytes.TrimPrefix(body, []byte("k8s\x00"))); err == nil {
			err = status.Unmarshal(envelope.Raw)
			status.Kind = envelope.Kind
		}
	default:
		err = errors.New("the media type is " + mediaType)
	}
	if err == nil && status.Kind != "Status" {
		err = errors.New("the kind is " + status.Kind)
	}
	return status, err
}

// judge checks one answer of the handler's.
func (s served) judge(t *testing.T, resp *http.Response, body []byte) {
	t.Helper()
	wrote := s.before != s.after
	if resp.StatusCode < 400 {
		if wrote && (s.method == http.MethodGet || s.method == http.MethodHead || s.method == http.MethodOptions) {
			t.Errorf("a write is made by %s %q", s.method, s.path)
		}
		return
	}
	if s.method == http.MethodHead {
		return // has no body
	}
	status, err := statusIn(resp.Header.Get("Content-Type"), body)
	if err != nil || int(status.Code) != resp.StatusCode || status.Status != metav1.StatusFailure || status.Reason == "" && resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("%s %q: %d is answered by %q (%v)", s.method, s.path, resp.StatusCode, body, err)
	}
	// A client may ask for what can't be had in time.
	if resp.StatusCode >= 500 && (resp.StatusCode != http.StatusGatewayTimeout || status.Reason != metav1.StatusReasonTimeout) {
		t.Errorf("%s %q: %d %s", s.method, s.path, resp.StatusCode, body)
	}
	if wrote && !strings.Contains(status.Message, "unknown") {
		t.Errorf("%s %q is refused with %s, and something was written", s.method, s.path, body)
	}
}

// ownCodes are the refusals of net/http, of what is no request that it could hand on.
var ownCodes = map[int]bool{400: true, 408: true, 413: true, 414: true, 417: true, 431: true, 501: true, 505: true}

// judgeAll reads the answers on a connection as a client would, and checks each.
func judgeAll(t *testing.T, answers []byte, requests []served) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(answers))
	for i := 0; ; {
		if _, err := r.Peek(1); err != nil {
			if i < len(requests) {
				t.Errorf("%d answers to %d requests: %q", i, len(requests), answers)
			}
			return
		}
		method := http.MethodGet
		if i < len(requests) {
			method = requests[i].method
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%v in %q", err, answers)
		}
		if resp.StatusCode < 200 {
			continue // go on
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Errorf("the answer to %s is cut: %v in %q", method, err, answers)
		}
		if i < len(requests) {
			requests[i].judge(t, resp, body)
			i++
			continue
		}
		if !ownCodes[resp.StatusCode] || !resp.Close && resp.ProtoMinor == 1 {
			t.Errorf("%d comes without a request: %q", resp.StatusCode, answers)
		}
		return
	}
}

// wireSeeds are connections, of which some should be refused.
var wireSeeds = []string{
	"GET /api/v1/namespaces/default/configmaps/flags HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/v1/configmaps?limit=1&labelSelector=a%21%3Db HTTP/1.1\r\nHost: x\r\nAccept: application/yaml\r\nAccept-Encoding: gzip\r\n\r\n",
	"GET /api/v1/configmaps?watch=1&resourceVersion=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"GET /api/v1/watch/namespaces/default/configmaps/flags HTTP/1.1\r\nHost: x\r\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n\r\n",
	"GET /api/v1/configmaps?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /openapi/v2 HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nAccept: text/html\r\n\r\n",
	"GET /apis HTTP/1.1\r\nHost: x\r\nAccept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\n\r\n",
	"GET /api/v1/nowhere HTTP/1.1\r\nHost: x\r\nAccept: application/vnd.kubernetes.protobuf\r\n\r\n",
	"HEAD /readyz?verbose HTTP/1.0\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
	"CONNECT example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n{\"metadata\":{\"name\":\"new\"}}GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
	"POST /api/v1/namespaces/default/configmaps?dryRun=All HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1b\r\n{\"metadata\":{\"name\":\"new\"}}\r\n0\r\n\r\n",
	"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n1b\r\n{\"metadata\":{\"name\":\"new\"}}\r\n0\r\n\r\n",
	"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n{}",
	"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b",
	"PUT /api/v1/namespaces/default/configmaps/flags HTTP/1.1\r\nHost: x\r\nContent-Length: 86\r\nContent-Type: application/yaml\r\n\r\n{\"metadata\":{\"name\":\"flags\",\"resourceVersion\":\"1\"},\"data\":{\"k\":\"v\"},\"immutable\":true }",
	"PATCH /api/v1/namespaces/default/configmaps/flags HTTP/1.1\r\nHost: x\r\nContent-Type: application/merge-patch+json\r\nContent-Length: 20\r\n\r\n{\"data\":{\"k\":\"v\"} } ",
	"PATCH /api/v1/namespaces/default/configmaps/new?fieldManager=m&force=1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/apply-patch+yaml\r\nContent-Length: 60\r\n\r\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n# xxxxxx",
	"DELETE /api/v1/namespaces/default/configmaps?labelSelector=a HTTP/1.1\r\nHost: x\r\n\r\nDELETE /api/v1/namespaces/default/configmaps/flags?resourceVersion=1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"DELETE /api/v1/namespaces/%2e%2e/configmaps/flags HTTP/1.1\r\nHost: x\r\nIf-Match: 1\r\n\r\n",
	"PUT /api/v1/namespaces/default/finalize HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 127.0.0.1\r\nX-Remote-User: admin\r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n",
	"GET /api/v1/namespaces/default/configmaps/flags?timeout=1ns&resourceVersion=9223372036854775807 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET http://other/api/v1/namespaces?fieldSelector=status.phase%3DActive HTTP/1.1\r\nHost: x\r\nAccept: */*;q=0,application/json;q=1.5\r\n\r\n",
	"GET /version HTTP/1.1\r\nHost: x\r\nHost: y\r\n : z\r\n\r\n",
}

// FuzzWire sends any bytes as those of a connection. Nothing makes the server fail;
// each refusal is a Status of its status line's code, and writes nothing; there is an
// answer for each request and none without one; and afterwards others are served.
func FuzzWire(f *testing.F) {
	for _, seed := range wireSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a := start(t)
		a.create()
		answers, requests := a.send(t, raw)
		judgeAll(t, answers, requests)
		a.t = t
		a.must(200, "GET", "/readyz", "")
		a.must(201, "POST", "/api/v1/namespaces/afterwards/configmaps", named("other"))
		if r := a.do("GET", flags, ""); r.code != 200 && r.code != 404 {
			t.Errorf("afterwards flags is answered with %d %s", r.code, r.body)
		}
	})
}
