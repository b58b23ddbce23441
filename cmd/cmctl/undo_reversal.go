package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// reversal is what an undo takes back: base had it, mine has not. Both are without
// bookkeeping, which stays as it is: so the next apply of the file that is on record
// finds that somebody undid what it applied, and asks.
type reversal struct {
	base, mine types.Document
	from, to   string         // their versions
	writes     []pastWrite    // what is taken back, newest first
	start      types.Document // the object as it was when the undo began
}

// reversal finds what is to be taken back of an object that is there.
func (u *undo) reversal(ctx context.Context, items []types.HistoryEntry) (change, error) {
	from, to, err := u.chosen(ctx, items)
	if err != nil {
		return change{}, err
	}
	r, err := u.between(ctx, items, from, to)
	if err != nil {
		return change{}, err
	}
	if u.to != "" {
		if err := u.meetOthers(ctx, r); err != nil {
			return change{}, err
		}
	}
	u.tellTaken(r)
	if u.onConflict == conflictFail && u.guard.resourceVersion == "" {
		u.guard.resourceVersion = r.start.ResourceVersion()
	}
	known := r.start
	return change{
		name: u.past.name,
		uid:  r.start.UID(),
		edit: func(ctx context.Context, fresh types.Document) (types.Document, error) {
			next, err := u.takeBack(ctx, r, known, fresh)
			known = fresh
			return next, err
		},
		word: func(_, _ types.Document) string { return "undone" },
		// Done twice, it would undo what somebody did again in between.
		computed: true,
	}, nil
}

// chosen are the places in the history of the version that is taken back, the newest
// of them, and of the one that it is taken back to.
func (u *undo) chosen(ctx context.Context, items []types.HistoryEntry) (from, to int, err error) {
	given := cmp.Or(u.change, u.to)
	at := 0
	if given != "" {
		if at = place(items, given); at < 0 {
			if _, err := u.past.version(ctx, given); err != nil {
				return 0, 0, err
			}
			return 0, 0, fmt.Errorf("the history did not list version %s; try again", given)
		}
	}
	if items[at].UID != items[0].UID || items[at].Deleted {
		return 0, 0, u.conn.conflict(u.conn.namespace, u.past.name,
			fmt.Sprintf("version %s is of another object of this name, which was deleted since; nothing was written", given),
			fmt.Sprintf("take from it what you need: 'cmctl get %s --version %s -o yaml%s' shows it while it lived", u.past.name, given, u.conn.where))
	}
	if u.to != "" {
		return 0, at, nil
	}
	to = before(items, at)
	switch version := items[at].ResourceVersion; {
	case to >= 0:
	case !creates(items, at):
		return 0, 0, &output.MissingError{Message: fmt.Sprintf("the version before %s is no longer kept, so that what changed in it can't be taken back; nothing was written", version)}
	default:
		return 0, 0, &hintedError{fmt.Errorf("version %s made the object, and that is not undone; nothing was written", version),
			fmt.Sprintf("to delete it, unless it is changed first: 'cmctl delete %s --resource-version=%s%s'", u.past.name, items[0].ResourceVersion, u.conn.where)}
	}
	if at == 0 && items[0].Verb == "delete" {
		return 0, 0, errors.New("the object is marked for deletion, which can't be taken back: it goes when its finalizers are removed; nothing was written")
	}
	return at, to, nil
}

// between reads what was written after version to, up to version from.
func (u *undo) between(ctx context.Context, items []types.HistoryEntry, from, to int) (*reversal, error) {
	r := &reversal{from: items[from].ResourceVersion, to: items[to].ResourceVersion}
	var err error
	if r.start, err = u.past.version(ctx, items[0].ResourceVersion); err != nil {
		return nil, err
	}
	for _, side := range []struct {
		doc     *types.Document
		version string
	}{{&r.base, r.from}, {&r.mine, r.to}} {
		doc, err := u.past.version(ctx, side.version)
		if err != nil {
			return nil, err
		}
		*side.doc, _ = withoutRecord(doc)
	}
	for i := from; i < to; i++ {
		w, err := u.past.write(ctx, items, i)
		if err != nil {
			return nil, err
		}
		if !w.known {
			return nil, &output.MissingError{Message: fmt.Sprintf("version %s is no longer kept; nothing was written", w.ResourceVersion)}
		}
		r.writes = append(r.writes, w)
	}
	return r, nil
}

// tellTaken names the writes of which something is taken back.
func (u *undo) tellTaken(r *reversal) {
	taken := map[types.Field]bool{}
	for _, c := range types.Diff(r.base, r.mine) {
		taken[c.Field] = true
	}
	var lines []string
	for _, w := range r.writes {
		fields := fieldsOf(slices.DeleteFunc(slices.Clone(w.changes), func(c types.Change) bool { return !taken[c.Field] }))
		if len(fields) == 0 {
			continue
		}
		what := strings.Join(firstOf(fields), ", ")
		if more := len(fields) - maxTold; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, fmt.Sprintf("takes back version %s, %s by %s: %s", w.ResourceVersion, w.Verb, whoAndWhen(w.HistoryEntry), what))
	}
	for _, line := range firstOf(lines) {
		u.note("%s", line)
	}
	if more := len(lines) - maxTold; more > 0 {
		u.note("and %d older versions", more)
	}
}

// takeBack makes the change in reverse to a copy of the object; known is the copy
// before it, of which the person was told.
func (u *undo) takeBack(ctx context.Context, r *reversal, known, fresh types.Document) (types.Document, error) {
	u.on, u.next = fresh, nil
	bare, restore := withoutRecord(fresh)
	m := types.Merge(r.base, r.mine, bare)
	told, _ := takeSide(u.onConflict, &m)
	if len(m.Conflicts) > 0 {
		return nil, u.clash(ctx, r, fresh, m)
	}
	if fresh.ResourceVersion() != known.ResourceVersion() {
		u.reapplied(known, m, bare)
	}
	for _, line := range told {
		u.note("%s", line)
	}
	if len(m.Applied) == 0 {
		u.note("nothing to take back: all of it is so already")
		return nil, retry.ErrUnchanged
	}
	restore(m.Document)
	u.next = m.Document
	return u.next, nil
}

// clash is the end of an undo of what somebody else has built on.
func (u *undo) clash(ctx context.Context, r *reversal, fresh types.Document, m types.Merged) error {
	c := u.conn.conflict(u.conn.namespace, u.past.name,
		"somebody has changed since what is to be undone; nothing was written",
		"take it back all the same with --on-conflict=ours, or leave what is there now with --on-conflict=theirs")
	find := newOrigins(u.conn, fresh)
	for _, f := range firstOf(m.Conflicts) {
		c.addMerge(f, func(base, mine, live any) []sideValue {
			return []sideValue{
				{"to be undone (version " + r.from + ")", base, ""},
				{"to be again (version " + r.to + ")", mine, ""},
				{"now (version " + fresh.ResourceVersion() + ")", live, find.of(ctx, f.Field)},
			}
		})
	}
	if more := len(m.Conflicts) - maxTold; more > 0 {
		c.what += fmt.Sprintf(" (%d fields more than are shown)", more)
	}
	return c
}
