package types

import "slices"

// Side is one of the two that changed an object.
type Side int

// The sides of a merge.
const (
	// Mine is who wants to write.
	Mine Side = iota
	// Theirs is what is live.
	Theirs
)

// Take is the merge with its conflicts decided for one side. In a text the
// side's lines are taken where both changed the same place, and all other changes
// of both sides stay. The side's whole value is taken where there are no such
// lines, where its lines among the other's would make an unsound text, and where
// the conflict has a Reason.
//
// Each decision is among Applied, or among Theirs where the live value stays as
// it is.
func (m Merged) Take(side Side) Merged {
	out := m
	out.Document = m.Document.Clone()
	out.Applied, out.Theirs, out.Conflicts = slices.Clone(m.Applied), slices.Clone(m.Theirs), nil
	for _, c := range m.Conflicts {
		value, merged := c.take(side)
		if SameValue(value, c.Live) {
			out.Theirs = append(out.Theirs, Change{Field: c.Field, From: c.Base, To: c.Live})
			continue
		}
		out.apply(Change{Field: c.Field, From: c.Live, To: value, Merged: merged})
	}
	return out
}

func (c Conflict) take(side Side) (value any, merged bool) {
	if t, ok := textsOf(c.Field, c.Base, c.Mine, c.Live); ok && c.Lines != nil && c.Reason == "" {
		if text, ok := t.take(c.Lines, side); ok {
			return text, text != c.Mine
		}
	}
	if side == Mine {
		return c.Mine, false
	}
	return c.Live, false
}
