package main

import (
	"context"
	"fmt"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/managed"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// serverTarget is the object as the loop writes it by server-side apply: p is the
// plan that its body comes from.
type serverTarget struct {
	*liveObject
	a *application
	p *plan
}

// contestedError is a server's refusal to take fields from other managers. It is
// no Conflict of versions, after which a fresh copy would help.
type contestedError struct{ fields []client.ManagerConflict }

func (e *contestedError) Error() string { return "other field managers own what the file sets" }

// Put applies on the version that the body carries.
func (t serverTarget) Put(ctx context.Context, body types.Document, id retry.WriteID) (types.Document, error) {
	if prepared := t.p.server.prepared; prepared != nil {
		if t.a.conn.dry {
			// What prepares is not stored, so that no apply could follow. The server
			// checks what it would end as.
			return t.liveObject.Put(ctx, t.p.next, id)
		}
		// Not under the write's own id: this is not yet what was to be written.
		got, err := t.liveObject.Put(ctx, prepared, "")
		if err != nil {
			return nil, err
		}
		body = body.Clone()
		body.SetMeta("resourceVersion", got.ResourceVersion())
	}
	got, err := t.liveObject.Apply(ctx, body, client.PatchOptions{Force: t.p.server.take}, id)
	if fields := client.ManagerConflicts(err); len(fields) > 0 {
		return nil, t.contested(ctx, body, fields)
	}
	return got, err
}

// contested is a refusal for other managers' sake: where they wrote since the
// version that the body carries, a Conflict of versions, after which the plan is
// made anew and shows what they own. Servers look at the managers first.
func (t serverTarget) contested(ctx context.Context, body types.Document, fields []client.ManagerConflict) error {
	now, err := t.liveObject.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err == nil && now.ResourceVersion() != body.ResourceVersion():
		return types.ConfigMaps.VersionConflict(t.a.m.Name(), body.ResourceVersion(), now.ResourceVersion())
	}
	return &contestedError{fields}
}

// noVersion is one that no object ever has. An apply that carries it is refused
// wherever an object is, before anything is merged into that; where none is, a
// version is no condition, and the object is created.
const noVersion = "9223372036854775807"

// Create applies where nothing is. An object that somebody made meanwhile is
// left alone, whether the server refuses to merge for its version or for its
// managers.
func (t serverTarget) Create(ctx context.Context, body types.Document, id retry.WriteID) (types.Document, error) {
	body = body.Clone()
	body.SetMeta("resourceVersion", noVersion)
	got, err := t.liveObject.Apply(ctx, body, client.PatchOptions{Force: t.p.server.take}, id)
	if apierrors.IsConflict(err) {
		err = types.ConfigMaps.AlreadyExists(t.a.m.Name())
	}
	return got, err
}

// contested is the error of a plan that would take fields from other managers:
// what they are, whose, and what can be done.
func (a *application) contested(p plan, refused *contestedError) error {
	c := a.conflictOn("other field managers own what the file sets; nothing was written",
		"take the fields over with --force-conflicts, leave them to their managers by removing them from the file, or share them by giving them the live values (--keep)")
	if p.server.contested == nil && refused != nil {
		for _, f := range refused.fields {
			c.add(a.fieldNamed(f.Field), sideValue{"server", f.Message, ""})
		}
		return c
	}
	a.addContested(c, p)
	return c
}

func (a *application) addContested(c *conflictError, p plan) {
	for _, d := range firstOf(p.server.contested) {
		c.add(d.Field, sideValue{"file", d.File, ""}, sideValue{"live", d.Live, ownedBy(p.live, d.Field, a.conn.manager)})
	}
}

// ownedBy names who owns a field, apart from what our manager applied.
func ownedBy(d types.Document, f types.Field, manager string) string {
	var names []string
	for _, e := range managed.Entries(d) {
		if e.Owns(f) && !e.Is(manager, managed.Apply) {
			names = append(names, fmt.Sprintf("%s, by %s %s", e.Manager(), strings.ToLower(string(e.Operation())), atOrBefore(e.Time())))
		}
	}
	return "owned by " + strings.Join(names, " and ")
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
