// Package serving opens the addresses of a server, TCP with or without TLS and unix
// sockets, and serves one handler on all of them.
//
//	address, err := serving.ParseAddress(ctx, "127.0.0.1:8080")
//	listeners, err := serving.Listen(ctx, []serving.Address{address}, 0o600)
//	err = serving.Server{Handler: h, Log: log}.Run(ctx, listeners)
package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// The limits of a connection; those of a request are the handler's own.
const (
	headerTimeout  = 10 * time.Second // for a request's header, and for the handshake of TLS
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// maxStreams is how many requests, watches among them, share an HTTP/2
	// connection. Clients open more connections for more.
	maxStreams = 250
	// quietTime is how long an HTTP/2 connection may be silent before its client is
	// asked whether it is there, and answerTime how long it may take to say so.
	quietTime  = 30 * time.Second
	answerTime = 15 * time.Second
	// stuckTime is how long an HTTP/2 client may take no byte. A stream's own
	// deadline can't end it: what would say so is stuck too.
	stuckTime = 30 * time.Second
)

// Server serves a handler.
type Server struct {
	Handler http.Handler
	TLS     *TLS // of TCP; nil: none
	Log     *slog.Logger
	// ConnState is told of every connection, as http.Server's; nil: nobody is.
	ConnState func(net.Conn, http.ConnState)
	// Stopping is called when the server begins to stop.
	Stopping func()
	// DrainTime is how long requests under way may take then.
	DrainTime time.Duration
}

// Run serves until ctx ends, then lets what is under way finish. It closes the
// listeners.
func (s Server) Run(ctx context.Context, listeners []Listener) error {
	hs := s.http()
	served := make(chan error, len(listeners))
	for _, l := range listeners {
		secure := s.TLS != nil && !l.address.Socket()
		go func() { served <- s.serve(hs, l, secure) }()
		url := l.url(secure)
		s.Log.Info("listening", "url", url, "connect", s.hint(l, url, secure))
	}
	var failed error
	running := len(listeners)
	select {
	case failed = <-served:
		running--
	case <-ctx.Done():
	}
	s.Log.Info("stopping", "timeout", s.DrainTime)
	// ctx has ended; what is under way gets a time of its own.
	drain, cancel := context.WithTimeout(context.Background(), s.DrainTime)
	defer cancel()
	if err := hs.Shutdown(drain); err != nil {
		s.Log.Warn("requests were cut off", "err", err)
		// The connections go; no error of theirs changes anything.
		_ = hs.Close()
	}
	for range running {
		<-served
	}
	s.Log.Info("stopped")
	return failed
}

func (s Server) http() *http.Server {
	hs := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		ConnContext:       withPeer,
		ConnState:         s.ConnState,
		// Else net/http itself answers OPTIONS *, and nobody is asked who they are.
		DisableGeneralOptionsHandler: true,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			SendPingTimeout:      quietTime,
			PingTimeout:          answerTime,
			WriteByteTimeout:     stuckTime,
		},
	}
	if s.TLS != nil {
		hs.TLSConfig = s.TLS.config()
	}
	if s.Stopping != nil {
		hs.RegisterOnShutdown(s.Stopping)
	}
	return hs
}

// serve returns only with an error.
func (s Server) serve(hs *http.Server, l Listener, secure bool) error {
	var err error
	if secure {
		err = hs.ServeTLS(l, "", "")
	} else {
		err = hs.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return fmt.Errorf("serve on %s: %w", l.address, err)
}

// url is what clients connect to.
func (l Listener) url(secure bool) string {
	switch {
	case l.address.Socket():
		return unixScheme + "//" + l.address.path
	case secure:
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// hint is a command that reaches the server.
func (s Server) hint(l Listener, url string, secure bool) string {
	if !secure {
		return "cmctl --server " + url
	}
	return "cmctl --server https://" + net.JoinHostPort(s.nameFor(l), port(l)) + " --certificate-authority FILE"
}

// nameFor is a host under which the certificate is good for the listener.
func (s Server) nameFor(l Listener) string {
	leaf := s.TLS.Certificate.Leaf()
	host, _, _ := net.SplitHostPort(l.Addr().String())
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && !ip.IsUnspecified() && leaf.VerifyHostname(host) == nil:
		return host
	case len(leaf.DNSNames) > 0:
		return leaf.DNSNames[0]
	}
	return leaf.IPAddresses[0].String() // a certificate has one of them
}

func port(l Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
