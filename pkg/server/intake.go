package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"example.com/cmctl/pkg/types"
)

const (
	// freeBytes is what a body gets of memory without asking. So small ones, which
	// most are, come through whatever becomes of the rest.
	freeBytes = 4 << 10
	// A body has bodyGrace, and the time that what has come of it takes at slowestPace.
	bodyGrace   = 10 * time.Second
	slowestPace = 16 << 10 // bytes a second
	// spared is how long a body is not given up for the sake of others, however slowly
	// it comes.
	spared = time.Second
	// drainLimit is how much of a body that is too large is read and thrown away,
	// so that the client gets its answer and not a broken connection.
	drainLimit = 16 << 20
)

// intake is one body on its way in, and the memory that it has until its request is
// over. It belongs to its request's goroutine, but for what intakes guards.
type intake struct {
	who   sender
	conn  *http.ResponseController
	began time.Time
	came  atomic.Int64 // bytes

	// guarded by intakes.mu
	memory  int64 // beyond freeBytes
	dropped bool  // it is given up: others need what it has
}

// intakes are the bodies that come in. Their number is bounded, and the memory of all
// bodies, those included whose requests are being carried out. Where there is no room
// for one more, the body goes that comes slowest.
type intakes struct {
	limit, share             int
	memoryLimit, memoryShare int64 // bytes

	mu       sync.Mutex // guards what follows
	coming   map[*intake]bool
	by       map[sender]int // of coming, without the zero sender
	memory   int64
	memoryBy map[sender]int64
}

func newIntakes(o Options) intakes {
	return intakes{
		limit: o.MaxReceiving, share: shareOf(o.MaxReceiving, 0),
		memoryLimit: o.MaxReceivedBytes, memoryShare: shareOf(o.MaxReceivedBytes, 0),
		coming: map[*intake]bool{}, by: map[sender]int{}, memoryBy: map[sender]int64{},
	}
}

// begin takes a place for a body.
func (in *intakes) begin(i *intake) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if i.who != (sender{}) && in.by[i.who] >= in.share {
		return tooManyOf(i.who, bodies)
	}
	if len(in.coming) >= in.limit && !in.dropSlowestLocked(i, false) {
		return tooMany(bodies)
	}
	in.coming[i] = true
	if i.who != (sender{}) {
		in.by[i.who]++
	}
	return nil
}

const bodies = "request bodies that are being sent"

// reserve takes so much more memory for a body.
func (in *intakes) reserve(i *intake, more int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if i.dropped {
		return errDropped
	}
	if i.who != (sender{}) && in.memoryBy[i.who]+more > in.memoryShare {
		return tooManyOf(i.who, "bytes of request bodies")
	}
	for in.memory+more > in.memoryLimit {
		if !in.dropSlowestLocked(i, true) {
			return tooMany("bytes of request bodies")
		}
	}
	in.addMemoryLocked(i, more)
	return nil
}

func (in *intakes) addMemoryLocked(i *intake, more int64) {
	i.memory += more
	in.memory += more
	if i.who != (sender{}) && more != 0 {
		subtract(in.memoryBy, i.who, -more)
	}
}

// dropSlowestLocked gives up the body that comes slowest, of those that have memory if
// that is what lacks. It is false if there is none to give up for the sake of another.
func (in *intakes) dropSlowestLocked(other *intake, forMemory bool) bool {
	var slowest *intake
	var slowestPace float64
	now := time.Now()
	for i := range in.coming {
		age := now.Sub(i.began)
		if i == other || age < spared || forMemory && i.memory == 0 {
			continue
		}
		if pace := float64(i.came.Load()) / age.Seconds(); slowest == nil || pace < slowestPace {
			slowest, slowestPace = i, pace
		}
	}
	if slowest == nil {
		return false
	}
	slowest.dropped = true
	in.removeLocked(slowest)
	in.addMemoryLocked(slowest, -slowest.memory)
	_ = slowest.conn.SetReadDeadline(now) // recorders have no deadlines, and wait for nothing
	return true
}

func (in *intakes) removeLocked(i *intake) {
	if in.coming[i] {
		delete(in.coming, i)
		subtract(in.by, i.who, 1)
	}
}

