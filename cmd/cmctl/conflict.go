package main

import (
	"fmt"
	"strings"

	"example.com/cmctl/pkg/types"
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
