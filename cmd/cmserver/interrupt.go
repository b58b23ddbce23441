package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
)

// interruption is a signal that ends a command before it is done.
type interruption struct{ signal os.Signal }

func (i interruption) Error() string {
	if i.signal == os.Interrupt {
		return "ended by SIGINT"
	}
	return "ended by SIGTERM"
}

// Is makes it what a context is ended by.
func (interruption) Is(target error) bool { return target == context.Canceled }

// exitCode is the shell's for a program that the signal ended.
func (i interruption) exitCode() int {
	number, _ := i.signal.(syscall.Signal)
	return 128 + int(number)
}

// endedBy is the interruption, if there was one, in place of an error that came of it.
func endedBy(ctx context.Context, err error) error {
	var i interruption
	if err != nil && errors.As(context.Cause(ctx), &i) {
		return i
	}
	return err
}

// letGoReader reads from what may block for as long as somebody else likes, even in
// being opened: a pipe, a terminal. A reader is let go when ctx ends, and what blocks
// then goes with the process.
func letGoReader(ctx context.Context, open func() (io.ReadCloser, error)) io.ReadCloser {
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) }) // it never fails
	go func() {
		defer stop()
		in, err := open()
		if err == nil {
			_, err = io.Copy(w, in)
			err = errors.Join(err, in.Close())
		}
		_ = w.CloseWithError(err) // no error is the end
	}()
	return r
}

// letGoWriter writes to what may block, and lets go of it when ctx ends. All is
// written when finish returns.
type letGoWriter struct {
	*io.PipeWriter
	done chan error // gets the outcome, for which it has room
}

func newLetGoWriter(ctx context.Context, out io.Writer) letGoWriter {
	r, w := io.Pipe()
	l := letGoWriter{w, make(chan error, 1)}
	stop := context.AfterFunc(ctx, func() {
		_ = r.CloseWithError(context.Cause(ctx)) // it never fails
		l.done <- context.Cause(ctx)
	})
	go func() {
		_, err := io.Copy(out, r)
		_ = r.CloseWithError(err)
		if stop() {
			l.done <- err
		}
	}()
	return l
}

func (l letGoWriter) finish() error {
	_ = l.Close() // it never fails
	return <-l.done
}