// end says that nothing more is read of a body. It is false if it was given up.
func (in *intakes) end(i *intake) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.removeLocked(i)
	return !i.dropped
}

// release gives back all that a body has.
func (in *intakes) release(i *intake) {
	if i.conn == nil {
		return // there was none
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.removeLocked(i)
	in.addMemoryLocked(i, -i.memory)
}

// errDropped comes from a body that was given up for the sake of others.
var errDropped = errors.New("the body came slowest of all when another needed its room")

// readAll reads the request's body, and takes the request's place among those that
// write once all of it is there.
func (s *Server) readAll(r *request) ([]byte, error) {
	held := &r.info.held
	if r.http.ContentLength == 0 {
		return nil, s.startWriting(held)
	}
	body := &held.body
	*body = intake{who: held.who, conn: http.NewResponseController(r.writer), began: time.Now()}
	if err := s.intakes.begin(body); err != nil {
		return nil, err
	}
	text, err := s.receive(r, body)
	if !s.intakes.end(body) {
		err = errDropped
	}
	if err != nil {
		return nil, s.unread(r, err)
	}
	// The deadline for the body must not strike while the write is made.
	// Recorders have no deadlines, and need none.
	_ = body.conn.SetReadDeadline(time.Time{})
	return text, s.startWriting(held)
}

// receive reads a body, and asks for memory as it comes: what it says of its length
// gets it no more than freeBytes.
func (s *Server) receive(r *request, i *intake) ([]byte, error) {
	limit, length := s.options.MaxBodyBytes, r.http.ContentLength
	source := http.MaxBytesReader(r.writer, r.http.Body, limit)
	if length > limit {
		i.allow(r.context(), 0)
		return nil, &http.MaxBytesError{Limit: limit}
	}
	if length < 0 {
		length = limit
	}
	text := make([]byte, 0, min(length+1, freeBytes)) // one for the end to be seen
	i.allow(r.context(), 0)
	for allowed := 0; ; {
		n, err := source.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		i.came.Store(int64(len(text)))
		switch {
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			return nil, err
		}
		if len(text) >= allowed+slowestPace {
			allowed = len(text)
			i.allow(r.context(), allowed)
		}
		if len(text) < cap(text) {
			continue
		}
		size := min(2*int64(cap(text)), length+1)
		if size <= int64(cap(text)) {
			return nil, errors.New("it is longer than it said")
		}
		if err := s.intakes.reserve(i, size-int64(max(cap(text), freeBytes))); err != nil {
			return nil, err
		}
		text = append(make([]byte, 0, size), text...)
	}
}

// allow sets the time that a body has for what is to come, of which so much has.
func (i *intake) allow(ctx context.Context, came int) {
	until := i.began.Add(bodyGrace + time.Duration(came)*time.Second/slowestPace)
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	// Recorders have no deadlines, and need none.
	_ = i.conn.SetReadDeadline(until)
}

// isOver tells that the time of a context is over, before the context itself may know.
func isOver(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && !time.Now().Before(end)
}

// unread is the refusal of a body that did not come, or not as it must.
func (s *Server) unread(r *request, err error) error {
	var large *http.MaxBytesError
	var status *types.StatusError
	switch {
	case errors.As(err, &status):
		return status
	case errors.As(err, &large):
		// Whether the rest arrives makes no difference to the answer.
		_, _ = io.CopyN(io.Discard, r.http.Body, drainLimit)
		return types.RequestTooLarge(large.Limit)
	case errors.Is(err, errDropped):
		return types.TooManyRequests("the request's body came slowly while the server had too many of them; nothing was stored", retryAfter)
	case r.context().Err() != nil, isOver(r.context()):
		return context.DeadlineExceeded
	case errors.Is(err, os.ErrDeadlineExceeded):
		return types.Timeout(fmt.Sprintf("the request's body came too slowly, less than %d KiB in %v and as much in each second after it; nothing was stored",
			slowestPace>>10, bodyGrace))
	}
	return types.BadRequest(fmt.Sprintf("the request's body could not be read to its end: %v", err))
}
