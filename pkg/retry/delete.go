package retry

import (
	"context"
	"fmt"
)

// Deleter is a Target that can be deleted.
type Deleter[T any] interface {
	Target[T]
	// Delete removes the object if it still has v's UID and, where v names
	// one, its ResourceVersion.
	Delete(ctx context.Context, v Version, id WriteID) error
}

// Delete reads the object and deletes the one that it read: another of the same
// name, made anew meanwhile, is a ReplacedError. NotFound is returned only if
// this call did not delete it. Where a lost answer leaves that open and the
// server keeps no history, an object that is gone counts as deleted: that is
// what was asked for.
//
// A want with a ResourceVersion makes the delete conditional on it, without
// retry of a Conflict; one with a UID, on the object being that one.
func Delete[T any](ctx context.Context, t Deleter[T], want Version, o Options) (Result[T], error) {
	l := newLoop(t.Object(), o)
	obj, err := read(ctx, l, t, false)
	if err != nil {
		return Result[T]{}, err
	}
	start := t.Version(obj)
	switch want.UID {
	case start.UID:
	case "":
		want.UID = start.UID
	default:
		return Result[T]{}, &ReplacedError{Object: l.object, Was: want, Now: start, Wanted: true}
	}
	l.sent = start.ResourceVersion
	if want.ResourceVersion != "" {
		l.sent = want.ResourceVersion
	}
	done := func(step Step) (Result[T], error) {
		l.observe(step, "", 0, nil)
		return Result[T]{Object: obj, Outcome: Written, Attempts: l.attempts}, nil
	}
	var lost error
	for {
		l.attempts++
		err := t.Delete(ctx, want, l.WriteID)
		if err == nil {
			return done(Done)
		}
		l.last = err
		kind := classify(err)
		var end error
		lost, end = l.doubt(ctx, kind, err, lost, "")
		switch {
		case end != nil:
			return Result[T]{}, end
		case lost != nil: // settled below
		case kind == delayed:
			if err := l.postponed(ctx, err); err != nil {
				return Result[T]{}, err
			}
			continue
		case kind == conflict && want.ResourceVersion == "":
			return Result[T]{}, deleteConflict(ctx, l, t, want, err)
		default:
			return Result[T]{}, err
		}
		now, step, err := settleDelete(ctx, l, t, start, want, lost)
		switch {
		case err != nil:
			return Result[T]{}, err
		case step != Resend:
			return done(step)
		case want.ResourceVersion != "" && now != want.ResourceVersion:
			// No delete of that version can land any more: refusal and cap stand.
			if kind == conflict {
				return Result[T]{}, l.last
			}
			if l.spent() {
				return Result[T]{}, l.exhausted(l.last)
			}
		}
		if err := l.mayResend(kind, lost); err != nil {
			return Result[T]{}, l.unknown(now, err)
		}
		l.observe(Resend, now, 0, lost)
	}
}

// settleDelete finds out what became of a delete whose answer was lost: Settled or
// Gone, or Resend if the object is still there, at version now.
func settleDelete[T any](ctx context.Context, l *loop, t Deleter[T], start, want Version, lost error) (now string, step Step, err error) {
	obj, gone := read(ctx, l, t, true)
	switch {
	case gone == nil && t.Version(obj).UID == want.UID:
		return t.Version(obj).ResourceVersion, Resend, nil
	case gone == nil:
		gone = &ReplacedError{Object: l.object, Was: want, Now: t.Version(obj)}
	case !isNotFound(gone):
		return "", "", l.unknown("", fmt.Errorf("%w; %w", lost, gone))
	}
	found, err := find(ctx, l, t, start.ResourceVersion)
	switch {
	case err != nil:
		return "", "", l.unknown("", fmt.Errorf("%w; %w; %w", lost, gone, err))
	case found == Landed:
		return "", Settled, nil
	case found == NoHistory && want.ResourceVersion == "":
		return "", Gone, nil
	case found == NoHistory:
		// It may have changed before another deleted it.
		return "", "", l.unknown("", fmt.Errorf("%w; %w", lost, gone))
	}
	return "", "", gone
}

// deleteConflict tells why a delete by uid was refused.
func deleteConflict[T any](ctx context.Context, l *loop, t Deleter[T], want Version, refusal error) error {
	now, err := read(ctx, l, t, false)
	switch {
	case isNotFound(err):
		return err
	case err == nil && t.Version(now).UID != want.UID:
		return &ReplacedError{Object: l.object, Was: want, Now: t.Version(now)}
	}
	return refusal
}
