package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
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
	// upgraded is live with what our manager wrote itself counted as applied; nil
	// if there is nothing of that kind. Without it, the server would keep a key
	// that the file no longer has for that other self of ours.
	upgraded  types.Document
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
	for f := range a.file.Fields() {
		if f.Bookkeeping() {
			body.Set(f, nil)
		}
	}
	a.set.claim(body)
	if live != nil {
		body.SetMeta("uid", live.UID())
		body.SetMeta("resourceVersion", live.ResourceVersion())
		if a.set == nil {
			// What we don't send we would give up: it stays in its set.
			for f, v := range live.Fields() {
				if (f == setLabel || f == setMember || f == setNamespaces) && ownersOf(live, f, a.conn.manager).Ours {
					body.Set(f, v)
				}
			}
		}
	}
	body.Set(appliedBy(a.conn.manager), a.record.digests)
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
	owners := func(f types.Field) types.Owners { return ownersOf(owned, f, manager) }
	base := serverRecordIn(live, manager)
	out := types.ApplyByServer(base, a.file, live, owners, types.ServerApplyOptions{Side: a.side(), TakeContested: a.forceConflicts})
	body, err := a.serverBody(live)
	if err != nil {
		return plan{}, err
	}
	p := plan{
		live: live, next: out.Document, changes: out.Changes, drifts: out.Drifts, kept: out.Kept, adopted: base == nil,
		open:   a.side() == types.NeitherSide && (len(out.Drifts) > 0 || len(out.Contested) > 0 && !a.takes()),
		server: &serverPlan{body: body, take: a.takes(), upgraded: upgraded, contested: out.Contested},
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
		for _, e := range managedFields(live) {
			if e.is(manager, opUpdate) && owns(e.fields(), f) {
				return true
			}
		}
	}
	return false
}

// The operations that managedFields tell apart.
const (
	opApply  = "Apply"
	opUpdate = "Update"
)

// managed is an entry of managedFields.
type managed map[string]any

func managedFields(d types.Document) []managed {
	raw, _ := d.Value("metadata", "managedFields")
	list, _ := raw.([]any)
	var entries []managed
	for _, e := range list {
		if entry, ok := e.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

func (m managed) is(manager, operation string) bool {
	return m["manager"] == manager && m["operation"] == operation && m["subresource"] == nil
}

func (m managed) fields() map[string]any {
	set, _ := m["fieldsV1"].(map[string]any)
	return set
}

// ownersOf tells who owns a field, our manager meaning what it applied through
// the server.
func ownersOf(d types.Document, f types.Field, manager string) (who types.Owners) {
	for _, e := range managedFields(d) {
		switch {
		case !owns(e.fields(), f):
		case e.is(manager, opApply):
			who.Ours = true
		default:
			who.Others = true
		}
	}
	return who
}

// upgrade counts what our manager wrote in an apply that was no server-side one
// as applied by it: nil if there is no such apply.
func upgrade(live types.Document, manager string) types.Document {
	if !wroteRecord(live, manager) {
		return nil
	}
	next := live.Clone()
	var rest []any
	ours := map[string]any{"manager": manager, "operation": opApply, "apiVersion": types.APIVersion, "fieldsType": "FieldsV1"}
	set, newest := map[string]any{}, ""
	for _, e := range managedFields(next) {
		if !e.is(manager, opApply) && !e.is(manager, opUpdate) {
			rest = append(rest, map[string]any(e))
			continue
		}
		set = union(set, e.fields())
		when, _ := e["time"].(string)
		newest = max(newest, when)
	}
	ours["fieldsV1"] = set
	if newest != "" {
		ours["time"] = newest
	}
	next.SetMeta("managedFields", append(rest, ours))
	return next
}

// union puts two field sets together.
func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for k, v := range b {
		left, _ := out[k].(map[string]any)
		right, _ := v.(map[string]any)
		out[k] = union(left, right)
	}
	if out == nil {
		return map[string]any{}
	}
	return out
}

// serverTarget is the object as the loop writes it by server-side apply: p is the
// plan that its body comes from.
type serverTarget struct {
	*liveObject
	a *application
	p *plan
}

// liveObject gives the embedded field a name that isn't that of a method.
type liveObject = client.Object

// contestedError is a server's refusal to take fields from other managers. It is
// no Conflict of versions, after which a fresh copy would help.
type contestedError struct{ fields []client.ManagerConflict }

func (e *contestedError) Error() string { return "other field managers own what the file sets" }

// Put applies on the version that the body carries.
func (t serverTarget) Put(ctx context.Context, body types.Document, id retry.WriteID) (types.Document, error) {
	take := t.p.server.take
	if up := t.p.server.upgraded; up != nil {
		if t.a.conn.dry {
			take = true // it isn't stored, and the server sees our other self as another
		} else {
			// Not under the write's own id: this is not yet what was to be written.
			got, err := t.liveObject.Put(ctx, up, "")
			if err != nil {
				return nil, err
			}
			body = body.Clone()
			body.SetMeta("resourceVersion", got.ResourceVersion())
		}
	}
	got, _, err := t.liveObject.Apply(ctx, body, client.PatchOptions{Force: take}, id)
	return got, settledByManagers(err)
}

// Create applies where nothing is. There is no way to say so to the server: if
// somebody else was faster, it merges, and that is told.
func (t serverTarget) Create(ctx context.Context, body types.Document, id retry.WriteID) (types.Document, error) {
	got, created, err := t.liveObject.Apply(ctx, body, client.PatchOptions{Force: t.p.server.take}, id)
	if err == nil && !created {
		t.a.note("%s: somebody created %q at the same moment; what the file says was applied to that object", t.a.m.Where(), t.a.m.Name())
	}
	return got, settledByManagers(err)
}

func settledByManagers(err error) error {
	if fields := client.ManagerConflicts(err); len(fields) > 0 {
		return &contestedError{fields}
	}
	return err
}

// contested is the error of a plan that would take fields from other managers:
// what they are, whose, and what can be done.
func (a *application) contested(p plan, refused *contestedError) error {
	c := a.conflictOn("other field managers own what the file sets; nothing was written",
		"take the fields over with --force-conflicts, leave them to their managers by removing them from the file, or share them by giving them the live values (--keep)")
	if p.server.contested == nil && refused != nil {
		for _, f := range refused.fields {
			c.add(a.fieldNamed(f.Field), sideValue{"server", nil, f.Message})
		}
		return c
	}
	a.addContested(c, p)
	return c
}

func (a *application) addContested(c *conflictError, p plan) {
	for _, d := range p.server.contested {
		c.add(d.Field, sideValue{"file", d.File, ""}, sideValue{"live", d.Live, managersOf(p.live, d.Field, a.conn.manager)})
	}
}

// fieldNamed finds the field that a server names: .data.mode.
func (a *application) fieldNamed(path string) types.Field {
	for f := range a.file.Fields() {
		if path == "."+f.Section+"."+f.Key || f.Section == "data" && path == ".binaryData."+f.Key {
			return f
		}
	}
	return types.Field{Key: strings.TrimPrefix(path, ".")}
}

// managersOf names who owns a field, apart from what our manager applied.
func managersOf(d types.Document, f types.Field, manager string) string {
	var names []string
	for _, e := range managedFields(d) {
		if !owns(e.fields(), f) || e.is(manager, opApply) {
			continue
		}
		names = append(names, fmt.Sprintf("%v, by %s at or before %v", e["manager"], strings.ToLower(fmt.Sprint(e["operation"])), e["time"]))
	}
	return "owned by " + strings.Join(names, " and ")
}
