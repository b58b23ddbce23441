package e2e

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// relays are servers of one store: each stands before the same cmserver. One of them
// is killed with every third write that goes over any, once that is on its way, and the
// other is started anew before.
type relays struct {
	t      *testing.T
	to     string
	all    [2]*relay
	copies sync.WaitGroup

	mu     sync.Mutex // guards what follows, and the relays
	writes int
	kills  int
	over   bool
}

type relay struct {
	address string
	serving net.Listener // nil while it is dead
	conns   map[net.Conn]bool
}

func startRelays(t *testing.T, to string) *relays {
	r := &relays{t: t, to: strings.TrimPrefix(to, "http://")}
	for i := range r.all {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r.all[i] = &relay{address: l.Addr().String(), serving: l, conns: map[net.Conn]bool{}}
	}
	for _, one := range r.all {
		l := one.serving
		r.copies.Go(func() { r.serve(one, l) })
	}
	t.Cleanup(func() {
		r.mu.Lock()
		r.over = true
		for _, one := range r.all {
			one.killLocked()
		}
		r.mu.Unlock()
		r.copies.Wait()
	})
	return r
}

// addresses are those of the relays, as --server takes them.
func (r *relays) addresses() string {
	return "http://" + r.all[0].address + ",http://" + r.all[1].address
}

func (r *relays) serve(one *relay, l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.to)
		if err != nil {
			near.Close()
			continue
		}
		r.mu.Lock()
		if one.serving != l {
			near.Close()
			far.Close()
		} else {
			one.conns[near], one.conns[far] = true, true
		}
		r.mu.Unlock()
		r.copies.Go(func() { r.copy(far, near, one) })
		r.copies.Go(func() { r.copy(near, far, nil) })
	}
}

// copy passes on what comes; of is the relay to be killed with a write, if any.
func (r *relays) copy(to, from net.Conn, of *relay) {
	defer to.Close()
	defer from.Close()
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		if n > 0 {
			if _, err := to.Write(chunk[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		if of != nil && bytes.HasPrefix(chunk[:n], []byte("PUT ")) {
			r.written(of)
		}
	}
}

// written counts a write, and kills its relay in its turn.
func (r *relays) written(of *relay) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes++; r.writes%3 != 0 || r.over || of.serving == nil {
		return
	}
	other := r.all[0]
	if other == of {
		other = r.all[1]
	}
	if other.serving == nil {
		l, err := net.Listen("tcp", other.address)
		if err != nil {
			r.t.Errorf("a relay can't be started anew: %v", err)
			return
		}
		other.serving = l
		r.copies.Go(func() { r.serve(other, l) })
	}
	of.killLocked()
	r.kills++
}

func (one *relay) killLocked() {
	if one.serving == nil {
		return
	}
	one.serving.Close()
	one.serving = nil
	for c := range one.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0) // cut, as by kill -9
		}
		c.Close()
	}
	clear(one.conns)
}

// Servers that are killed by turns, each in the middle of a write, change nothing in a
// count: what each round was told is so.
func TestTheCountIsExactWhileServersAreKilledByTurns(t *testing.T) {
	s := startServer(t, t.TempDir())
	mustCmctl(t, s.url, "create", "counter", "--from-literal=n=0")
	r := startRelays(t, s.url)
	const shells, rounds = 6, 4
	ends := loops(t, r.addresses(), shells, rounds, `cmctl update counter --key=n --max-attempts=100000 -- sh -c 'read n; printf %s $((n + 1))'`)
	if got := field(t, s.url, "data", "n"); got != strconv.Itoa(ends[0]) {
		t.Errorf("the counter is %v after %v", got, ends)
	}
	// A round that found each server just killed was told so, and wrote nothing.
	if ends[0]+ends[7] != shells*rounds || ends[0] < shells*rounds*3/4 {
		t.Errorf("the rounds ended with %v", ends)
	}
	if r.mu.Lock(); r.kills < shells {
		t.Errorf("%d kills", r.kills)
	}
	t.Logf("%v, with %d writes and %d kills", ends, r.writes, r.kills)
	r.mu.Unlock()
}
