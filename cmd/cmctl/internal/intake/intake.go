// Package intake reads what a person gives to a command: files, named pipes and
// standard input. To read waits neither for input that doesn't come once the
// command is to end, nor takes it without limit.
//
//	value, err := intake.File(ctx, "nginx.conf", intake.MaxValue)
package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Limits, in bytes. They are far above what a server takes, so that what exceeds
// these can't have been meant.
const (
	// MaxValue is for what becomes a value: more than the request that holds it
	// may have.
	MaxValue = 3 << 20
	// MaxManifests is for a stream of objects.
	MaxManifests = 256 << 20
)

// TooLargeError says that input has more bytes than it may have.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("more than %d MiB are too much to read", e.Limit>>20)
}

// All reads to the end of r, which may have at most limit bytes: else it returns a
// TooLargeError. It returns the context's error as soon as that ends; a read that
// hangs then goes on by itself, so r is not to be used any more.
func All(ctx context.Context, r io.Reader, limit int64) ([]byte, error) {
	if r == nil {
		return nil, errors.New("it can't be read here")
	}
	return within(ctx, func() ([]byte, error) { return bounded(r, 0, limit) })
}

// File is All for the file at path. To open a named pipe may wait, too.
func File(ctx context.Context, path string, limit int64) ([]byte, error) {
	return within(ctx, func() ([]byte, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		return bounded(file, info.Size(), limit)
	})
}

// GivenUpError says that the context ended before the input did.
type GivenUpError struct{ Err error }

func (e *GivenUpError) Error() string { return "was not read to its end" }
func (e *GivenUpError) Unwrap() error { return e.Err }

// FileError says in a person's words why a file can't be used: path: no such file or
// directory.
func FileError(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if to, linkErr := os.Readlink(path); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w; it is a link to %s", path, err, to)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// within runs read, and leaves it alone when the context ends first.
func within(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, &GivenUpError{err}
	}
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1) // has room for the result that nobody waits for
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, &GivenUpError{ctx.Err()}
	case r := <-done:
		return r.text, r.err
	}
}

// bounded reads to the end, or beyond the limit. size is how much is expected.
func bounded(r io.Reader, size, limit int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(size, limit)) + bytes.MinRead) // one more read finds the end
	if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, &TooLargeError{limit}
	}
	return b.Bytes(), nil
}
