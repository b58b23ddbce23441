package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/managed"
	"example.com/cmctl/pkg/types"
)

// plan is what an application makes of one copy of the live object. Nothing of it
// was written yet.
type plan struct {
	live types.Document // nil where there is none
	next types.Document // what is to be stored; it carries live's version
	// changes are what next changes of live, bookkeeping apart.
	changes []types.Change
	// overtaken are those of the changes that replace what was written while the
	// apply was under way.
	overtaken []types.Change
	// drifts are the disagreements, whichever side next has of them.
	drifts []types.Drift
	// open: next has no side of the drifts, for nobody decided.
	open bool
	// kept are fields that only the live object has, and keeps.
	kept []types.Field
	// adopted: live has no record of an apply that could be read.
	adopted bool
	// idle: nothing is to be written.
	idle bool
	// server is what is sent where the server merges; nil if it doesn't.
	server *serverPlan
	// merged is the comparison with the version that the file was made from,
	// where it says so.
	merged *types.Merged
}

// verb is what becomes of the object: created, configured or unchanged.
func (p plan) verb() string {
	switch {
	case p.live == nil:
		return "created"
	case p.idle:
		return "unchanged"
	}
	return "configured"
}

// overruled are the disagreements in which somebody's side was not taken.
func (p plan) overruled() []types.Drift {
	if p.server == nil {
		return p.drifts
	}
	return append(slices.Clone(p.drifts), p.server.contested...)
}

// wanted are the changes of a plan, and those that wait for a decision.
func (p plan) wanted(side types.ApplySide) []types.Change {
	if side == types.LiveSide {
		return p.changes
	}
	return append(slices.Clone(p.changes), disputed(p.overruled())...)
}

// finalizersLeft are those that the object has once the plan is carried out.
func (p plan) finalizersLeft(manager string) []string {
	if p.server == nil {
		return finalizers(p.next)
	}
	owned := p.live
	if p.server.prepared != nil {
		owned = p.server.prepared
	}
	// The server takes out what this manager alone has, and applies no more.
	return append(finalizers(p.server.body), slices.DeleteFunc(finalizers(p.live), func(name string) bool {
		who := managed.OwnersOfItem(owned, types.Field{Section: "metadata", Key: "finalizers"}, name, manager)
		return who.Ours && !who.Others
	})...)
}

// written is the document that a write of the plan sends.
func (p plan) written() types.Document {
	if p.server != nil {
		return p.server.body
	}
	return p.next
}

func (a *application) conflictOn(what, next string) *conflictError {
	return a.conn.conflict(a.m.Namespace(), a.m.Name(), a.m.Where()+": "+what, next)
}

// conflict is the error of a plan that a person must decide.
func (a *application) conflict(ctx context.Context, p plan) error {
	base, what := "last applied", "the file would revert what somebody changed since the last apply; nothing was written"
	switch {
	case p.server != nil && len(p.drifts) == 0:
		return a.contested(p, nil)
	case p.server != nil:
		base, what = "last applied", "the server would undo without a word what somebody changed since the last apply, or applied under this manager's name; nothing was written"
	case p.merged != nil:
		base, what = "version "+a.from.ResourceVersion(), "the file and somebody else changed the same thing since version "+a.from.ResourceVersion()+"; nothing was written"
	case p.adopted && hasRecord(p.live, a.conn.manager):
		base, what = "", "the record of what was last applied can't be read, and the file differs from the object; nothing was written"
	case p.adopted && managed.LastApplier(p.live) != "":
		base, what = "", fmt.Sprintf("%s applied it through the server and left no record to compare with, and the file differs from it; nothing was written", managed.LastApplier(p.live))
	case p.adopted:
		base, what = "", "nobody has applied this object yet, and the file differs from it; nothing was written"
	}
	c := a.conflictOn(what, "take the file's side with --force, keep the live one with --keep, or bring the file up to date")
	find := newOrigins(a.conn, p.live)
	for _, d := range firstOf(p.drifts) {
		var sides []sideValue
		if base != "" {
			sides = append(sides, sideValue{base, d.Base, ""})
		}
		sides = append(sides, sideValue{"file", d.File, ""}, sideValue{"live", d.Live, find.of(ctx, d.Field)})
		c.add(d.Field, sides...)
	}
	if p.server != nil {
		a.addContested(c, p)
	}
	if more := len(p.drifts) - maxTold; more > 0 {
		c.what += fmt.Sprintf(" (%d fields more than are shown)", more)
	}
	return c
}

