package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// write puts the person's change on the version that was shown, or makes it
// again on a fresh copy.
func (s *session) write(ctx context.Context, mine types.Document) error {
	if s.saveAs != "" {
		return s.create(ctx, mine)
	}
	w := &rewrite{session: s, mine: mine, live: s.start, known: s.start}
	options := s.retryOptions(s.progress(s.object))
	options.Want = s.want()
	res, err := s.send(ctx, w, options)
	return s.wrote(res, err, w)
}

// want is the condition under which alone is written.
func (s *session) want() retry.Version {
	if s.onConflict != conflictFail {
		return s.guard.want()
	}
	return retry.Version{UID: s.start.UID(), ResourceVersion: s.start.ResourceVersion()}
}

// wrote tells how a write ended.
func (s *session) wrote(res retry.Result[types.Document], err error, w *rewrite) error {
	name := s.draft.Shown.Name
	if err == nil && res.Outcome == retry.Unchanged {
		s.made = append(s.made, res.Object)
		s.tellDeletion(res.Object, s.dryRun)
	}
	var clash *clashError
	switch {
	case s.landedAndGone(err):
	case unknownOutcome(err):
		return s.conn.explain(s.conn.namespace, name, err)
	case errors.As(err, &clash), errors.As(err, new(*tooLargeError)):
		return err
	case apierrors.IsNotFound(err):
		return &deletedError{object: s.object.Object(), server: s.conn.Target().String(), err: err}
	case err != nil:
		return s.conn.explain(s.conn.namespace, name, err)
	case res.Outcome == retry.Unchanged && w.gaveWay:
		s.note("Nothing to write: what is there was kept.")
		return nil
	case res.Outcome == retry.Unchanged:
		s.note("Nothing to write: the object has all of your changes already.")
		return nil
	case s.dryRun == dryRunNone:
		if err := stored(res.Object, w.live, w.applied); err != nil {
			return s.conn.explain(s.conn.namespace, name, err)
		}
	}
	return s.told(name, "edited", res.Object)
}

// rewrite makes the person's change to one copy after the other.
type rewrite struct {
	*session
	mine    types.Document
	live    types.Document // the last copy
	known   types.Document // the last copy whose changes were told
	applied []types.Change
	gaveWay bool // a change of the person's was left out
}

func (w *rewrite) onto(_ context.Context, fresh types.Document) (types.Document, error) {
	w.live, w.applied = fresh, nil
	bare, restore := withoutRecord(fresh)
	m := types.Merge(w.base, w.mine, bare)
	decided := w.decide(&m)
	if len(m.Conflicts) > 0 {
		return nil, &clashError{live: fresh, merged: m}
	}
	if fresh.ResourceVersion() != w.known.ResourceVersion() {
		w.reapplied(w.known, m, bare)
		w.known = fresh
	}
	for _, line := range decided {
		w.note("%s", line)
	}
	if len(m.Applied) == 0 {
		return nil, retry.ErrUnchanged
	}
	restore(m.Document)
	if endsDeletion(fresh, finalizers(m.Document)) && !beingDeleted(w.start) {
		return nil, w.conn.wouldEnd(fresh, "your text")
	}
	if err := tooLarge(m.Document); err != nil {
		return nil, err
	}
	w.applied = m.Applied
	return m.Document, nil
}

// decide takes the side that --on-conflict names where both changed the same,
// and says so.
func (w *rewrite) decide(m *types.Merged) (told []string) {
	told, w.gaveWay = takeSide(w.onConflict, m)
	return told
}

// takeSide decides the conflicts of a merge as a value of --on-conflict says, and
// returns the lines that tell it; gaveWay is whether something of the person's was
// left out.
func takeSide(onConflict string, m *types.Merged) (told []string, gaveWay bool) {
	side, ok := map[string]types.Side{conflictOurs: types.Mine, conflictTheirs: types.Theirs}[onConflict]
	if !ok {
		return nil, false
	}
	for _, c := range m.Conflicts {
		took, left := c.Mine, c.Live
		if side == types.Theirs {
			took, left = c.Live, c.Mine
		}
		line := fmt.Sprintf("  %-14s %s: %s, not %s", onConflict+" taken:", c.Field, quote(took), quote(left))
		if c.Lines != nil && c.Reason == "" {
			line += " (where both changed the same lines; the others stay)"
		}
		told = append(told, line)
	}
	gaveWay = side == types.Theirs && len(m.Conflicts) > 0
	*m = m.Take(side)
	return told, gaveWay
}

// clashError is a fresh copy on which the person's change can't be made without
// undoing somebody else's.
type clashError struct {
	live   types.Document
	merged types.Merged
}

func (e *clashError) Error() string {
	return (&types.ConflictError{Conflicts: e.merged.Conflicts}).Error()
}

// create makes a new object of what the person made. What is there of its name
// stays as it is.
func (s *session) create(ctx context.Context, mine types.Document) error {
	copied := mine.Clone()
	copied.DropServerFields()
	copied.SetMeta("name", s.saveAs)
	copied.SetMeta("namespace", s.conn.namespace)
	if err := tooLarge(copied); err != nil {
		return err
	}
	object := s.conn.ConfigMaps(s.conn.namespace).Object(s.saveAs)
	made, err := s.sendNew(ctx, object, copied)
	if err != nil && !s.landedAndGone(err) {
		err = s.conn.nameTaken(ctx, s.conn.namespace, s.saveAs, err)
		return s.conn.explain(s.conn.namespace, s.saveAs, err)
	}
	return s.told(s.saveAs, "created", made)
}

// refused tells whether a text was refused for what it says, so that the person
// can put it right.
func refused(err error) bool {
	return err != nil && !unknownOutcome(err) &&
		(errors.As(err, new(*tooLargeError)) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err))
}

// immutableHint says what can be done where the data may not change.
func (s *session) immutableHint(err error) error {
	if immutable, _ := s.start["immutable"].(bool); !immutable || !apierrors.IsInvalid(err) || s.saveAs != "" {
		return err
	}
	return &frozenError{err}
}

// frozenError is a refusal for what may not change, with the way out in its text: the
// editor shows it.
type frozenError struct{ err error }

func (e *frozenError) Error() string {
	return e.err.Error() + "\nimmutable: its data cannot change; --save-as NAME makes a changed copy: undo the change of the data, or leave and go on with --resume and --save-as"
}

func (e *frozenError) Unwrap() error { return e.err }

// mayWrite refuses changes that are hardly meant.
func (s *session) mayWrite(changes []types.Change) error {
	if s.force || s.saveAs != "" {
		return nil
	}
	return leavesHelms(s.start, changes)
}

// deletedError says that the object went away while a person edited it.
type deletedError struct {
	object string
	server string
	err    error
}

func (e *deletedError) Error() string {
	return fmt.Sprintf("%s on %s was deleted while you edited it; nothing was written", e.object, e.server)
}

func (e *deletedError) Unwrap() error { return e.err }
