// Package pipes has a listener without a network, so that a server and its clients can
// live in a synctest bubble.
package pipes

import "net"

// Listener gives each connection that is dialed to Accept.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
}

// Listen makes a Listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for Dial, or Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. It is called once.
func (l *Listener) Close() error {
	close(l.closed)
	return nil
}

// Closed is closed by Close.
func (l *Listener) Closed() <-chan struct{} { return l.closed }

// Addr is no address that anybody could reach.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// Dial is the client's end of a connection that the server has accepted. Nothing is
// buffered: what one side writes waits until the other reads it.
func (l *Listener) Dial() net.Conn {
	near, far := net.Pipe()
	l.conns <- far
	return near
}
