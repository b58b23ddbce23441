package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// conflictError is a disagreement that a person must decide: each field with
// the values of both sides, and who wrote the other one when.
type conflictError struct {
	object string
	server string
	what   string // what happened, and that nothing was written
	next   string // what to do
	fields []fieldConflict
}

// conflict is one about an object; fields may be added to it.
func (c *connection) conflict(namespace, name, what, next string) *conflictError {
	return &conflictError{object: c.ConfigMaps(namespace).Object(name).Object(), server: c.Target().String(), what: what, next: next}
}

// fieldConflict is a field, or a place in its value, with what the sides made
// of it.
type fieldConflict struct {
	title string
	sides []sideValue
}

// sideValue is one side's value: whose, what, and where it came from if known.
type sideValue struct {
	label  string
	value  any
	origin string
}

func (e *conflictError) add(f types.Field, sides ...sideValue) {
	e.addPlace(f.String(), sides...)
}

func (e *conflictError) addPlace(title string, sides ...sideValue) {
	e.fields = append(e.fields, fieldConflict{title, sides})
}

// addMerge shows a field of a merge, or the places of its text where both changed the
// same lines; sides says whose the values are.
func (e *conflictError) addMerge(f types.Conflict, sides func(base, mine, live any) []sideValue) {
	title := f.Field.String()
	if f.Reason != "" {
		title += " (" + f.Reason + ")"
	}
	if f.Lines == nil {
		e.addPlace(title, sides(f.Base, f.Mine, f.Live)...)
		return
	}
	line := 1 // as it is now
	for _, r := range f.Lines {
		if r.Conflict {
			e.addPlace(fmt.Sprintf("%s, at line %d", title, line), sides(r.Base, r.Mine, r.Theirs)...)
		}
		line += strings.Count(r.Text+r.Theirs, "\n")
	}
}

func (e *conflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "conflict: %s on %s: %s", e.object, e.server, e.what)
	for _, f := range e.fields {
		fmt.Fprintf(&b, "\n  %s", f.title)
		width := 0
		for _, s := range f.sides {
			width = max(width, len(s.label)+1)
		}
		for _, s := range f.sides {
			fmt.Fprintf(&b, "\n    %-*s %s", width, s.label+":", quote(s.value))
			if s.origin != "" {
				fmt.Fprintf(&b, "   (%s)", s.origin)
			}
		}
	}
	if e.next != "" {
		fmt.Fprintf(&b, "\n%s", e.next)
	}
	return b.String()
}

// staleError is a server's refusal of a write that was made from another version
// than the object is at, in the form of the other conflicts.
type staleError struct {
	*conflictError
	err error
}

func (e *staleError) Unwrap() error { return e.err }

// stale tells whether the server refused a write for the version that it was made
// from, and nothing else is known about it.
func stale(err error) bool {
	return apierrors.IsConflict(err) && !unknownOutcome(err) && !errors.As(err, new(*retry.ExhaustedError)) && !errors.As(err, new(*retry.ReplacedError))
}

func newStaleError(object, name, server string, err error) *staleError {
	what := err.Error()
	for _, kind := range []string{"configmaps ", "ConfigMap "} {
		what = strings.Replace(what, "Operation cannot be fulfilled on "+kind+strconv.Quote(name)+": ", "", 1)
	}
	const nothing = "nothing was written"
	if !strings.Contains(what, nothing) {
		what += "; " + nothing
	}
	return &staleError{&conflictError{object: object, server: server, what: what}, err}
}
