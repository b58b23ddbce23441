package retry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Creator is a Target that can be created.
type Creator[T any] interface {
	Target[T]
	// Create makes the object if there is none of its name.
	Create(ctx context.Context, obj T, id WriteID) (T, error)
}

// Create creates the object. AlreadyExists is returned only when it is
// somebody else's: one that a lost answer of this call left behind is the
// result. same tells whether an object found after a lost answer is what obj
// asked for; it decides where the server keeps no history.
func Create[T any](ctx context.Context, t Creator[T], obj T, same func(found T) bool, o Options) (Result[T], error) {
	l := newLoop(t.Object(), o)
	b, err := create(ctx, l, t, obj, false)
	switch {
	case err != nil:
		return Result[T]{}, err
	case b.created, b.perhaps && same(b.object):
		return Result[T]{Object: b.object, Outcome: Written, Attempts: l.attempts}, nil
	case b.perhaps:
		return Result[T]{}, l.unknown(t.Version(b.object).ResourceVersion, b.cause)
	}
	return Result[T]{}, b.cause
}

// CreateOrGet creates the object, or reads the one that exists and goes on with
// it: the outcome is Written or Existing.
func CreateOrGet[T any](ctx context.Context, t Creator[T], obj T, o Options) (Result[T], error) {
	l := newLoop(t.Object(), o)
	b, err := create(ctx, l, t, obj, true)
	if err != nil {
		return Result[T]{}, err
	}
	outcome := Existing
	if b.created {
		outcome = Written
	}
	return Result[T]{Object: b.object, Outcome: outcome, Attempts: l.attempts}, nil
}

// Upsert edits the object, or creates what make returns where there is none,
// however others create and delete it meanwhile.
func Upsert[T any](ctx context.Context, t Creator[T], make func(context.Context) (T, error), edit Edit[T], o Options) (Result[T], error) {
	l := newLoop(t.Object(), o)
	for {
		fresh, err := read(ctx, l, t, false)
		if isNotFound(err) && l.Want == (Version{}) {
			obj, err := make(ctx)
			if err != nil {
				return Result[T]{}, err
			}
			b, err := create(ctx, l, t, obj, true)
			if err != nil {
				return Result[T]{}, err
			}
			if b.created {
				return Result[T]{Object: b.object, Outcome: Written, Attempts: l.attempts}, nil
			}
			fresh = b.object
			if b.perhaps {
				l.open = l.unknown(t.Version(fresh).ResourceVersion, b.cause)
				if l.Computed {
					return Result[T]{}, l.open
				}
			}
		} else if err != nil {
			return Result[T]{}, err
		}
		var own error // of the edit: what it did not find is not this object
		res, err := update(ctx, l, t, fresh, func(ctx context.Context, fresh T) (next T, err error) {
			next, own = edit(ctx, fresh)
			return next, own
		})
		if own != nil || !isNotFound(err) || errors.As(err, new(*DeletedError)) || errors.As(err, new(*OutcomeUnknownError)) {
			return res, err
		}
		if l.spent() {
			return res, l.exhausted(err)
		}
	}
}

// birth is how a create ended: created, or object is what was found instead and
// cause the answer that told of it. perhaps: the found one may be ours.
type birth[T any] struct {
	object  T
	created bool
	perhaps bool
	cause   error
}

// create posts obj until it is known to exist, ours or not. want says that an
// existing one is read and returned instead of the refusal.
func create[T any](ctx context.Context, l *loop, t Creator[T], obj T, want bool) (birth[T], error) {
	l.sent = ""
	var lost error
	for {
		l.attempts++
		got, err := t.Create(ctx, obj, l.WriteID)
		if err == nil {
			l.observe(Done, t.Version(got).ResourceVersion, 0, nil)
			return birth[T]{object: got, created: true}, nil
		}
		l.last = err
		kind := classify(err)
		var end error
		lost, end = l.doubt(ctx, kind, err, lost, "")
		switch {
		case end != nil:
			return birth[T]{}, end
		case lost != nil: // settled below
		case apierrors.IsAlreadyExists(err):
			if !want {
				return birth[T]{}, err
			}
			found, readErr := read(ctx, l, t, false)
			if !isNotFound(readErr) {
				return birth[T]{object: found, cause: err}, readErr
			}
			// Deleted between the two answers: the name is free again.
			if err := l.refused(ctx, err); err != nil {
				return birth[T]{}, err
			}
			continue
		case kind == delayed && (l.met || !errors.As(err, new(*UnsentError))):
			l.met = true
			if err := l.postponed(ctx, err); err != nil {
				return birth[T]{}, err
			}
			continue
		default:
			// A server that was never reached is more likely not there than
			// restarting: like a first read that fails, this ends it.
			return birth[T]{}, err
		}
		b, resend, err := settleCreate(ctx, l, t, lost)
		if err != nil || !resend {
			return b, err
		}
		if err := l.mayResend(kind, lost); err != nil {
			return b, l.unknown("", err)
		}
		l.observe(Resend, "", 0, lost)
	}
}

// settleCreate finds out what became of a create whose answer was lost.
func settleCreate[T any](ctx context.Context, l *loop, t Creator[T], lost error) (b birth[T], resend bool, err error) {
	found, err := read(ctx, l, t, true)
	if err != nil && !isNotFound(err) {
		return b, false, l.unknown("", fmt.Errorf("%w; %w", lost, err))
	}
	absent := err
	finding, err := find(ctx, l, t, "")
	if err == nil && absent != nil && finding == Landed {
		// It may have landed only after the read.
		found, err = read(ctx, l, t, true)
		absent = err
		if isNotFound(err) {
			err = nil
		}
	}
	switch {
	case err != nil:
		return b, false, l.unknown("", fmt.Errorf("%w; %w", lost, err))
	case absent != nil && finding == Landed,
		absent != nil && finding == NoHistory && l.Computed: // it may have been there, and done its work
		return b, false, l.gone(finding, "", lost, absent)
	case absent != nil:
		return b, true, nil
	case finding == Landed:
		l.observe(Settled, t.Version(found).ResourceVersion, 0, nil)
		return birth[T]{object: found, created: true}, false, nil
	case finding == NoHistory:
		return birth[T]{object: found, perhaps: true, cause: lost}, false, nil
	}
	return birth[T]{object: found, cause: l.alreadyExists()}, false, nil
}

// alreadyExists is the server's refusal of a create, or one in its words where
// its answer was lost.
func (l *loop) alreadyExists() error {
	if apierrors.IsAlreadyExists(l.last) {
		return l.last
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists,
		Message: l.object + " already exists",
	}}
}
