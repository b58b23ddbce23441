package main

import (
	"context"
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/pkg/types"
)

// mineLabel stands behind the marker of the person's own text.
const mineLabel = "yours"

// meet shows the person what somebody else made of the same, and makes the fresh
// object the one that they edit. Where nobody can be asked, that is the end.
func (s *session) meet(ctx context.Context, clash *clashError) error {
	find := newOrigins(s.conn, clash.live)
	conflict := s.conflict(ctx, clash, find)
	if !s.interactive() {
		return conflict
	}
	was, now := s.start.ResourceVersion(), clash.live.ResourceVersion()
	marked, err := s.view.Mark(clash.merged, func(c types.Conflict) markers.Marks {
		return markers.Marks{
			Mine:   mineLabel,
			Base:   "when you opened it (version " + was + ")",
			Theirs: "now (version " + now + "), " + find.of(ctx, c.Field),
		}
	})
	if err != nil {
		s.note("%v", err)
		return conflict
	}
	if _, err := s.show(clash.live); err != nil {
		s.note("%v", err)
		return conflict
	}
	from := s.draft.Shown
	from.Document, from.Markers = clash.live, marked.Size
	s.reason, s.work = &meeting{conflictError: conflict, merged: clash.merged}, true
	s.note("%v\nThe editor opens again, with both sides marked.", clash)
	return s.put(from, marked.Text)
}

// meeting is a conflict that is marked in the text.
type meeting struct {
	*conflictError
	merged types.Merged
}

func (e *meeting) Unwrap() error { return e.conflictError }

// conflict is the end of an edit that met another one.
func (s *session) conflict(ctx context.Context, clash *clashError, find *origins) *conflictError {
	c := s.conn.conflict(s.conn.namespace, s.draft.Shown.Name, "you and somebody else changed the same thing; nothing was written", "")
	if !s.interactive() {
		c.next = "in a terminal the command below opens your editor with both sides; without one, give it --on-conflict=ours or theirs"
	}
	for _, f := range clash.merged.Conflicts {
		s.addTo(c, f, clash.live.ResourceVersion(), find.of(ctx, f.Field))
	}
	return c
}

// addTo shows a field, or the places of a text where both changed the same lines.
func (s *session) addTo(c *conflictError, f types.Conflict, version, origin string) {
	c.addMerge(f, func(base, mine, live any) []sideValue {
		return []sideValue{
			{"when you opened it (version " + s.start.ResourceVersion() + ")", base, ""},
			{"yours", mine, ""},
			{"now (version " + version + ")", live, origin},
		}
	})
}

// lines of the note above a text with markers: what is to be done, and what needs
// nothing.
func (e *meeting) lines() []string {
	lines := []string{
		"Somebody else wrote while you edited, and both of you changed the same.",
		"Below is the object as it is now, with your other changes made to it. At each",
		"marked part keep one side, or write what both mean, and remove the marker lines;",
		"nothing is written until none is left. To give up, empty the text or leave the",
		"markers: it is then kept.",
		"",
	}
	for _, c := range e.merged.Conflicts {
		line := "changed by both: " + c.Field.String()
		if c.Reason != "" {
			line += " (" + c.Reason + ")"
		}
		lines = append(lines, line)
	}
	for _, c := range e.merged.Applied {
		if c.Merged {
			lines = append(lines, "changed by both, in different lines: "+c.Field.String())
			continue
		}
		lines = append(lines, fmt.Sprintf("yours, made again: %s: %s -> %s", c.Field, quote(c.From), quote(c.To)))
	}
	for _, c := range e.merged.Theirs {
		lines = append(lines, fmt.Sprintf("theirs, kept: %s: %s -> %s", c.Field, quote(c.From), quote(c.To)))
	}
	return lines
}
