package main

import (
	"context"
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
	dry  bool          // nothing is stored, and notes say what would be done
	seen foresight     // what was read before it was its turn

	file   types.Document // the manifest without what only the server sets
	record record
	from   types.Document // the version that the file was made from, if it says so
	set    *set           // nil if the object is to be in none
}

// newApplication prepares one. Of the server it reads only. Its notes go to f; set
// may be nil.
func newApplication(ctx context.Context, f *factory, conn *connection, set *set, m manifest.Manifest, flags applyFlags) (*application, error) {
	a := &application{factory: f, applyFlags: flags, conn: conn, set: set, m: m}
	if err := a.findOrigin(ctx); err != nil {
		return nil, err
	}
	a.file, _ = withoutRecord(m.Document)
	dropped := a.file.DropServerFields()
	if a.from == nil && len(dropped) > 0 {
		a.note("%s: %s dropped: only the server sets them", m.Where(), strings.Join(dropped, ", "))
	}
	if name, given := m.Label(types.SetLabel); given && a.from == nil && !a.set.is(name) {
		a.note("%s: %s is left out: an object joins a set by --set", m.Where(), setLabel)
	}
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
	if client.LacksHistory(err) || apierrors.IsNotFound(err) || apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
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
		"read it again with 'cmctl get -o yaml', or remove resourceVersion and uid from the file to apply it by the record of the last apply")
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
	return a.readOne(ctx, a.object())
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

// onto is the plan for that copy of the object. One that can't be carried out comes
// with an error.
func (a *application) onto(live types.Document) (plan, error) {
	p, err := a.compare(live)
	if err != nil {
		return plan{}, err
	}
	if !p.open && endsDeletion(live, p.finalizersLeft(a.conn.manager)) && !beingDeleted(a.m.Document) {
		return p, a.conn.wouldEnd(live, a.m.Where())
	}
	return p, types.Frozen(live, p.wanted(a.side()))
}

func (a *application) compare(live types.Document) (plan, error) {
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
	p := plan{live: live, merged: &m}
	for _, c := range m.Conflicts {
		p.drifts = append(p.drifts, types.Drift{Field: c.Field, Base: c.Base, File: c.Mine, Live: c.Live})
	}
	if a.force {
		m = m.Take(types.Mine)
	}
	if a.exact {
		a.makeExact(&p, from)
	}
	p.open = len(p.drifts) > 0 && a.side() == types.NeitherSide
	restore(m.Document)
	p.next, p.changes = m.Document, m.Applied
	a.set.claim(p.next)
	p.idle = len(types.Diff(live, p.next)) == 0
	return p, nil
}

// makeExact removes from a merge the keys of data that others added since the
// version from. What else of theirs is in the data, which would then not be the
// file's, is drift.
func (a *application) makeExact(p *plan, from types.Document) {
	was, live := from.Fields(), p.live.Fields()
	for _, c := range types.Diff(p.merged.Document, a.file.WithoutNulls()) {
		if c.Field.Section != "data" {
			continue
		}
		added := was[c.Field] == nil && c.To == nil
		known := slices.ContainsFunc(p.drifts, func(d types.Drift) bool { return d.Field == c.Field })
		if !added && !known {
			p.drifts = append(p.drifts, types.Drift{Field: c.Field, Base: was[c.Field], File: c.To, Live: live[c.Field]})
		}
		if added || a.force {
			p.merged.Document.Set(c.Field, c.To)
			p.merged.Applied = append(p.merged.Applied, types.Change{Field: c.Field, From: live[c.Field], To: c.To})
		}
	}
}
