package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// Unnamed is a ConfigMap that is to be created under a name which the server makes
// from generateName. It may be shared.
//
// Given to retry.Create it is created at most once: where the answer is lost,
// nobody but the server knows the name, so nothing can be looked up, and the end
// is a retry.OutcomeUnknownError.
type Unnamed struct {
	maps   *ConfigMaps
	prefix string
}

var _ retry.Creator[types.Document] = (*Unnamed)(nil)

// Unnamed is a ConfigMap whose name will begin with prefix.
func (m *ConfigMaps) Unnamed(prefix string) *Unnamed { return &Unnamed{m, prefix} }

// errUnnamed is why an Unnamed can't be looked at.
var errUnnamed = errors.New("the server makes the name, and only its answer tells it")

// Object names it for messages: configmaps "run-*" in namespace "team-a".
func (u *Unnamed) Object() string { return u.maps.describe(u.prefix + "*") }

// Version reads the version that a copy carries.
func (u *Unnamed) Version(d types.Document) retry.Version {
	return retry.Version{UID: d.UID(), ResourceVersion: d.ResourceVersion()}
}

// Get is an error: there is no name to read it by.
func (u *Unnamed) Get(context.Context) (types.Document, error) { return nil, errUnnamed }

// Find is an error, as Get is.
func (u *Unnamed) Find(context.Context, retry.WriteID, string) (retry.Finding, error) {
	return retry.NoHistory, errUnnamed
}

// Put is an error: what was created has a name.
func (u *Unnamed) Put(context.Context, types.Document, retry.WriteID) (types.Document, error) {
	return nil, errUnnamed
}

// Check is an error, as Put is.
func (u *Unnamed) Check(context.Context, types.Document, retry.Version) error { return errUnnamed }

// Create makes the object. d has the generateName, and no name.
func (u *Unnamed) Create(ctx context.Context, d types.Document, id retry.WriteID) (types.Document, error) {
	switch prefix, _ := d.Value("metadata", "generateName"); {
	case d.ResourceVersion() != "":
		return nil, types.CreateSetsVersion()
	case d.Name() != "" || prefix != u.prefix || u.prefix == "" || d.Namespace() != "" && d.Namespace() != u.maps.namespace:
		return nil, fmt.Errorf("this is %s, but it was given configmaps %q in namespace %q to create", u.Object(), d.Name(), d.Namespace())
	}
	k, err := u.maps.named(http.MethodPost, u.prefix)
	if err != nil {
		return nil, err
	}
	k.path, k.object = k.path[:len(k.path)-1], u.Object()
	return u.maps.write(ctx, k, d, id)
}
