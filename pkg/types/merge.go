package types

import (
	"fmt"
	"strings"
)

// Change is what one side did to a field. A nil value means absent.
type Change struct {
	Field Field
	From  any
	To    any
}

// Conflict is a field that two sides changed to different values. A nil value
// means absent.
type Conflict struct {
	Field Field
	Base  any
	Mine  any
	Live  any
}

// ConflictError says that changes can't be put together without dropping one.
type ConflictError struct{ Conflicts []Conflict }

func (e *ConflictError) Error() string {
	names := make([]string, len(e.Conflicts))
	for i, c := range e.Conflicts {
		names[i] = c.Field.String()
	}
	return fmt.Sprintf("changed on both sides: %s", strings.Join(names, ", "))
}

// Diff lists what turns from into to, in a stable order. Identity and
// server-set fields are left out.
func Diff(from, to Document) []Change {
	a, b := from.Fields(), to.Fields()
	var changes []Change
	for _, f := range sortedFields(a, b) {
		if !SameValue(a[f], b[f]) {
			changes = append(changes, Change{Field: f, From: a[f], To: b[f]})
		}
	}
	return changes
}

// Merged is the end of a three-way merge.
type Merged struct {
	// Document is live with the person's changes made; it carries live's
	// version. Where there are conflicts it has live's side of them.
	Document Document
	// Applied are the changes that were made to live: From is live's value.
	Applied []Change
	// Already are changes that both sides made alike.
	Already []Change
	// Theirs are changes from base to live that stay.
	Theirs []Change
	// Conflicts are fields that both sides changed, to different values.
	Conflicts []Conflict
}

// Merge re-applies what was changed between base and mine to live. Only the
// fields that mine changed are touched: everything else is live's, so that
// nobody's change is undone by being absent from mine. A field that live
// changed too is a conflict, unless both came to the same value.
func Merge(base, mine, live Document) Merged {
	b, m, l := base.Fields(), mine.Fields(), live.Fields()
	out := Merged{Document: live.Clone()}
	for _, f := range sortedFields(b, m, l) {
		iChanged, theyChanged := !SameValue(b[f], m[f]), !SameValue(b[f], l[f])
		switch {
		case !iChanged && theyChanged:
			out.Theirs = append(out.Theirs, Change{Field: f, From: b[f], To: l[f]})
		case !iChanged:
		case SameValue(m[f], l[f]):
			out.Already = append(out.Already, Change{Field: f, From: b[f], To: m[f]})
		case theyChanged:
			out.Conflicts = append(out.Conflicts, Conflict{Field: f, Base: b[f], Mine: m[f], Live: l[f]})
		default:
			out.Applied = append(out.Applied, Change{Field: f, From: l[f], To: m[f]})
			out.Document.Set(f, m[f])
		}
	}
	return out
}
