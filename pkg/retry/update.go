package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Update reads the object, applies the edit and puts the result back on the
// version that was read; on a Conflict it reads and applies anew. It returns
// NotFound if there is no such object, a ReplacedError if it became or is another
// one than wanted, an ExhaustedError when the caps are reached, an OutcomeUnknownError when
// a lost answer can't be settled, the edit's own error, or the server's refusal.
func Update[T any](ctx context.Context, t Target[T], edit Edit[T], o Options) (Result[T], error) {
	l := newLoop(t.Object(), o)
	fresh, err := read(ctx, l, t, false)
	if err != nil {
		return Result[T]{}, err
	}
	return update(ctx, l, t, fresh, edit)
}

// Read reads the object with the loop's patience: it waits where the server asks
// to, within the caps. A copy that is not what the options want is refused.
func Read[T any](ctx context.Context, t Target[T], o Options) (T, error) {
	l := newLoop(t.Object(), o)
	fresh, err := read(ctx, l, t, false)
	if err != nil {
		return fresh, err
	}
	return fresh, guard(ctx, l, t, fresh)
}

// Repeat makes a read of anything with the loop's patience: one that the server asks
// to make later, or whose answer broke off, is made again within the caps. object is
// what it is about, for the ExhaustedError that it may end with.
func Repeat[T any](ctx context.Context, object string, get func(context.Context) (T, error), o Options) (T, error) {
	return repeat(ctx, newLoop(object, o), get, false)
}

// UpdateFrom is Update on a copy that the caller has read already, such as the
// one a person was shown: the first write is made from its version.
func UpdateFrom[T any](ctx context.Context, t Target[T], start T, edit Edit[T], o Options) (Result[T], error) {
	return update(ctx, newLoop(t.Object(), o), t, start, edit)
}

func update[T any](ctx context.Context, l *loop, t Target[T], fresh T, edit Edit[T]) (Result[T], error) {
	first := t.Version(fresh)
	for {
		next, err := revise(ctx, l, t, fresh, edit)
		if errors.Is(err, ErrUnchanged) {
			outcome := Unchanged
			if l.open != nil {
				outcome = Written
			}
			return Result[T]{Object: fresh, Outcome: outcome, Attempts: l.attempts}, nil
		}
		if err != nil {
			return Result[T]{}, l.fail(err)
		}
		if t.Version(next) != t.Version(fresh) {
			return Result[T]{}, l.fail(fmt.Errorf("edit of %s changed the version that it was given", l.object))
		}
		f, err := send(ctx, l, t, next)
		if err != nil {
			return Result[T]{}, l.fail(err)
		}
		if f.landed {
			return Result[T]{Object: f.object, Outcome: Written, Attempts: l.attempts}, nil
		}
		fresh = f.object
		if now := t.Version(fresh); now.UID != first.UID {
			return Result[T]{}, l.fail(&ReplacedError{Object: l.object, Was: first, Now: now})
		}
	}
}

// revise makes the next version from a copy, if it is what the caller wants.
func revise[T any](ctx context.Context, l *loop, t Target[T], fresh T, edit Edit[T]) (next T, err error) {
	if l.open == nil {
		if err := guard(ctx, l, t, fresh); err != nil {
			return next, err
		}
		return edit(ctx, fresh)
	}
	// What may have landed moved the version itself: whether the edit finds its
	// values there comes first.
	if next, err = edit(ctx, fresh); err != nil {
		return next, err
	}
	return next, guard(ctx, l, t, fresh)
}

// guard refuses a copy that is not what the caller wants. That it is at another
// version than the wanted one is left to the server to say: a write is not
// asked for, since this copy is not what would have to be edited.
func guard[T any](ctx context.Context, l *loop, t Target[T], fresh T) error {
	now := t.Version(fresh)
	want := l.Want
	if want.UID == "" {
		want.UID = now.UID
	}
	if want.UID != now.UID {
		return &ReplacedError{Object: l.object, Was: want, Now: now, Wanted: true}
	}
	if want.ResourceVersion == "" || want == now {
		return nil
	}
	if err := t.Check(ctx, fresh, want); err != nil {
		return err
	}
	return fmt.Errorf("%s was read at version %s, and then the server took version %s for the current one; nothing was written",
		l.object, now.ResourceVersion, want.ResourceVersion)
}

// fate is what became of a body: it landed and object is what the server has,
// or not, as far as is known, and object is a fresh copy to edit.
type fate[T any] struct {
	object T
	landed bool
}

