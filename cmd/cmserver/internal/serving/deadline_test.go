package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/cmctl/test/pipes"
)

// start serves on pipes in the bubble until the returned function is called.
func start(hs *http.Server, serve func(net.Listener) error) (*pipes.Listener, func()) {
	l := pipes.Listen()
	ended := make(chan error, 1)
	go func() { ended <- serve(l) }()
	return l, func() { _ = hs.Close(); <-ended }
}

func TestAHandshakeHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hs := Server{Log: slog.New(slog.DiscardHandler)}.http()
		hs.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }}
		l, end := start(hs, func(l net.Listener) error { return hs.ServeTLS(l, "", "") })
		defer end()
		conn := l.Dial()
		defer conn.Close()
		if _, err := conn.Write([]byte("\x16\x03\x01\x02\x00\x01")); err != nil { // how a ClientHello begins
			t.Fatal(err)
		}
		began := time.Now()
		for { // an alert may come before the end
			if _, err := conn.Read(make([]byte, 100)); err != nil {
				break
			}
		}
		// The server may try for some seconds more to say why.
		if took := time.Since(began); took < headerTimeout || took > headerTimeout+10*time.Second {
			t.Errorf("it is cut off after %s", took)
		}
	})
}

// deaf is a connection of which nothing is read any more once it is told so.
type deaf struct {
	net.Conn
	now     *atomic.Bool
	forever chan struct{} // closed when the test ends
}

func (d deaf) Read(b []byte) (int, error) {
	if d.now.Load() {
		<-d.forever
		return 0, net.ErrClosed
	}
	return d.Conn.Read(b)
}

// Where the whole connection is stuck, no stream's deadline can tell its client.
func TestAStuckConnectionIsClosedOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan time.Time, 1)
		ended := make(chan time.Time, 1)
		stuck := atomic.Bool{}
		hs := Server{Log: slog.New(slog.DiscardHandler), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second) // until the head is read
			stuck.Store(true)
			began <- time.Now()
			for {
				if _, err := w.Write(make([]byte, 4<<10)); err != nil {
					ended <- time.Now()
					return
				}
			}
		})}.http()
		var two http.Protocols
		two.SetUnencryptedHTTP2(true)
		hs.Protocols = &two
		l, end := start(hs, hs.Serve)
		defer end()
		forever := make(chan struct{})
		transport := &http.Transport{Protocols: &two, DialContext: func(context.Context, string, string) (net.Conn, error) {
			return deaf{l.Dial(), &stuck, forever}, nil
		}}
		resp, err := (&http.Client{Transport: transport}).Get("http://server/")
		if err != nil {
			t.Fatal(err)
		}
		if took := (<-ended).Sub(<-began); took < stuckTime || took > stuckTime+answerTime {
			t.Errorf("it is closed after %s", took)
		}
		close(forever)
		resp.Body.Close()
		transport.CloseIdleConnections()
	})
}
