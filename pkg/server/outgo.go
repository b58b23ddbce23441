package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"
)

const (
	// freeAnswerBytes is what an answer has of memory without asking.
	freeAnswerBytes = 16 << 10
	// An answer has answerGrace, and the time that what was taken of it has at
	// slowestPace. It is sent in pieces that a client of that pace takes in time.
	pieceBytes = 64 << 10
	// answerSpared is how long an answer is not given up for the sake of others,
	// however slowly it is taken.
	answerSpared = 5 * time.Second
	// fewestBuilt is how many lists can be built at once, whatever the processors.
	fewestBuilt = 4
)

// outgoing is one answer, and the memory that it has until its request is over. It
// belongs to its request's goroutine, but for what answers guards.
type outgoing struct {
	building bool // it has a place to be built
	counted  bool // answers know of it

	// guarded by answers.mu
	memory  int64 // beyond freeAnswerBytes
	conn    *http.ResponseController
	began   time.Time // to be sent
	taken   int64     // bytes, by the client or what is before it
	dropped bool      // it is given up: others need what it has
}

// answers are those that are on their way out. The memory of all of them is bounded,
// and how many lists are built at once, whose length is not known before. Where there
// is no room for one more, the answer goes that is taken slowest.
type answers struct {
	limit, share int64         // bytes
	places       chan struct{} // holds one for each list that is built

	mu       sync.Mutex     // guards what follows
	going    map[*held]bool // those that are being sent
	memory   int64
	memoryBy map[sender]int64 // without the zero sender
}

func newAnswers(limit int64) answers {
	return answers{
		limit: limit, share: shareOf(limit, 0),
		places: make(chan struct{}, max(fewestBuilt, runtime.GOMAXPROCS(0))),
		going:  map[*held]bool{}, memoryBy: map[sender]int64{},
	}
}

// build waits for a place to build a list, until built.
func (as *answers) build(ctx context.Context, o *outgoing) error {
	select {
	case as.places <- struct{}{}:
		o.building = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// built gives the place back, if there is one.
func (as *answers) built(o *outgoing) {
	if o.building {
		o.building = false
		<-as.places
	}
}

// reserve says how long an answer is. It refuses one for which there is no room. What
// nobody else has, and nothing else of its sender, is never too long by itself.
func (as *answers) reserve(held *held, length int) error { return as.hold(held, length, false) }

// insist is reserve for an answer that must be given: it tells what was stored.
func (as *answers) insist(held *held, length int) { _ = as.hold(held, length, true) }

func (as *answers) hold(held *held, length int, insists bool) error {
	o := &held.answer
	size := max(0, int64(length)-freeAnswerBytes)
	if size == 0 && !o.counted {
		return nil
	}
	o.counted = true
	as.mu.Lock()
	defer as.mu.Unlock()
	if more := size - o.memory; more > 0 {
		if err := as.makeRoomLocked(held, more); err != nil && !insists {
			return err
		}
	}
	as.setMemoryLocked(held, size)
	return nil
}

const answerBytes = "bytes of answers that are being sent"

func (as *answers) makeRoomLocked(held *held, more int64) error {
	own := held.answer.memory
	if mine := as.memoryBy[held.who]; mine > own && mine+more > as.share {
		return tooManyOf(held.who, answerBytes)
	}
	for as.memory > own && as.memory+more > as.limit {
		if !as.dropSlowestLocked() {
			return tooMany(answerBytes)
		}
	}
	return nil
}

func (as *answers) setMemoryLocked(held *held, size int64) {
	more := size - held.answer.memory
	held.answer.memory = size
	as.memory += more
	if more != 0 {
		subtract(as.memoryBy, held.who, -more)
	}
}

// dropSlowestLocked gives up the answer that is taken slowest. It is false if there is
// none to give up for the sake of another.
func (as *answers) dropSlowestLocked() bool {
	var slowest *held
	var least float64
	now := time.Now()
	for held := range as.going {
		o := &held.answer
		age := now.Sub(o.began)
		if age < answerSpared || o.memory == 0 {
			continue
		}
		if pace := float64(o.taken) / age.Seconds(); slowest == nil || pace < least {
			slowest, least = held, pace
		}
	}
	if slowest == nil {
		return false
	}
	slowest.answer.dropped = true
	delete(as.going, slowest)
	as.setMemoryLocked(slowest, 0)                // its request is over at once
	_ = slowest.answer.conn.SetWriteDeadline(now) // recorders have no deadlines, and wait for nothing
	return true
}

// release gives back all that an answer has.
func (as *answers) release(held *held) {
	as.built(&held.answer)
	if !held.answer.counted {
		return
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	as.setMemoryLocked(held, 0)
}

// errNotTaken comes from an answer that was given up for the sake of others.
var errNotTaken = errors.New("the answer was taken slowest of all when another needed its room")

// paced writes an answer piece by piece, each in the time that it has.
type paced struct {
	answers *answers
	answer  *outgoing
	writer  io.Writer
	end     time.Time // of all; zero: there is none
}

// pace begins to send an answer, until sent.
func (as *answers) pace(ctx context.Context, held *held, w http.ResponseWriter) *paced {
	o := &held.answer
	p := &paced{answers: as, answer: o, writer: w}
	if end, ok := ctx.Deadline(); ok {
		p.end = end.Add(answerGrace)
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	o.conn, o.began = http.NewResponseController(w), time.Now()
	as.going[held] = true
	return p
}

// sent says that nothing more is sent of an answer.
func (as *answers) sent(held *held) {
	as.mu.Lock()
	defer as.mu.Unlock()
	delete(as.going, held)
}

// Write fails when the client takes nothing, or too slowly.
func (p *paced) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		if err := p.allow(); err != nil {
			return written, err
		}
		n, err := p.writer.Write(b[written:min(len(b), written+pieceBytes)])
		written += n
		p.answers.mu.Lock()
		p.answer.taken += int64(n)
		p.answers.mu.Unlock()
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// allow gives the next piece its time, unless the answer is given up.
func (p *paced) allow() error {
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	o := p.answer
	if o.dropped {
		return errNotTaken
	}
	until := o.began.Add(answerGrace + time.Duration(o.taken)*time.Second/slowestPace)
	if !p.end.IsZero() && p.end.Before(until) {
		until = p.end
	}
	// Recorders have no deadlines, and need none.
	_ = o.conn.SetWriteDeadline(until)
	return nil
}
