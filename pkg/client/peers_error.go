package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/retry"
)

// ServersError is the failure of a call for which several servers were tried. It
// unwraps to the one failure that tells how to go on: a write that may have been carried
// out, else a wish to come back later, else an answer that broke off, else the last one.
type ServersError struct {
	Err      error
	Failures []ServerFailure // in the order in which they came
}

// ServerFailure is why one of several servers was of no use.
type ServerFailure struct {
	Server string // as messages name it
	Err    error
}

func (e *ServersError) Error() string { return fmt.Sprintf("%v (tried: %s)", e.Err, e.Causes()) }

// Causes says of each server why it was of no use, without what to do about it.
func (e *ServersError) Causes() string {
	causes := make([]string, len(e.Failures))
	for i, f := range e.Failures {
		causes[i] = f.Server + ": " + f.cause()
	}
	return strings.Join(causes, "; ")
}

func (e *ServersError) Unwrap() error { return e.Err }

// cause is why, without what to do about it.
func (f ServerFailure) cause() string {
	var broken *ConnectionError
	if errors.As(f.Err, &broken) {
		return broken.Cause
	}
	return f.Err.Error()
}

// attempts are the failures of one call, of each server the last.
type attempts []ServerFailure

func (a attempts) with(p *peer, err error) attempts {
	server := p.String()
	a = slices.DeleteFunc(a, func(f ServerFailure) bool { return f.Server == server })
	return append(a, ServerFailure{server, err})
}

// failure is the error of a call that made these.
func (a attempts) failure() error {
	if len(a) == 1 {
		return a[0].Err
	}
	telling := len(a) - 1
	for i := range a {
		if weight(a[i].Err) > weight(a[telling].Err) {
			telling = i
		}
	}
	return &ServersError{Err: a[telling].Err, Failures: a}
}

// weight is how much a failure decides about what comes next.
func weight(err error) int {
	asked, ok := apierrors.SuggestsClientDelay(err)
	switch {
	case errors.As(err, new(*retry.LostError)):
		return 4 // the others carried nothing out
	case errors.As(err, new(*retry.RefusedError)):
		return 0 // another server may be of use later
	case ok && asked > 0:
		return 3
	case errors.As(err, new(*retry.UnreadError)):
		return 2 // it was there a moment ago
	}
	return 1
}
