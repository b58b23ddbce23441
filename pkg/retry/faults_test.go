package retry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"example.com/cmctl/pkg/retry"
)

// fault plays what goes wrong with one request: whether and when it is carried
// out, and what the caller gets instead of the answer.
type fault func(ctx context.Context, r request) (doc, error)

// script has the faults of each verb: the first for the first request of that
// verb, and so on. Nil, and what is beyond the end, go well.
type script map[string][]fault

func (sc script) of(verb string, n int) fault {
	if n < len(sc[verb]) {
		return sc[verb][n]
	}
	return nil
}

// checkUsed fails a test that prepared a fault which never came to pass.
func (s *server) checkUsed(t *testing.T) {
	t.Helper()
	for verb, faults := range s.faults {
		if s.seen[verb] < len(faults) {
			t.Errorf("%d of %d prepared faults of %s came to pass", s.seen[verb], len(faults), verb)
		}
	}
}

var errBroken = errors.New("connection broke")

// answers refuses a request with err; nothing is carried out.
func answers(err error) fault {
	return func(context.Context, request) (doc, error) { return doc{}, err }
}

var (
	// unsent never reaches the server.
	unsent = answers(&retry.UnsentError{Err: errBroken})
	// unread is a read whose answer breaks off, and late one whose answer is not waited for.
	unread = answers(&retry.UnreadError{Err: errBroken})
	late   = answers(&retry.UnreadError{Err: os.ErrDeadlineExceeded})
	// lostBefore breaks before the request is carried out, and it never is.
	lostBefore = answers(&retry.LostError{Err: errBroken})
)

// lostAfter breaks after the request was carried out.
func lostAfter(_ context.Context, r request) (doc, error) {
	_, _ = r.land() // whatever came of it, the answer is lost
	return doc{}, &retry.LostError{Err: errBroken}
}

// lostLate breaks while the request is on its way: it lands before the next
// write does.
func lostLate(_ context.Context, r request) (doc, error) {
	r.landLater()
	return doc{}, &retry.LostError{Err: errBroken}
}

// afterWhatIsLate lets requests that are on their way land before a read.
func afterWhatIsLate(_ context.Context, r request) (doc, error) {
	r.write = true
	return r.land()
}

// failsAfter is carried out, and answered with err all the same.
func failsAfter(err error) fault {
	return func(_ context.Context, r request) (doc, error) {
		_, _ = r.land() // the answer is err
		return doc{}, err
	}
}

// meanwhile lets somebody else act just before the request is carried out.
func meanwhile(act ...func(*server)) fault {
	return func(_ context.Context, r request) (doc, error) {
		for _, a := range act {
			a(r.server)
		}
		return r.land()
	}
}

// then lets somebody else act right after another fault.
func (f fault) then(act ...func(*server)) fault {
	return func(ctx context.Context, r request) (doc, error) {
		got, err := f(ctx, r)
		for _, a := range act {
			a(r.server)
		}
		return got, err
	}
}

// after is a fault that takes its time.
func after(d time.Duration, f fault) fault {
	return func(ctx context.Context, r request) (doc, error) {
		time.Sleep(d) // on the test's clock
		return f(ctx, r)
	}
}

// hangs carries the request out and answers nothing until the context ends.
func hangs(ctx context.Context, r request) (doc, error) {
	_, _ = r.land() // its answer never comes
	<-ctx.Done()
	return doc{}, &retry.LostError{Err: ctx.Err()}
}

// sets is somebody else's write of one key.
func sets(key, value string) func(*server) {
	return func(s *server) { s.another(func(d doc) doc { return d.with(key, value) }) }
}

func deletes(s *server) { s.anotherDeletes() }

// replaces deletes the object and makes another one.
func replaces(s *server) {
	s.anotherDeletes()
	s.another(func(doc) doc { return doc{data: map[string]string{"a": "new"}} })
}

func repeat(f fault, n int) []fault {
	all := make([]fault, n)
	for i := range all {
		all[i] = f
	}
	return all
}

var errOwn = fmt.Errorf("the edit's own error")
