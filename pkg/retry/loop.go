package retry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// loop carries the counters and caps that all verbs share.
type loop struct {
	Options
	object string
	began  time.Time

	attempts  int
	conflicts int
	delays    int
	sent      string    // version of the last write
	last      error     // the last answer to a write that did not succeed
	met       bool      // the server has been reached
	lost      bool      // the answer to a write was lost, and nothing proves that it did not land
	settleBy  time.Time // when what became of the last lost answer must be known
	// open is set once a body may have landed and could be merged again all the
	// same. No later failure proves that it did not land.
	open *OutcomeUnknownError
}

func newLoop(object string, o Options) *loop {
	if o.MaxAttempts <= 0 {
		o.MaxAttempts = 5
	}
	if o.MaxSettling <= 0 {
		o.MaxSettling = time.Minute
	}
	if o.WriteID == "" {
		o.WriteID = WriteID(rand.Text())
	}
	return &loop{Options: o, object: object, began: time.Now()}
}

func (l *loop) observe(step Step, current string, wait time.Duration, err error) {
	if l.Observe == nil {
		return
	}
	l.Observe(Event{Step: step, Attempt: l.attempts, Max: l.MaxAttempts, Sent: l.sent, Current: current, Wait: wait, Err: err})
}

// refused counts a conflict and waits before the next try.
func (l *loop) refused(ctx context.Context, err error) error {
	l.conflicts++
	return l.pause(ctx, Refused, l.conflicts, l.attempts >= l.MaxAttempts, err)
}

// postponed is for a write that was certainly not carried out: waiting is of
// use only if another attempt may follow.
func (l *loop) postponed(ctx context.Context, err error) error {
	l.delays++
	return l.pause(ctx, Waiting, l.delays, l.attempts >= l.MaxAttempts, err)
}

// delayed counts an answer to a read that asks for patience, or that broke off, and
// waits unless that was the last one.
func (l *loop) delayed(ctx context.Context, err error, last bool) error {
	l.delays++
	return l.pause(ctx, Waiting, l.delays, last || l.delays > l.MaxAttempts, err)
}

// unsettled counts what keeps a lost answer open and waits. The caps don't count
// here: a single answer that came too late may have used them up, and giving up
// now would leave open what can be known. It has a time of its own.
func (l *loop) unsettled(ctx context.Context, step Step, err error) error {
	l.delays++
	wait := l.Backoff.Delay(l.delays, askedDelay(err))
	return l.wait(ctx, step, wait, time.Now().Add(wait).After(l.settleBy), err)
}

// overdue tells whether the loop has no time left after a wait.
func (l *loop) overdue(wait time.Duration) bool {
	return l.MaxElapsed > 0 && time.Since(l.began)+wait > l.MaxElapsed
}

// spent tells whether a cap forbids another write.
func (l *loop) spent() bool {
	return l.attempts >= l.MaxAttempts || l.attempts > 0 && l.overdue(0)
}

// pause waits as the backoff says, within the caps.
func (l *loop) pause(ctx context.Context, step Step, n int, capped bool, cause error) error {
	wait := l.Backoff.Delay(n, askedDelay(cause))
	return l.wait(ctx, step, wait, capped || l.overdue(wait), cause)
}

// wait waits before the next try, or gives up without waiting if that is not to
// be. The observer sees what happened to the attempt either way.
func (l *loop) wait(ctx context.Context, step Step, wait time.Duration, over bool, cause error) error {
	if over {
		if step != Waiting {
			l.observe(step, "", 0, cause)
		}
		return l.exhausted(cause)
	}
	l.observe(step, "", wait, cause)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		ended := l.exhausted(cause)
		ended.Ended = ctx.Err()
		return ended
	}
	return nil
}

func (l *loop) exhausted(last error) *ExhaustedError {
	return &ExhaustedError{
		Object: l.object, Attempts: l.attempts, Conflicts: l.conflicts, Delays: l.delays,
		Elapsed: time.Since(l.began), Last: last, Unwritten: l.attempts > 0 && !l.lost,
	}
}

func (l *loop) unknown(current string, err error) *OutcomeUnknownError {
	return &OutcomeUnknownError{Object: l.object, Sent: l.sent, Current: current, WriteID: string(l.WriteID), Err: err}
}

// fail is how a loop ends with err: if an earlier body may have landed, its
// outcome is what is unknown, and err is only what hid it for good.
func (l *loop) fail(err error) error {
	if l.open == nil || errors.As(err, new(*OutcomeUnknownError)) || errors.As(err, new(*DeletedError)) {
		return err
	}
	unknown := *l.open
	unknown.Err = fmt.Errorf("%w; %w", unknown.Err, err)
	return &unknown
}

// read gets a copy, being patient with a server that asks for it, and while
// settling also with one that is not there.
func read[T any](ctx context.Context, l *loop, t Target[T], settling bool) (T, error) {
	obj, err := repeat(ctx, l, t.Get, settling)
	if err == nil {
		l.observe(Reread, t.Version(obj).ResourceVersion, 0, nil)
	}
	return obj, err
}

// maxUnread is how often in a row a read is made again whose answer broke off. It
// does no harm, but a network that lets nothing through is to be told of soon.
const maxUnread = 5

// repeat makes a read until there is an answer to it, within the caps.
func repeat[T any](ctx context.Context, l *loop, get func(context.Context) (T, error), settling bool) (T, error) {
	for unread := 0; ; {
		obj, err := get(ctx)
		l.met = l.met || !errors.As(err, new(*UnsentError))
		if err == nil || errors.Is(err, ctx.Err()) || !transientRead(err, settling) {
			return obj, err
		}
		if errors.As(err, new(*UnreadError)) {
			unread++
		} else {
			unread = 0
		}
		if settling {
			err = l.unsettled(ctx, Waiting, err)
		} else {
			err = l.delayed(ctx, err, unread > maxUnread)
		}
		if err != nil {
			return obj, err
		}
	}
}

// find asks the history, with the same patience as a settling read. A history
// that can't be read is no history, unless it is the context that ended.
func find[T any](ctx context.Context, l *loop, t Target[T], since string) (Finding, error) {
	for {
		found, err := t.Find(ctx, l.WriteID, since)
		if err == nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return NoHistory, ctx.Err()
		}
		if !transientRead(err, true) {
			return NoHistory, nil
		}
		if err := l.unsettled(ctx, Waiting, err); err != nil {
			return NoHistory, err
		}
	}
}
