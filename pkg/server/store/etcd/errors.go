package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/cmctl/pkg/server/store"
)

// readError is the error of a request that changes nothing, in the words of package store.
// ctx is the caller's.
func (s *Store) readError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case s.closed.Load():
		return store.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, rpctypes.ErrCompacted):
		return store.ErrCompacted
	case errors.Is(err, rpctypes.ErrFutureRev):
		return store.ErrFuture
	case isRefusal(err):
		return fmt.Errorf("etcd refuses: %w", err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
}

// refusal is the error of a write that etcd has not made, and never will make; nil if that
// is not known: that it has no space it may say of one that it has made.
func refusal(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrTooManyOps), isMessageTooLarge(err):
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	case errors.Is(err, rpctypes.ErrTooManyRequests):
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	case isRefusal(err):
		return fmt.Errorf("etcd refuses: %w", err)
	}
	return nil
}

// isMessageTooLarge tells of what gRPC takes for too much, before etcd sees it. It says so in
// words alone: the code is that of other troubles too.
func isMessageTooLarge(err error) bool {
	s, ok := status.FromError(err)
	return ok && s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max")
}

// isRefusal tells answers that come again however often one asks: who asks has not the
// right to, or asks for nonsense.
func isRefusal(err error) bool {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented:
		return true
	}
	return false
}

// isUnsupported tells that what answers doesn't know such a request.
func isUnsupported(err error) bool {
	return codeOf(err) == codes.Unimplemented || codeOf(err) == codes.InvalidArgument && strings.Contains(err.Error(), "unsupported operations in txn request")
}

// codeOf is the code of an answer of etcd, or of gRPC.
func codeOf(err error) codes.Code {
	if e := (rpctypes.EtcdError{}); errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// neverSent tells of a request for which there was no connection: no member took it. gRPC
// says so in words alone.
func neverSent(err error) bool {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.Unavailable {
		return false
	}
	return strings.Contains(s.Message(), "error while dialing") || strings.Contains(s.Message(), "Error while dialing") ||
		strings.Contains(s.Message(), "there is no address available") || strings.Contains(s.Message(), "there is no connection available")
}
