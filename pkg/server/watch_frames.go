package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// frameTime is how long a client may take to receive a frame of a stream.
	frameTime = 30 * time.Second
	// partingTime is how long the last frame may take once a stream is to end.
	partingTime = time.Second
	// frameBytes is how much is collected before it is sent.
	frameBytes = 32 << 10
)

// errUnsent says that a stream's client no longer receives.
var errUnsent = errors.New("the client does not receive")

// frames sends a stream in pieces, each within its time. Many small events go
// together.
type frames struct {
	ctx     context.Context // of the stream
	writer  http.ResponseWriter
	conn    *http.ResponseController
	pending []byte
	hurry   func() bool   // stops what shortens the deadline when ctx ends
	hurried chan struct{} // closed when that was done
}

// open begins to send. When ctx ends, a client that is stuck in a frame is not
// waited for any longer.
func (f *frames) open(ctx context.Context, w http.ResponseWriter) {
	f.ctx, f.writer, f.conn = ctx, w, http.NewResponseController(w)
	// The deadline that the request's body had must not end the stream.
	_ = f.conn.SetReadDeadline(time.Time{})
	f.hurried = make(chan struct{})
	f.hurry = context.AfterFunc(ctx, func() {
		defer close(f.hurried)
		f.allow(partingTime)
	})
}

// close leaves the connection to the next request.
func (f *frames) close() {
	if !f.hurry() {
		<-f.hurried
	}
}

// allow gives what is written next its time. Recorders have no deadlines, and
// need none.
func (f *frames) allow(d time.Duration) { _ = f.conn.SetWriteDeadline(time.Now().Add(d)) }

// add puts an event behind those that wait, and sends them if they are many.
func (f *frames) add(event func(dst []byte) ([]byte, error)) error {
	var err error
	if f.pending, err = event(f.pending); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if len(f.pending) < frameBytes {
		return nil
	}
	return f.write()
}

// addShared sends an event that is not copied, behind those that wait: it is large,
// and others send it too.
func (f *frames) addShared(event func() ([]byte, error)) error {
	if err := f.write(); err != nil {
		return err
	}
	frame, err := event()
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if _, err := f.writer.Write(frame); err != nil {
		return errors.Join(errUnsent, err)
	}
	return nil
}

// flush sends all that waits, and the head of the answer.
func (f *frames) flush() error {
	if err := f.write(); err != nil {
		return err
	}
	if err := f.conn.Flush(); err != nil {
		return errors.Join(errUnsent, err)
	}
	// Over HTTP/2 a deadline ends the stream, whether something is sent or not.
	_ = f.conn.SetWriteDeadline(time.Time{})
	return nil
}

func (f *frames) write() error {
	// In this order: a stream that ends from here on shortens the deadline.
	f.allow(frameTime)
	if f.ctx.Err() != nil {
		f.allow(partingTime)
	}
	if len(f.pending) == 0 {
		return nil
	}
	_, err := f.writer.Write(f.pending)
	if f.pending = f.pending[:0]; cap(f.pending) > frameBytes {
		f.pending = nil // a watch may rest for long
	}
	if err != nil {
		return errors.Join(errUnsent, err)
	}
	return nil
}
