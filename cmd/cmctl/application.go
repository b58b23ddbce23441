package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// application is one manifest on its way onto the live object. What it makes of
// the object is a plan, computed anew for each fresh copy.
type application struct {
	*factory // its notes are about this object
	applyFlags
	conn *connection
	m    manifest.Manifest
	want retry.Version // a condition of the person's

	file   types.Document // the manifest without what only the server sets
	record record
	from   types.Document // the version that the file was made from, if it says so
	set    *set           // nil if the object is to be in none
}

// newApplication prepares one. Of the server it reads only. Its notes go to f.
func newApplication(ctx context.Context, f *factory, conn *connection, m manifest.Manifest, flags applyFlags) (*application, error) {
	a := &application{factory: f, applyFlags: flags, conn: conn, m: m, file: m.Clone()}
	if err := a.findOrigin(ctx); err != nil {
		return nil, err
	}
	dropped := a.file.DropServerFields()
	if a.from == nil && len(dropped) > 0 {
		a.note("%s: %s dropped: only the server sets them", m.Where(), strings.Join(dropped, ", "))
	}
	a.file, _ = withoutRecord(a.file)
	var err error
	if a.record, err = recordOf(a.file); err != nil {
		return nil, err
	}
	return a, a.checkServerSide()
}

// findOrigin reads the version that a file made by 'get -o yaml' was made from.
func (a *application) findOrigin(ctx context.Context) error {
	uid, version := a.m.UID(), a.m.ResourceVersion()
	if uid == "" || version == "" {
		return nil
	}
	live, err := a.read(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case live.UID() != uid:
		return nil
	case live.ResourceVersion() == version:
		a.from = live
		return nil
	case a.serverSide:
		return a.moved(live)
	}
	maps := a.conn.ConfigMaps(a.m.Namespace())
	a.from, err = maps.At(ctx, a.m.Name(), version)
	if errors.Is(err, client.ErrNoHistory) || apierrors.IsNotFound(err) || apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
		return a.moved(live)
	}
	return err
}

// moved refuses a file whose version can't be compared with.
func (a *application) moved(live types.Document) error {
	why := "the server doesn't keep the older one to compare with"
	if a.serverSide {
		why = "--server-side doesn't compare with the older one"
	}
	return a.conflictOn(fmt.Sprintf("it was made from version %s, the object is at version %s now, and %s; nothing was written", a.m.ResourceVersion(), live.ResourceVersion(), why),
		"read it anew with 'cmctl get -o yaml', or remove resourceVersion and uid from the file to apply it by the record of the last apply")
}

// checkServerSide refuses what a server-side apply can't say.
func (a *application) checkServerSide() error {
	if !a.serverSide {
		return nil
	}
	for _, p := range a.file.Problems(false) {
		return fmt.Errorf("%s: %s; that a key must not exist can't be said with --server-side: leave it out", a.m.Where(), p.Message)
	}
	return nil
}

func (a *application) object() *client.Object {
	return a.conn.ConfigMaps(a.m.Namespace()).Object(a.m.Name())
}

func (a *application) options() retry.Options {
	o := a.retryOptions(a.progress(a.object()))
	o.Want = a.want
	return o
}

func (a *application) read(ctx context.Context) (types.Document, error) {
	return retry.Read(ctx, a.object(), a.retryOptions(a.progress(a.object())))
}

