package etcd_test

import (
	"net"
	"sync"
	"testing"
)

// gate is an address of a cluster that a test can disturb: for whoever comes through it, it is
// a member that stands still, or one whose answers are lost.
type gate struct {
	address  string
	requests flow
	answers  flow

	mu     sync.Mutex // guards what follows
	behind string
	conns  []net.Conn
}

// move has it lead elsewhere, and ends all connections.
func (g *gate) move(behind string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind = behind
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

// connect is a connection to what is behind, for one that came in.
func (g *gate) connect(in net.Conn) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out, err := net.Dial("tcp", g.behind)
	if err != nil {
		return nil, err
	}
	g.conns = append(g.conns, in, out)
	return out, nil
}

// flow is one direction through a gate.
type flow struct {
	mu   sync.Mutex
	held chan struct{} // closed when it goes on; nil while it does. Guarded by mu
}

func (f *flow) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = make(chan struct{})
	}
}

func (f *flow) letGo() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		close(f.held)
		f.held = nil
	}
}

func (f *flow) wait() {
	f.mu.Lock()
	held := f.held
	f.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (g *gate) pause()  { g.requests.hold(); g.answers.hold() }
func (g *gate) resume() { g.requests.letGo(); g.answers.letGo() }

func newGate(t testing.TB, behind string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{address: l.Addr().String(), behind: behind}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := g.connect(in)
			if err != nil {
				_ = in.Close() // as etcd does that is down
				continue
			}
			conns.Go(func() { g.requests.carry(out, in) })
			conns.Go(func() { g.answers.carry(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.resume() // for those that carry to end
		g.move("")
		conns.Wait()
	})
	return g
}

// carry moves bytes until one side ends.
func (f *flow) carry(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		f.wait()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
