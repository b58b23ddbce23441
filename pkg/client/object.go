package client

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// Object is one ConfigMap as the loops of package retry see it. It may be
// shared.
type Object struct {
	maps *ConfigMaps
	name string
}

var (
	_ retry.Creator[types.Document] = (*Object)(nil)
	_ retry.Deleter[types.Document] = (*Object)(nil)
)

// Object is the ConfigMap of that name, whether there is one or not.
func (m *ConfigMaps) Object(name string) *Object { return &Object{maps: m.impatient(), name: name} }

// Object names it for messages: configmaps "flags" in namespace "team-a".
func (o *Object) Object() string { return o.maps.describe(o.name) }

// Version reads the version that a copy carries.
func (o *Object) Version(d types.Document) retry.Version {
	return retry.Version{UID: d.UID(), ResourceVersion: d.ResourceVersion()}
}

// Get reads the object.
func (o *Object) Get(ctx context.Context) (types.Document, error) { return o.maps.Get(ctx, o.name) }

// Put replaces the object if it is still at the version that d carries.
func (o *Object) Put(ctx context.Context, d types.Document, id retry.WriteID) (types.Document, error) {
	if err := o.owns(d); err != nil {
		return nil, err
	}
	return o.maps.Put(ctx, d, id)
}

// Check asks the server whether it would take d as a write made from version
// at: a dry run of it.
func (o *Object) Check(ctx context.Context, d types.Document, at retry.Version) error {
	d = d.Clone()
	d.SetMeta("uid", at.UID)
	d.SetMeta("resourceVersion", at.ResourceVersion)
	if err := o.owns(d); err != nil {
		return err
	}
	return o.maps.check(ctx, d)
}

// Create makes the object if there is none of its name.
func (o *Object) Create(ctx context.Context, d types.Document, id retry.WriteID) (types.Document, error) {
	if err := o.owns(d); err != nil {
		return nil, err
	}
	return o.maps.Create(ctx, d, id)
}

// Delete removes the object if it still is what v names.
func (o *Object) Delete(ctx context.Context, v retry.Version, id retry.WriteID) error {
	return o.maps.Delete(ctx, o.name, v, id)
}

// owns refuses a copy of another object, such as an edit that changed the name.
func (o *Object) owns(d types.Document) error {
	if d.Name() != o.name || d.Namespace() != "" && d.Namespace() != o.maps.namespace {
		return fmt.Errorf("this is %s, but it was given configmaps %q in namespace %q to write",
			o.Object(), d.Name(), d.Namespace())
	}
	return nil
}

// Find looks a write up in the object's history. A history that can't be read
// just now is an error; one that is not kept, or not far enough back, is
// NoHistory.
func (o *Object) Find(ctx context.Context, id retry.WriteID, since string) (retry.Finding, error) {
	list, err := o.maps.History(ctx, o.name)
	switch {
	case LacksHistory(err), apierrors.IsNotFound(err):
		// Nothing of that name is kept: no proof of what was there before.
		return retry.NoHistory, nil
	case err != nil:
		return retry.NoHistory, err
	}
	return finding(list.Items, id, since), nil
}

// finding reads a history, newest first.
//
// A write is proven absent by two things together: no entry has its id, and the
// entries reach back to before it. For a write made from since, that is the
// entry of since itself. A create has no such version. What was there before
// it is unknown, so nothing short of the beginning will do: the oldest entry
// must be a create, which says that nothing of this name was there. A kept
// history that begins later may have lost the create that is looked for.
func finding(items []types.HistoryEntry, id retry.WriteID, since string) retry.Finding {
	for _, e := range items {
		switch {
		case since != "" && e.ResourceVersion == since:
			return retry.Absent
		case e.WriteID != "" && e.WriteID == string(id):
			return retry.Landed
		}
	}
	if since == "" && len(items) > 0 && items[len(items)-1].Verb == "create" {
		return retry.Absent
	}
	return retry.NoHistory
}
