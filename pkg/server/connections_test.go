package server

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// from is a connection from an address, which notes that it was closed.
type from struct {
	net.Conn
	addr   string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.addr)) }
func (f *from) Close() error         { f.closed = true; return nil }

// Those beyond the limits are closed and take no place; those that end give theirs
// back, once.
func TestConnections(t *testing.T) {
	var log bytes.Buffer
	c := NewConnections(4, 2, slog.New(slog.NewTextHandler(&log, nil)))
	arrive := func(addr string, refused bool) *from {
		t.Helper()
		f := &from{addr: addr}
		c.State(f, http.StateNew)
		c.State(f, http.StateActive)
		if f.closed != refused {
			t.Errorf("one from %s: refused is %v", addr, f.closed)
		}
		return f
	}
	first := arrive("192.0.2.1:1", false)
	arrive("192.0.2.1:2", false)
	third := arrive("192.0.2.1:3", true)
	arrive("127.0.0.1:1", false)
	local := arrive("127.0.0.1:2", false)
	arrive("127.0.0.1:3", true)
	arrive("192.0.2.2:1", true)
	c.State(third, http.StateClosed) // it had no place
	arrive("192.0.2.2:1", true)
	for range 2 {
		c.State(first, http.StateClosed)
	}
	c.State(local, http.StateHijacked)
	arrive("192.0.2.1:4", false)
	arrive("192.0.2.2:2", false)
	arrive("192.0.2.2:3", true)
	if n := strings.Count(log.String(), "connections were refused"); n != 1 || !strings.Contains(log.String(), "192.0.2.1") {
		t.Errorf("the log tells of it %d times:\n%s", n, log.String())
	}
}