// send puts one body until its fate is known.
func send[T any](ctx context.Context, l *loop, t Target[T], body T) (fate[T], error) {
	if l.spent() {
		return fate[T]{}, l.exhausted(l.last)
	}
	l.sent = t.Version(body).ResourceVersion
	var lost error // the latest answer that left the outcome open
	for {
		l.attempts++
		got, err := t.Put(ctx, body, l.WriteID)
		if err == nil {
			l.observe(Done, t.Version(got).ResourceVersion, 0, nil)
			return fate[T]{object: got, landed: true}, nil
		}
		l.last = err
		kind := classify(err)
		var end error
		lost, end = l.doubt(ctx, kind, err, lost, l.sent)
		switch {
		case end != nil:
			return fate[T]{}, end
		case lost != nil: // settled below
		case kind == conflict && l.Want.ResourceVersion == "":
			if err := l.refused(ctx, err); err != nil {
				return fate[T]{}, err
			}
			fresh, err := read(ctx, l, t, false)
			return fate[T]{object: fresh}, err
		case kind == delayed:
			if err := l.postponed(ctx, err); err != nil {
				return fate[T]{}, err
			}
			continue
		default:
			return fate[T]{}, err
		}
		f, resend, err := settle(ctx, l, t, t.Version(body), lost)
		if err != nil || !resend {
			return f, err
		}
		if err := l.mayResend(kind, lost); err != nil {
			return f, l.unknown(l.sent, err)
		}
		l.observe(Resend, l.sent, 0, lost)
	}
}

// settle finds out what became of a write whose answer was lost. resend means
// that the object is still at the version sent, so that the same body may go
// out again: at most one of the two can land.
func settle[T any](ctx context.Context, l *loop, t Target[T], sent Version, lost error) (f fate[T], resend bool, err error) {
	fresh, err := read(ctx, l, t, true)
	if err != nil && !isNotFound(err) {
		return f, false, l.unknown("", fmt.Errorf("%w; %w", lost, err))
	}
	var now Version
	gone := err
	if gone == nil {
		now = t.Version(fresh)
		if now == sent {
			return f, true, nil
		}
		if now.UID != sent.UID {
			gone = &ReplacedError{Object: l.object, Was: sent, Now: now}
		}
	}
	found, err := find(ctx, l, t, sent.ResourceVersion)
	switch {
	case err != nil:
		return f, false, l.unknown(now.ResourceVersion, fmt.Errorf("%w; %w", lost, err))
	case gone != nil:
		return f, false, l.gone(found, now.ResourceVersion, lost, gone)
	case found == Landed:
		l.observe(Settled, now.ResourceVersion, 0, nil)
		return fate[T]{object: fresh, landed: true}, false, nil
	case found == NoHistory && l.Computed:
		return f, false, l.unknown(now.ResourceVersion, lost)
	case found == NoHistory:
		// Even with no attempt left: the edit tells whether its values are there.
		l.open = l.unknown(now.ResourceVersion, lost)
	default:
		l.lost = false // it is proven
		if l.spent() {
			return f, false, l.exhausted(l.last)
		}
	}
	return fate[T]{object: fresh}, false, nil
}

// doubt takes note of an answer to a write whose outcome it leaves open, or that
// of an earlier sending of it: whatever an answer to a resend says, it says it
// about the resend alone. It returns the latest answer that left the outcome
// open, nil if none did, and waits where that is asked for; end is how the loop
// ends if it can't, with current being what is known of the object's version.
func (l *loop) doubt(ctx context.Context, kind answer, err, lost error, current string) (open, end error) {
	l.settleBy = time.Now().Add(l.MaxSettling)
	switch {
	case kind == ambiguous:
		l.lost = true
		if err := l.unsettled(ctx, Lost, err); err != nil {
			return nil, l.unknown("", err)
		}
		return err, nil
	case lost == nil:
		return nil, nil
	case kind == delayed:
		if err := l.unsettled(ctx, Waiting, err); err != nil {
			return nil, l.unknown(current, err)
		}
	case kind == conflict:
		l.conflicts++
	}
	return lost, nil
}

// mayResend is nil if a lost write may go out again. What was refused may not,
// and neither refusal nor cap proves that the lost one will never land.
func (l *loop) mayResend(kind answer, lost error) error {
	switch {
	case kind == final, kind == conflict:
		return fmt.Errorf("%w; %w", lost, l.last)
	case l.spent():
		return l.exhausted(l.last)
	}
	return nil
}

// gone is the end of a lost write whose object is not there any more, as cause
// says: NotFound or ReplacedError.
func (l *loop) gone(found Finding, current string, lost, cause error) error {
	switch found {
	case Landed:
		return &DeletedError{Object: l.object, Err: cause}
	case NoHistory:
		return l.unknown(current, fmt.Errorf("%w; %w", lost, cause))
	}
	return cause
}

// DeletedError says that the write landed, and that the object was deleted
// before its answer could be read.
type DeletedError struct {
	Object string
	Err    error // the NotFound, or the ReplacedError if another was made since
}

func (e *DeletedError) Error() string {
	return fmt.Sprintf("the write to %s landed, but the object has been deleted since: %v", e.Object, e.Err)
}

func (e *DeletedError) Unwrap() error { return e.Err }

// isNotFound is true for a 404 with reason NotFound only: any other failure to
// read must not pass for absence.
func isNotFound(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonNotFound
}
