package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/inject"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/test/pipes"
)

// overHTTP2 serves a store over HTTP/2, all of it on one connection.
func overHTTP2(t *testing.T, o server.Options) (client *http.Client, s *server.Server, end func()) {
	var two http.Protocols
	two.SetUnencryptedHTTP2(true)
	s = server.New(o)
	hs := &http.Server{Handler: s.Handler(), Protocols: &two}
	hs.RegisterOnShutdown(s.EndWatches)
	l := pipes.Listen()
	served := make(chan error, 1)
	go func() { served <- hs.Serve(l) }()
	transport := &http.Transport{Protocols: &two, DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial(), nil }}
	return &http.Client{Transport: transport}, s, func() {
		if err := hs.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		<-served
	}
}

func get(t *testing.T, client *http.Client, path string) *http.Response {
	t.Helper()
	resp, err := client.Get("http://server" + path)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 2 {
		t.Fatalf("it speaks %s", resp.Proto)
	}
	return resp
}

// A stream's deadline strikes where nothing is sent too, which one that rests must
// not have.
func TestAnIdleWatchLastsOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{changes: make(chan []store.Event)}
		client, _, end := overHTTP2(t, server.Options{Store: q})
		defer end()
		began := time.Now()
		resp := get(t, client, collection+"?watch=1&resourceVersion=7&timeoutSeconds=900")
		defer resp.Body.Close()
		go func() { time.Sleep(10 * time.Minute); q.changes <- change(8) }()
		lines := bufio.NewReader(resp.Body)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"ADDED"`) || time.Since(began) != 10*time.Minute {
			t.Fatalf("after %s got %q, %v", time.Since(began), line, err)
		}
		if _, err := lines.ReadString('\n'); err != io.EOF || time.Since(began) != 15*time.Minute {
			t.Errorf("after %s it ended with %v", time.Since(began), err)
		}
	})
}

// large is a change that fills what a client is ready to hold for one stream.
func large(revision store.Revision) []store.Event {
	rec := stored("a", strings.Repeat("v", 512<<10))
	rec.Revision = revision
	return []store.Event{{Record: rec}}
}

// A watch whose client takes nothing is ended like one over HTTP/1, and the others of
// its connection go on.
func TestAStuckWatchEndsAloneOverHTTP2(t *testing.T) {
	for name, c := range map[string]struct {
		stopAfter time.Duration // 0: the server does not stop
		want      time.Duration
	}{
		"a frame has half a minute":                {want: 30 * time.Second},
		"a server that stops waits for one second": {stopAfter: 5 * time.Second, want: 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &quiet{changes: make(chan []store.Event)}
				client, s, end := overHTTP2(t, server.Options{Store: q})
				defer end()
				resp := get(t, client, collection+"?watch=1&resourceVersion=7")
				defer resp.Body.Close()
				began := time.Now()
				if c.stopAfter > 0 {
					time.AfterFunc(c.stopAfter, s.EndWatches)
				}
				fed := make(chan struct{})
				go func() { // until nobody takes them any more
					defer close(fed)
					for revision := store.Revision(8); ; revision++ {
						select {
						case q.changes <- large(revision):
						case <-time.After(time.Minute):
							return
						}
					}
				}()
				time.Sleep(c.want - time.Second)
				if probe := get(t, client, "/livez"); probe.StatusCode != 200 {
					t.Errorf("another stream got %s", probe.Status)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				_, err := io.Copy(io.Discard, resp.Body)
				if err == nil || time.Since(began) != c.want {
					t.Errorf("after %s it ended with %v", time.Since(began), err)
				}
				<-fed
			})
		})
	}
}

// trickle is a body of which a byte comes each second.
type trickle struct{}

func (trickle) Read(b []byte) (int, error) { time.Sleep(time.Second); b[0] = ' '; return 1, nil }

func TestABodyThatTricklesOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _, end := overHTTP2(t, server.Options{Store: &quiet{}, RequestTimeout: 20 * time.Second})
		defer end()
		began := time.Now()
		resp, err := client.Post("http://server"+collection, "application/json", trickle{})
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if took := time.Since(began); resp.StatusCode != 504 || !strings.Contains(string(body), `"Timeout"`) || took > 21*time.Second {
			t.Errorf("after %s got %s: %s, %v", took, resp.Status, body, err)
		}
		if probe := get(t, client, "/livez"); probe.StatusCode != 200 {
			t.Errorf("the next stream got %s", probe.Status)
		}
	})
}

// A fault that cuts the connection resets one stream, and the client does not send
// the request again by itself.
func TestAFaultResetsAStreamOverHTTP2(t *testing.T) {
	for _, fault := range []string{"reset=1x", "lost=1x"} {
		synctest.Test(t, func(t *testing.T) {
			faults, err := inject.Parse(fault)
			if err != nil {
				t.Fatal(err)
			}
			client, s, end := overHTTP2(t, server.Options{Store: &quiet{}, Inject: faults})
			defer end()
			get(t, client, "/livez").Body.Close()
			_, err = client.Post("http://server"+collection, "application/json", strings.NewReader("{}"))
			if err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", fault, err)
			}
			for _, n := range s.Injected() {
				if n.Struck != 1 || n.Of != 1 {
					t.Errorf("%s: struck %+v", fault, n)
				}
			}
		})
	}
}
