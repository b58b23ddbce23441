package main

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"example.com/cmctl/cmd/cmctl/internal/managed"
	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// appliedBy is the annotation with the record of what a field manager applied
// through the server. A manager's name that no annotation can carry is there by
// its digest.
func appliedBy(manager string) types.Field {
	f := annotation(types.AppliedBy + manager)
	if len(validation.IsQualifiedName(f.Key)) > 0 {
		sum := sha256.Sum256([]byte(manager))
		f.Key = types.AppliedBy + hex.EncodeToString(sum[:8])
	}
	return f
}

// serverPlan is what is sent for a server-side apply.
type serverPlan struct {
	body types.Document // the file as it is to be applied, with its record
	take bool           // the fields of other managers too
	// prepared is live, with managedFields that let the apply remove what it must;
	// nil if they do as they are. What our manager wrote itself counts as applied
	// there, for the server would keep a key that the file no longer has for that
	// other self of ours. So does a key that moves from the one map of data to the
	// other, for the server would keep it in the old one for its owner.
	prepared  types.Document
	contested []types.Drift // fields that other managers own
	shared    []types.Field // kept although the file no longer has them: others own them too
}

// serverFresh is the plan where there is no object.
func (a *application) serverFresh() (plan, error) {
	body, err := a.serverBody(nil)
	return plan{next: body, server: &serverPlan{body: body, take: a.takes()}}, err
}

// serverBody is the file with our bookkeeping.
func (a *application) serverBody(live types.Document) (types.Document, error) {
	body := a.file.Clone()
	a.set.claim(body)
	if live != nil {
		body.SetMeta("uid", live.UID())
		body.SetMeta("resourceVersion", live.ResourceVersion())
		if a.set == nil {
			// What we don't send we would give up: it stays in its set.
			for f, v := range live.Fields() {
				if (f == setLabel || f == setMember || f == setNamespaces) && managed.OwnersOf(live, f, a.conn.manager).Ours {
					body.Set(f, v)
				}
			}
		}
	}
	body.Set(appliedBy(a.conn.manager), a.record.digests())
	if annotationSize(body) > maxAnnotations {
		return nil, a.tooBig(body)
	}
	return body, nil
}

func (a *application) takes() bool { return a.force || a.forceConflicts }

// serverOnto is the plan for that copy of the object.
func (a *application) serverOnto(live types.Document) (plan, error) {
	manager := a.conn.manager
	owned := live
	upgraded := upgrade(live, manager)
	if upgraded != nil {
		owned = upgraded
	}
	owners := func(f types.Field) types.Owners { return managed.OwnersOf(owned, f, manager) }
	base := serverRecordIn(live, manager)
	out := types.ApplyByServer(base, a.file, live, owners, types.ServerApplyOptions{Side: a.side(), TakeContested: a.forceConflicts})
	out.Drifts = append(out.Drifts, lostItems(base, a.file, owned, manager)...)
	body, err := a.serverBody(live)
	if err != nil {
		return plan{}, err
	}
	prepared := upgraded
	if moved := movedKeys(out.Changes); len(moved) > 0 {
		prepared = managed.HandOver(owned, moved, manager)
	}
	p := plan{
		live: live, next: out.Document, changes: out.Changes, drifts: out.Drifts, kept: out.Kept, adopted: base == nil,
		open:   a.side() == types.NeitherSide && (len(out.Drifts) > 0 || len(out.Contested) > 0 && !a.takes()),
		server: &serverPlan{body: body, take: a.takes(), prepared: prepared, contested: out.Contested},
	}
	for _, f := range out.Kept {
		if owners(f).Ours {
			p.server.shared = append(p.server.shared, f)
		}
	}
	if a.keep {
		for _, d := range append(out.Drifts, out.Contested...) {
			body.Set(d.Field, d.Live)
		}
	}
	for f, v := range body.Fields() {
		if f.Bookkeeping() {
			p.next.Set(f, v)
		}
	}
	if upgraded != nil {
		p.next.Set(lastApplied, nil)
		p.next.Set(lastAppliedDigest, nil)
	}
	p.idle = upgraded == nil && len(types.Diff(live, p.next)) == 0 && ownsExactly(owners, body, live)
	return p, nil
}

// lostItems finds the lists of metadata from which the server would drop items that
// our manager applied, though they are not what the record says: it merges them
// item by item.
func lostItems(base types.Base, file, live types.Document, manager string) (drifts []types.Drift) {
	f, l := file.Fields(), live.Fields()
	applied := func(list types.Field, item any) bool {
		return slices.ContainsFunc(managed.Entries(live), func(e managed.Entry) bool {
			return e.Is(manager, managed.Apply) && e.OwnsItem(list, item)
		})
	}
	for field, value := range l {
		list, ok := value.([]any)
		if !ok || field.Section != "metadata" {
			continue
		}
		wanted, _ := f[field].([]any)
		var ours []any
		lost := false
		for _, item := range list {
			if applied(field, item) {
				ours = append(ours, item)
				lost = lost || !slices.ContainsFunc(wanted, func(w any) bool { return managed.ItemKey(w) == managed.ItemKey(item) })
			}
		}
		if !lost || base != nil && base.Same(field, ours) {
			continue
		}
		drift := types.Drift{Field: field, File: f[field], Live: value}
		if base != nil {
			drift.Base = base.Value(field)
		}
		drifts = append(drifts, drift)
	}
	return drifts
}

// ownsExactly tells whether our manager has applied what the body has, and
// nothing else.
func ownsExactly(owners func(types.Field) types.Owners, body, live types.Document) bool {
	fields := body.Fields()
	for f := range fields {
		if !owners(f).Ours {
			return false
		}
	}
	for f := range live.Fields() {
		if fields[f] == nil && owners(f).Ours {
			return false
		}
	}
	return true
}

// serverRecordIn is what our manager applied last, through the server or, where
// that came last, by writing.
func serverRecordIn(live types.Document, manager string) types.Base {
	if wroteRecord(live, manager) {
		return recordIn(live, manager)
	}
	text, ok := live.Annotation(appliedBy(manager).Key)
	if !ok {
		return nil
	}
	base, err := types.ParseDigests(text)
	if err != nil {
		return nil
	}
	return base
}

// wroteRecord tells whether the record of an apply that was no server-side one is
// there and our manager's.
func wroteRecord(live types.Document, manager string) bool {
	for _, f := range []types.Field{lastApplied, lastAppliedDigest} {
		if _, ok := live.Annotation(f.Key); !ok {
			continue
		}
		for _, e := range managed.Entries(live) {
			if e.Is(manager, managed.Update) && e.Owns(f) {
				return true
			}
		}
	}
	return false
}

// upgrade counts what our manager wrote in an apply that was no server-side one
// as applied by it: nil if there is no such apply.
func upgrade(live types.Document, manager string) types.Document {
	if !wroteRecord(live, manager) {
		return nil
	}
	return managed.AsApplied(live, manager)
}

// movedKeys are the keys of data that a change takes out of the map that they are in.
func movedKeys(changes []types.Change) (moved []managed.DataKey) {
	for _, c := range changes {
		_, was := c.From.(types.Binary)
		_, is := c.To.(types.Binary)
		if c.Field.Section == "data" && c.From != nil && c.To != nil && was != is {
			moved = append(moved, managed.DataKey{Key: c.Field.Key, Binary: was})
		}
	}
	return moved
}
