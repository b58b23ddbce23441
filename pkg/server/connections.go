package server

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Connections bounds how many connections an http.Server has open, of all and of one
// address. Those beyond are closed at once, before anything is read.
//
//	c := server.NewConnections(16384, 0, log)
//	hs := &http.Server{Handler: s.Handler(), ConnState: c.State}
type Connections struct {
	places places
	log    *slog.Logger

	mu      sync.Mutex // guards what follows
	open    map[net.Conn]sender
	refused int       // since the log told of it
	told    time.Time // when that was
}

// NewConnections allows so many connections, and so many of them to one address, 0:
// half. An address of this machine may have all.
func NewConnections(most, perAddress int, log *slog.Logger) *Connections {
	return &Connections{places: newPlaces("connections", most, perAddress), log: log, open: map[net.Conn]sender{}}
}

// State is to be the http.Server's ConnState.
func (c *Connections) State(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.admit(conn)
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	}
}

func (c *Connections) admit(conn net.Conn) {
	who := sender{addr: addressOf(conn.RemoteAddr().String())}
	if who.addr.IsLoopback() {
		who = sender{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.places.enter(who)
	if err == nil {
		c.open[conn] = who
		return
	}
	_ = conn.Close() // whatever becomes of it, nothing is served on it
	c.refused++
	if now := time.Now(); now.Sub(c.told) >= refusalsEvery {
		c.log.Warn("connections were refused", "count", c.refused, "last", err)
		c.told, c.refused = now, 0
	}
}

// refusalsEvery is how often the log tells of connections that were refused.
const refusalsEvery = time.Minute

func (c *Connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if who, admitted := c.open[conn]; admitted {
		delete(c.open, conn)
		c.places.leave(who)
	}
}