// maxTold is how many fields of an object are told one by one.
const maxTold = 20

func firstOf[T any](list []T) []T { return list[:min(len(list), maxTold)] }

// tell notes what the person should know about a plan that went through.
func (a *application) tell(ctx context.Context, p plan) {
	if p.live == nil {
		return
	}
	a.tellOvertaken(ctx, p)
	if p.merged != nil && p.live.ResourceVersion() != a.from.ResourceVersion() {
		a.note("%s was made from version %s; the object is at version %s", a.m.Where(), a.from.ResourceVersion(), p.live.ResourceVersion())
		bare, _ := withoutRecord(p.live)
		a.reapplied(a.from, *p.merged, bare)
	}
	a.tellKept(p)
	if p.server != nil && len(p.server.shared) > 0 {
		a.tellFields("the file no longer has them, and they stay, for other managers own them too", "", fieldNames(p.server.shared))
	}
	gone := slices.DeleteFunc(slices.Clone(p.changes), func(c types.Change) bool { return c.To != nil })
	removed := would("removed", a.dry)
	for _, c := range firstOf(gone) {
		a.note("%s: %s, for the file no longer has it: %s (was %s)", a.m.Where(), removed, c.Field, quote(c.From))
	}
	a.tellRest(removed, len(gone))
	took := would("overwritten by the file", a.dry)
	if a.keep {
		took = would("kept as it is live", a.dry)
	}
	overruled := p.overruled()
	for _, d := range firstOf(overruled) {
		a.note("%s: %s: %s, file %s, live %s", a.m.Where(), d.Field, took, quote(d.File), quote(d.Live))
	}
	a.tellRest(took, len(overruled))
}

// tellOvertaken notes what the file replaced of another's write that was made
// since the object was first read.
func (a *application) tellOvertaken(ctx context.Context, p plan) {
	find := newOrigins(a.conn, p.live)
	for _, c := range firstOf(p.overtaken) {
		a.note("%s: %s: %s -> %s, replaces what was written meanwhile %s", a.m.Where(), c.Field, quote(c.From), quote(c.To), find.of(ctx, c.Field))
	}
	a.tellRest("replaced that were written meanwhile", len(p.overtaken))
}

// tellFields notes what became of several fields.
func (a *application) tellFields(what, hint string, names []string) {
	more := ""
	if n := len(names) - maxTold; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	a.note("%s: %s: %s%s%s", a.m.Where(), what, strings.Join(firstOf(names), ", "), more, hint)
}

// tellRest counts what was not told one by one.
func (a *application) tellRest(what string, n int) {
	if n > maxTold {
		a.note("%s: and %d more %s", a.m.Where(), n-maxTold, what)
	}
}

// tellKept names what only the live object has and keeps, by who applied it: all of it
// when an object is adopted, later the keys of data, which programs would still read.
// Where the server merges, what others apply is theirs, and no news.
func (a *application) tellKept(p plan) {
	kept := map[string][]types.Field{}
	for _, f := range p.kept {
		who := managed.LastApplied(p.live, f)
		if (p.adopted || f.Section == "data") && (p.server == nil || who == "") {
			kept[who] = append(kept[who], f)
		}
	}
	for _, who := range slices.Sorted(maps.Keys(kept)) {
		a.tellFields(fmt.Sprintf("%s, for %s applied them and the file lacks them", would("kept", a.dry), cmp.Or(who, "nobody")), a.exactHint(), fieldNames(kept[who]))
	}
}

func (a *application) exactHint() string {
	if a.exact || a.serverSide {
		return ""
	}
	return " (--exact removes keys of data)"
}