// plan is what an application makes of one copy of the live object. Nothing of it
// was written yet.
type plan struct {
	live types.Document // nil where there is none
	next types.Document // what is to be stored; it carries live's version
	// changes are what next changes of live, bookkeeping apart.
	changes []types.Change
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

// written is the document that a write of the plan sends.
func (p plan) written() types.Document {
	if p.server != nil {
		return p.server.body
	}
	return p.next
}

// plan compares with the object as it is now. It reads only.
func (a *application) plan(ctx context.Context) (plan, error) {
	live, err := retry.Read(ctx, a.object(), a.options())
	if apierrors.IsNotFound(err) && a.want == (retry.Version{}) {
		return a.fresh()
	}
	if err != nil {
		return plan{}, err
	}
	return a.onto(live)
}

// fresh is the plan where there is no object.
func (a *application) fresh() (plan, error) {
	if a.serverSide {
		return a.serverFresh()
	}
	next := a.file.WithoutNulls()
	p := plan{next: next}
	return p, a.keepBooks(next)
}

// onto is the plan for that copy of the object.
func (a *application) onto(live types.Document) (plan, error) {
	if other := a.set.other(live); other != "" && !a.force {
		return plan{}, a.otherSet(other)
	}
	if a.serverSide {
		return a.serverOnto(live)
	}
	if a.fromVersion(live) {
		return a.mergeFrom(live)
	}
	base := recordIn(live, a.conn.manager)
	out := types.Apply(base, a.file, live, types.ApplyOptions{Side: a.side(), Exact: a.exact})
	p := plan{
		live: live, next: out.Document, changes: out.Changes, drifts: out.Drifts, kept: out.Kept,
		open: len(out.Drifts) > 0 && a.side() == types.NeitherSide, adopted: base == nil,
	}
	err := a.keepBooks(p.next)
	p.idle = len(types.Diff(live, p.next)) == 0
	return p, err
}

// keepBooks notes on the next version of the object that the file was applied.
func (a *application) keepBooks(next types.Document) error {
	a.set.claim(next)
	if err := a.record.on(next, a.conn.manager); err != nil {
		return a.tooBig(next)
	}
	return nil
}

func (a *application) otherSet(name string) error {
	return a.conflictOn(fmt.Sprintf("it belongs to the set %q; nothing was written", name),
		fmt.Sprintf("take it into the set %q with --force, or leave it out", a.setName))
}

func (a *application) tooBig(next types.Document) error {
	return fmt.Errorf("%s: too big to apply: with a digest of each of its %d fields, by which the next apply knows what was applied, the annotations would be larger than %d bytes; nothing was written. 'cmctl replace', 'cmctl create -f' and 'cmctl edit' need no record",
		a.m.Where(), len(next.Fields()), maxAnnotations)
}

func (a *application) side() types.ApplySide {
	switch {
	case a.force:
		return types.FileSide
	case a.keep:
		return types.LiveSide
	}
	return types.NeitherSide
}

// fromVersion is true if the file says which version of this object it was made
// from.
func (a *application) fromVersion(live types.Document) bool {
	return a.from != nil && a.from.UID() == live.UID()
}

// mergeFrom compares by the version that the file was made from. As after an
// edit the record stays what it was, so that the next apply of the file that is
// on record finds the difference.
func (a *application) mergeFrom(live types.Document) (plan, error) {
	from, _ := withoutRecord(a.from)
	bare, restore := withoutRecord(live)
	m := types.Merge(from, a.file.WithoutNulls(), bare)
	p := plan{live: live, open: len(m.Conflicts) > 0 && a.side() == types.NeitherSide, merged: &m}
	for _, c := range m.Conflicts {
		p.drifts = append(p.drifts, types.Drift{Field: c.Field, Base: c.Base, File: c.Mine, Live: c.Live})
		if a.force {
			m.Document.Set(c.Field, c.Mine)
			m.Applied = append(m.Applied, types.Change{Field: c.Field, From: c.Live, To: c.Mine})
		}
	}
	restore(m.Document)
	p.next, p.changes = m.Document, m.Applied
	a.set.claim(p.next)
	p.idle = len(types.Diff(live, p.next)) == 0
	return p, nil
}

func (a *application) conflictOn(what, next string) *conflictError {
	return &conflictError{object: a.object().Object(), server: a.conn.Target().String(), what: a.m.Where() + ": " + what, next: next}
}

// conflict is the error of a plan that a person must decide.
func (a *application) conflict(ctx context.Context, p plan) error {
	base, what := "last applied", "the file would revert what somebody changed since the last apply; nothing was written"
	switch {
	case p.server != nil && len(p.drifts) == 0:
		return a.contested(p, nil)
	case p.server != nil:
		base, what = "last applied", "with one manager's name for all who apply it, the server would undo without a word what this file doesn't account for; nothing was written"
	case p.merged != nil:
		base, what = "version "+a.from.ResourceVersion(), "the file and somebody else changed the same thing since version "+a.from.ResourceVersion()+"; nothing was written"
	case p.adopted && hasRecord(p.live, a.conn.manager):
		base, what = "", "the record of what was last applied can't be read, and the file differs from the object; nothing was written"
	case p.adopted:
		base, what = "", "nobody has applied this object yet, and the file differs from it; nothing was written"
	}
	c := a.conflictOn(what, "take the file's side with --force, keep the live one with --keep, or bring the file up to date")
	find := newOrigins(a.conn, p.live)
	for _, d := range p.drifts {
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
	return c
}

// tell notes what the person should know about a plan that went through.
func (a *application) tell(p plan) {
	if p.live == nil {
		return
	}
	if p.merged != nil && p.live.ResourceVersion() != a.from.ResourceVersion() {
		a.note("%s was made from version %s; the object is at version %s", a.m.Where(), a.from.ResourceVersion(), p.live.ResourceVersion())
		bare, _ := withoutRecord(p.live)
		a.reapplied(a.from, *p.merged, bare)
	}
	if kept := a.worthTelling(p); len(kept) > 0 {
		a.note("%s: kept, for nobody applied them and the file lacks them: %s%s", a.m.Where(), strings.Join(kept, ", "), a.exactHint())
	}
	for _, c := range p.changes {
		if c.To == nil {
			a.note("%s: removed, for the file no longer has it: %s (was %s)", a.m.Where(), c.Field, quote(c.From))
		}
	}
	if p.server != nil && len(p.server.shared) > 0 {
		a.note("%s: the file no longer has them, and they stay, for other managers own them too: %s", a.m.Where(), strings.Join(fieldNames(p.server.shared), ", "))
	}
	for _, d := range p.overruled() {
		took := "overwritten by the file"
		if a.keep {
			took = "kept as it is live"
		}
		a.note("%s: %s: %s, file %s, live %s", a.m.Where(), d.Field, took, quote(d.File), quote(d.Live))
	}
}

// worthTelling names what is kept: all of it when an object is adopted, later
// the keys of data, which programs would still read.
func (a *application) worthTelling(p plan) []string {
	if p.server != nil {
		return nil // what others own is theirs
	}
	kept := slices.Clone(p.kept)
	if !p.adopted {
		kept = slices.DeleteFunc(kept, func(f types.Field) bool { return f.Section != "data" })
	}
	return fieldNames(kept)
}

func (a *application) exactHint() string {
	if a.exact {
		return ""
	}
	return " (--exact removes keys of data)"
}

func fieldNames(fields []types.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.String()
	}
	return names
}
