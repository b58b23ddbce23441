package etcd

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/cmctl/pkg/server/store"
)

// Only what is certain may be called a refusal: whoever is told of one writes again.
func TestWhatEtcdCertainlyDidNotMake(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		want    error // nil: any refusal
		certain bool
	}{
		"too large for etcd":                  {rpctypes.Error(rpctypes.ErrGRPCRequestTooLarge), store.ErrTooLarge, true},
		"too many operations":                 {rpctypes.Error(rpctypes.ErrGRPCTooManyOps), store.ErrTooLarge, true},
		"too large for gRPC":                  {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (2 vs. 1)"), store.ErrTooLarge, true},
		"too many requests":                   {rpctypes.Error(rpctypes.ErrGRPCRequestTooManyRequests), store.ErrUnreachable, true},
		"not permitted":                       {rpctypes.Error(rpctypes.ErrGRPCPermissionDenied), nil, true},
		"out of space":                        {rpctypes.Error(rpctypes.ErrGRPCNoSpace), nil, false},
		"a flow that was cut":                 {status.Error(codes.ResourceExhausted, "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM"), nil, false},
		"a leader that was lost":              {rpctypes.Error(rpctypes.ErrGRPCLeaderChanged), nil, false},
		"a timeout of etcd":                   {rpctypes.Error(rpctypes.ErrGRPCTimeout), nil, false},
		"a connection that broke":             {status.Error(codes.Unavailable, "error reading from server: EOF"), nil, false},
		"a deadline":                          {context.DeadlineExceeded, nil, false},
		"what nobody knows":                   {status.Error(codes.Unknown, "?"), nil, false},
		"a server that failed while it wrote": {status.Error(codes.Internal, "?"), nil, false},
	} {
		got := refusal(c.err)
		if (got != nil) != c.certain || c.want != nil && !errors.Is(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestARequestThatNobodyTook(t *testing.T) {
	for text, want := range map[string]bool{
		`connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: true,
		"there is no address available":               true,
		"error reading from server: EOF":              false,
		"etcdserver: request timed out":               false,
		"transport is closing":                        false,
		"the connection is draining":                  false,
		"closing transport due to: connection error:": false,
	} {
		if got := neverSent(status.Error(codes.Unavailable, text)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
	if neverSent(context.DeadlineExceeded) {
		t.Error("a request whose time was over may have been taken")
	}
}
