package retry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrUnchanged is what an edit returns when the fresh copy needs no change.
// Nothing is written then, and that is a success.
var ErrUnchanged = errors.New("nothing to change")

// LostError marks a write whose answer did not arrive although the request may
// have: the connection broke or a deadline passed after the body went out.
// Targets return it; it is how the loop knows that the outcome is open.
type LostError struct{ Err error }

func (e *LostError) Error() string { return "the answer was lost: " + e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// UnsentError marks a request that certainly did not reach the server, such as
// a refused connection. Targets return it.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }

// UnreadError marks a read whose answer did not arrive, or not whole. It leaves nothing
// open: the read can be made again. Targets return it.
type UnreadError struct{ Err error }

func (e *UnreadError) Error() string { return e.Err.Error() }
func (e *UnreadError) Unwrap() error { return e.Err }

// RefusedError marks a write that the server certainly did not carry out, and that it
// would not carry out in a while either, whatever its code stands for elsewhere.
// Targets return it.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// ExhaustedError says that the loop gave up. It unwraps to the last answer, and to
// the context's error if that is what ended it.
type ExhaustedError struct {
	Object    string
	Attempts  int           // writes sent; 0 if it could not even be read
	Conflicts int           // of them refused with a Conflict
	Delays    int           // answers that asked to wait, or that never came
	Elapsed   time.Duration // since the loop began
	Last      error         // the last answer
	Ended     error         // the context's error if it ended while the loop waited; nil if a cap was reached
	Unwritten bool          // writes were sent, and it is certain that none of them was carried out
}

func (e *ExhaustedError) Error() string {
	what, tries, counts := e.Object, e.Attempts, fmt.Sprintf(" (%s, %s)", count(e.Conflicts, "conflict"), count(e.Delays, "delay"))
	if e.Attempts == 0 { // each delay was that of a read
		what, tries, counts = "reading "+e.Object, e.Delays, ""
	}
	how := ""
	switch {
	case errors.Is(e.Ended, context.DeadlineExceeded):
		how = ", out of time,"
	case e.Ended != nil:
		how = ", told to end,"
	}
	nothing := ""
	if e.Unwritten {
		nothing = "; nothing was written"
	}
	return fmt.Sprintf("gave up on %s%s after %s in %s%s%s; the last answer: %v",
		what, how, count(tries, "attempt"), e.Elapsed.Round(time.Millisecond), counts, nothing, e.Last)
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (e *ExhaustedError) Unwrap() []error {
	if e.Ended == nil {
		return []error{e.Last}
	}
	return []error{e.Ended, e.Last}
}

// OutcomeUnknownError says that a write may have landed or not, and that
// nothing can tell. Whoever gets it must look at the object before trying again.
type OutcomeUnknownError struct {
	Object  string
	Sent    string // the version that the write was made from; empty for a create
	Current string // the version found afterwards; empty if none was read
	WriteID string
	Err     error // what hid the outcome
}

func (e *OutcomeUnknownError) Error() string {
	write := "creating " + e.Object
	if e.Sent != "" {
		write = "a write to " + e.Object + " made from version " + e.Sent
	}
	now := "no version of it was read since"
	if e.Current != "" {
		now = "it is at version " + e.Current + " now"
	}
	return fmt.Sprintf("the outcome of %s is unknown; %s: %v", write, now, e.Err)
}

func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// ReplacedError says that the object is another one than the caller means: it was
// deleted and recreated since it was first read, or never had the wanted uid.
type ReplacedError struct {
	Object   string
	Was, Now Version
	Wanted   bool // Was is what the caller wanted, and no such object was seen
}

func (e *ReplacedError) Error() string {
	if e.Wanted {
		return fmt.Sprintf("%s is not the one that is wanted: its uid is %s, not %s; nothing was written to it", e.Object, e.Now.UID, e.Was.UID)
	}
	return fmt.Sprintf("%s was deleted and recreated meanwhile (uid %s is now %s); nothing was written to the new one",
		e.Object, e.Was.UID, e.Now.UID)
}

// answer is what a failed request means for the loop.
type answer int

const (
	final     answer = iota // stop: another try would get the same
	conflict                // refused: made from another version
	delayed                 // refused for now, certainly not carried out
	ambiguous               // may have been carried out
)

// classify sorts the error of a write. A 5xx counts as ambiguous: behind it
// may stand a proxy that lost its upstream's answer, or a store that timed out
// after the write went through. Only a 503 that says when to come back is the
// API server's own word, given before it does anything: a proxy's has no such
// time, or is no Status, which a Target reports as a LostError.
func classify(err error) answer {
	var unsent *UnsentError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, new(*RefusedError)):
		return final
	case errors.As(err, new(*LostError)):
		return ambiguous
	case errors.As(err, &unsent):
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return final
		}
		return delayed
	case apierrors.IsConflict(err):
		return conflict
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err) && askedDelay(err) > 0:
		return delayed
	case errors.As(err, &status):
		if code := status.Status().Code; code >= 500 && code != http.StatusNotImplemented && code != http.StatusInsufficientStorage {
			return ambiguous
		}
	}
	return final
}

// Unwritten tells of the error of a write whether it was certainly not carried out for
// the server's sake, so that another server may be given it.
func Unwritten(err error) bool { return errors.As(err, new(*RefusedError)) || classify(err) == delayed }

// transientRead tells whether a failed read is worth another try. While a lost
// answer is being settled every failure to reach the server is; otherwise only
// one in which the server itself asks to come back, and an answer that broke off:
// one that took too long would take as long again.
func transientRead(err error, settling bool) bool {
	var late net.Error
	switch {
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		return true
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, new(*UnreadError)):
		return settling || !errors.As(err, &late) || !late.Timeout()
	case !settling:
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= 500
	}
	return errors.As(err, new(*UnsentError)) || errors.As(err, new(*LostError))
}

// askedDelay is the Retry-After of an answer, 0 if it has none.
func askedDelay(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return time.Duration(seconds) * time.Second
	}
	return 0
}
