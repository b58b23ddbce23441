package client

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-resty/resty/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/retry"
)

const (
	// turnTime is how long a server may take while another one could be asked: to let
	// itself be connected to, and to begin the answer to a read.
	turnTime = 5 * time.Second
	// restTime is how long the others come before a server that failed.
	restTime = 10 * time.Second
)

// Move tells that calls go to another one of several servers from now on.
type Move struct {
	From, To string // as messages name them
	Err      error  // why From was left
}

// peer is a server with the connections to it.
type peer struct {
	*endpoint
	http  *http.Client
	resty *resty.Client

	fault error     // why it failed last, nil if it has answered since; guarded by peers.mu
	rests time.Time // until when the others come first; guarded by peers.mu
}

// peers are the servers of a target. They may be shared.
type peers struct {
	all   []*peer // in the target's order
	moved func(Move)

	mu      sync.Mutex // guards what follows, and what it is said to in peer
	current *peer      // that calls go to first
}

func connectPeers(t *Target, o Options) (*peers, error) {
	made := &peers{moved: o.Moved}
	for _, e := range t.endpoints {
		hc, err := e.httpClient(o)
		if err != nil {
			return nil, err
		}
		made.all = append(made.all, &peer{endpoint: e, http: hc, resty: newResty(hc, o)})
	}
	made.current = made.all[0]
	return made, nil
}

// order is how a call goes through the servers: first to the one that answers, then to
// the others as they are given. Those that failed a short while ago come last; well is
// the number of those that did not.
func (p *peers) order() (order []*peer, well int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	order = slices.Clone(p.all)
	rank := func(one *peer) int {
		switch {
		case one.rests.After(now):
			return 2
		case one != p.current:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b *peer) int { return cmp.Compare(rank(a), rank(b)) })
	for well < len(order) && rank(order[well]) < 2 {
		well++
	}
	return order, well
}

// failed lets a server rest: for as long as it asked for, if it did.
func (p *peers) failed(one *peer, err error) {
	rest := restTime
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		rest = time.Duration(seconds) * time.Second
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one.fault, one.rests = err, time.Now().Add(rest)
}

// answered notes that a server works. If the one that calls went to has failed, they
// go to this one now, until it fails in its turn.
func (p *peers) answered(one *peer) {
	p.mu.Lock()
	left := p.current
	move := Move{From: left.String(), To: one.String(), Err: left.fault}
	one.fault, one.rests = nil, time.Time{}
	if left.fault != nil {
		p.current = one
	}
	p.mu.Unlock()
	if move.Err != nil && left != one && p.moved != nil {
		p.moved(move)
	}
}

// turn is a server's try at a call.
type turn struct {
	peer   *peer
	within time.Duration // 0 is the time that the call has
}

// begin is the context of a turn, and the watch that ends it.
func (t turn) begin(callCtx context.Context) (context.Context, *turnWatch) {
	w := &turnWatch{}
	if t.within == 0 {
		return callCtx, w
	}
	ctx, end := context.WithCancel(callCtx) // else it ends with the call: its answer may be read for long
	w.timer = time.AfterFunc(t.within, func() {
		if w.state.CompareAndSwap(turnRuns, turnLate) {
			end()
		}
	})
	return ctx, w
}

// turnWatch ends a turn, unless it is stopped before. The zero value never does.
type turnWatch struct {
	timer *time.Timer
	state atomic.Int32
}

const (
	turnRuns    = iota
	turnStopped // what it was for is there
	turnLate    // it was ended
)

// stop lets the turn go on for as long as the call does, and tells whether it was too
// late for that.
func (w *turnWatch) stop() (late bool) {
	if w.state.CompareAndSwap(turnRuns, turnStopped) && w.timer != nil {
		w.timer.Stop()
	}
	return w.state.Load() == turnLate
}

// share is how long one of n servers may take before the next one is asked. until is
// when the time of the call is over, if it is bounded.
func share(until time.Time, n int) time.Duration {
	if until.IsZero() {
		return turnTime
	}
	return max(1, min(turnTime, time.Until(until)/time.Duration(n)))
}

// inTurn makes a call by one server after the other, until one of them has an answer,
// or the request may have been carried out and is not for another. Each has one turn;
// one whose turn was cut short for another's sake has the rest of the time, if that one
// was of no use. until is when that time is over, if it is bounded.
func inTurn[T any](c *Client, callCtx context.Context, until time.Time, k call, try func(turn) (T, error)) (T, error) {
	order, well := c.peers.order()
	if c.only != nil {
		order, well = []*peer{c.only}, 1
	}
	var tried attempts
	for i := 0; ; i++ {
		t := turn{peer: order[i]}
		if i+1 < well {
			t.within = share(until, well-i)
		}
		got, err := try(t)
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return got, err // the caller's wish says nothing of the server
		}
		if !failing(err) {
			c.peers.answered(t.peer)
			return got, err
		}
		c.peers.failed(t.peer, err)
		tried = tried.with(t.peer, err)
		if errors.As(err, new(lateError)) {
			order = append(order, t.peer)
		}
		if !elsewhere(k, err) || callCtx.Err() != nil || i+1 == len(order) {
			return got, tried.failure()
		}
	}
}

// failing tells whether an error says that a server has no answer now. What is wrong
// with the request is an answer.
func failing(err error) bool {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, new(*retry.UnsentError)), errors.As(err, new(*retry.UnreadError)),
		errors.As(err, new(*retry.LostError)), errors.As(err, new(*retry.RefusedError)):
		return true
	case errors.As(err, &status):
		return slices.Contains([]int32{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout},
			status.Status().Code)
	}
	return false
}

// elsewhere tells whether a call that failed may be made by another server: a write only
// if this one has certainly not carried it out.
func elsewhere(k call, err error) bool { return !k.writes() || retry.Unwritten(err) }
