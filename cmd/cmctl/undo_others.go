package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/types"
)

// meetOthers looks, where an undo goes back over several writes, for the work of others
// than who made the oldest of them: who wants that one gone need not know of theirs. It
// is a conflict unless the person has decided; decided for them, it is left out of what
// is taken back.
func (u *undo) meetOthers(ctx context.Context, r *reversal) error {
	others := r.builtOn()
	if len(others) == 0 || u.onConflict == conflictOurs {
		return nil
	}
	fields := r.base.Fields()
	if u.onConflict == conflictTheirs {
		for _, f := range others {
			u.note("  %-14s %s: %s", "theirs taken:", f, quote(fields[f]))
			r.mine.Set(f, fields[f])
		}
		return nil
	}
	oldest := r.writes[len(r.writes)-1]
	c := u.conn.conflict(u.conn.namespace, u.past.name,
		fmt.Sprintf("going back to version %s would undo not only what %s did, but what others wrote since; nothing was written", r.to, author(oldest.HistoryEntry)),
		"take all of it back with --on-conflict=ours, leave theirs with --on-conflict=theirs, or take back one change alone with --change VERSION")
	was := r.mine.Fields()
	for _, f := range firstOf(others) {
		c.add(f, sideValue{"to be again (version " + r.to + ")", was[f], ""},
			sideValue{"now (version " + r.from + ")", fields[f], newest(r.writes, f)})
	}
	if more := len(others) - maxTold; more > 0 {
		c.what += fmt.Sprintf(" (%d fields more than are shown)", more)
	}
	return c
}

// author is who made a write, as far as it is known: the user, else the tool. cmctl and
// kubectl go by another name in each of their commands unless told otherwise.
func author(e types.HistoryEntry) string {
	tool, _, named := strings.Cut(e.FieldManager, "-")
	if named && (tool == "cmctl" || tool == "kubectl") {
		return cmp.Or(e.User, tool)
	}
	return cmp.Or(e.User, e.FieldManager)
}

// builtOn are the fields that would be taken back and in which others have a part than
// the author of the oldest write.
func (r *reversal) builtOn() []types.Field {
	if len(r.writes) == 0 {
		return nil
	}
	first := author(r.writes[len(r.writes)-1].HistoryEntry)
	theirs := map[types.Field]bool{}
	for _, w := range r.writes {
		for _, c := range w.changes {
			if author(w.HistoryEntry) != first {
				theirs[c.Field] = true
			}
		}
	}
	var fields []types.Field
	for _, c := range types.Diff(r.base, r.mine) {
		if theirs[c.Field] {
			fields = append(fields, c.Field)
		}
	}
	return fields
}

// newest tells who wrote a field last.
func newest(writes []pastWrite, f types.Field) string {
	for _, w := range writes {
		for _, c := range w.changes {
			if c.Field == f {
				return fmt.Sprintf("by %s, version %s", whoAndWhen(w.HistoryEntry), w.ResourceVersion)
			}
		}
	}
	return ""
}
