package types

import (
	"fmt"
	"strings"

	"example.com/cmctl/pkg/types/lines"
)

// Change is what one side did to a field. A nil value means absent.
type Change struct {
	Field Field
	From  any
	To    any
	// Merged: both sides changed this text, in different lines, and To has what
	// both of them did.
	Merged bool
}

// Conflict is a field that two sides changed to different values. A nil value
// means absent.
type Conflict struct {
	Field Field
	Base  any
	Mine  any
	Live  any
	// Lines are where the values, which are texts, get into each other's way;
	// between these regions stands what either side changed. Nil where there is
	// nothing in between, or no text: then the values conflict as a whole.
	Lines lines.Merged
	// Reason is why changes of different lines are a conflict nevertheless. Lines
	// then has all of them to be decided.
	Reason string
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
	// Already are changes that live has as well: From is base's value.
	Already []Change
	// Theirs are changes from base to live that stay.
	Theirs []Change
	// Conflicts are fields that both sides changed, to values that can't be put
	// together.
	Conflicts []Conflict
}

// Merge re-applies what was changed between base and mine to live. Only the
// fields that mine changed are touched: everything else is live's, so that
// nobody's change is undone by being absent from mine. A field that live
// changed too is a conflict, unless both came to the same value, or it is a text
// in which each changed other lines.
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
			out.meet(f, b[f], m[f], l[f])
		default:
			out.apply(Change{Field: f, From: l[f], To: m[f]})
		}
	}
	return out
}

func (m *Merged) apply(c Change) {
	m.Applied = append(m.Applied, c)
	m.Document.Set(c.Field, c.To)
}

// meet merges a field that both sides changed.
func (m *Merged) meet(f Field, base, mine, live any) {
	c := Conflict{Field: f, Base: base, Mine: mine, Live: live}
	t, ok := textsOf(f, base, mine, live)
	if !ok {
		m.Conflicts = append(m.Conflicts, c)
		return
	}
	merged, err := t.merge()
	switch {
	case err != nil:
		c.Reason = err.Error()
		c.Lines = merged
		m.Conflicts = append(m.Conflicts, c)
	case !merged.Clean():
		if len(merged) > 1 {
			c.Lines = merged
		}
		m.Conflicts = append(m.Conflicts, c)
	case merged.Text() == t.live:
		m.Already = append(m.Already, Change{Field: f, From: base, To: live, Merged: true})
	default:
		m.apply(Change{Field: f, From: live, To: merged.Text(), Merged: true})
	}
}
