package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/types"
)

// sender is whom a request counts for: a user who is known, else an address. The zero
// value stands for those who are not told from each other, none of whom is held to a
// share: the programs of this machine, where nobody is asked who they are.
type sender struct {
	user string
	addr netip.Addr
}

// String is how a refusal names a sender.
func (s sender) String() string {
	if s.user != "" {
		return fmt.Sprintf("user %q", s.user)
	}
	return "address " + s.addr.String()
}

// senderOf finds out who sends a request, which must have been authenticated. Who acts
// as somebody else counts for themselves. What proxies say of an address is not believed.
func senderOf(r *http.Request) sender {
	info := infoOf(r)
	who := info.attributes.User
	if info.impersonator != nil {
		who = info.impersonator
	}
	if who != nil && who.GetName() != user.Anonymous {
		return sender{user: who.GetName()}
	}
	addr := addressOf(r.RemoteAddr)
	if addr.IsLoopback() && who == nil {
		return sender{}
	}
	return sender{addr: addr}
}

// addressOf is where a request comes from. One of IPv6 stands for its network: its
// owner has all the addresses in it. It is zero for a socket of this machine.
func addressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is6() && !addr.IsLoopback() {
		network, _ := addr.Prefix(64) // which every address of IPv6 has
		return network.Addr()
	}
	return addr
}

// places are for so many at once, of whom one sender may have no more than a share.
type places struct {
	kind         string // of what takes them, for refusals
	limit, share int

	mu    sync.Mutex // guards what follows
	taken int
	by    map[sender]int // without the zero sender
}

func newPlaces(kind string, limit, share int) places {
	return places{kind: kind, limit: limit, share: shareOf(limit, share), by: map[sender]int{}}
}

// shareOf is the share of one sender: what is set, or half.
func shareOf[N int | int64](limit, share N) N {
	if share == 0 {
		share = limit / 2
	}
	return min(limit, max(1, share))
}

// enter takes a place, which leave gives back, or refuses with 429.
func (p *places) enter(who sender) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.limit {
		return tooMany(p.kind)
	}
	if who != (sender{}) {
		if p.by[who] >= p.share {
			return tooManyOf(who, p.kind)
		}
		p.by[who]++
	}
	p.taken++
	return nil
}

func (p *places) leave(who sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	subtract(p.by, who, 1)
}

// subtract keeps nothing of senders who have nothing left.
func subtract[N int | int64](by map[sender]N, who sender, n N) {
	if who == (sender{}) {
		return
	}
	if by[who] -= n; by[who] == 0 {
		delete(by, who)
	}
}

// retryAfter is how long who is refused is asked to wait, in seconds.
const retryAfter = 1

func tooMany(kind string) error {
	return types.TooManyRequests("the server has too many "+kind+" at once, please try again later", retryAfter)
}

func tooManyOf(who sender, kind string) error {
	return types.TooManyRequests(fmt.Sprintf("the server has too many %s of %s at once, please try again later", kind, who), retryAfter)
}

// held is what a request has taken, to be given back when it is over.
type held struct {
	who     sender
	body    intake
	answer  outgoing
	writing bool
}

// limit refuses what comes while as many requests of its kind run as may, of all or of
// its sender. A request that writes gets its place later, once its body is there:
// clients that are slow to send one take no place from others. Probes are let through:
// a server with much to do is not to be taken for a dead one.
func (s *Server) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isProbe(r.URL.Path):
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			held := &infoOf(r).held
			held.who = senderOf(r)
			if err := s.reads.enter(held.who); err != nil {
				s.refuse(w, r, err)
				return
			}
			defer s.reads.leave(held.who)
			defer s.answers.release(held)
			if r.ContentLength != 0 && r.ProtoMajor == 1 {
				// Nobody reads it. net/http would have the answer wait for it, if the
				// connection were to be used again.
				w.Header().Set("Connection", "close")
			}
		default:
			held := &infoOf(r).held
			held.who = senderOf(r)
			defer s.giveBack(held)
		}
		next.ServeHTTP(w, r)
	})
}

// startWriting gives a request its place among those that write.
func (s *Server) startWriting(h *held) error {
	err := s.writes.enter(h.who)
	h.writing = err == nil
	return err
}

func (s *Server) giveBack(h *held) {
	if h.writing {
		s.writes.leave(h.who)
	}
	s.intakes.release(&h.body)
	s.answers.release(h)
}

// The limits of the head of a request, beside that of its length, which whoever
// listens sets.
const (
	maxURIBytes = 32 << 10
	maxHeaders  = 256
)

// checkHead refuses what is too much to look at.
func (s *Server) checkHead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := 0
		for _, values := range r.Header {
			headers += len(values)
		}
		switch {
		case len(r.RequestURI) > maxURIBytes:
			s.refuse(w, r, types.URITooLong(maxURIBytes))
		case headers > maxHeaders:
			s.refuse(w, r, types.TooManyHeaders(maxHeaders))
		default:
			next.ServeHTTP(w, r)
		}
	})
}
