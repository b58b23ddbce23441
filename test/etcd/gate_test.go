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
	g := &gate{address: l.Addr().String()}
	var conns sync.WaitGroup
	var mu sync.Mutex
	var all []net.Conn
	conns.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", behind)
			if err != nil {
				_ = in.Close() // as etcd does that is down
				continue
			}
			mu.Lock()
			all = append(all, in, out)
			mu.Unlock()
			conns.Go(func() { g.requests.carry(out, in) })
			conns.Go(func() { g.answers.carry(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.resume() // for those that carry to end
		mu.Lock()
		for _, c := range all {
			_ = c.Close()
		}
		mu.Unlock()
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
