package procs

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a server and etcd, and can cut them off from each other.
type Proxy struct {
	Address string
	to      string

	mu    sync.Mutex // guards what follows
	cut   bool
	conns map[net.Conn]struct{}
}

// NewProxy begins to pass connections on.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: l.Addr().String(), to: to, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c)
		}
	}()
	return p
}

func (p *Proxy) pass(from net.Conn) {
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = from.Close()
		return
	}
	p.mu.Lock()
	for _, c := range []net.Conn{from, to} {
		p.conns[c] = struct{}{}
		if p.cut {
			_ = c.Close()
		}
	}
	p.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // either side may end it at any time
			done <- struct{}{}
		}()
	}
	<-done
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{from, to} {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// Cut breaks all connections, and lets none live, until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Mend lets connections live again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}
