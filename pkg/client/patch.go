package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// PatchOptions adjust a patch. The zero value is ready to use.
type PatchOptions struct {
	// Force lets a server-side apply take the fields that other managers own.
	// Servers refuse it for every other type of patch.
	Force bool
}

// Patch lets the server change one by a patch of that type: apimachinery's
// JSONPatchType, MergePatchType, StrategicMergePatchType or ApplyYAMLPatchType,
// whose body may be JSON too. The server makes a patch whatever the object has
// become meanwhile, unless the patch itself sets metadata.resourceVersion (and
// metadata.uid): a stale one is a Conflict then. Only an apply creates what
// isn't there. It needs a field manager, and a Conflict of its that
// ManagerConflicts can read is not one of versions.
func (m *ConfigMaps) Patch(ctx context.Context, name string, t apitypes.PatchType, body []byte, o PatchOptions, id retry.WriteID) (types.Document, error) {
	k, err := m.named(http.MethodPatch, name)
	if err != nil {
		return nil, err
	}
	if t == apitypes.ApplyYAMLPatchType && m.client.options.FieldManager == "" {
		return nil, fmt.Errorf("apply %s: server-side apply needs a field manager", k.object)
	}
	k.body, k.id, k.mediaType = body, id, string(t)
	k.query = url.Values{"fieldValidation": {metav1.FieldValidationStrict}}
	if o.Force {
		k.query.Set("force", strconv.FormatBool(true))
	}
	a, err := m.client.do(ctx, k)
	if err != nil {
		return nil, err
	}
	doc, ok := m.parse(a.body, name)
	if !ok {
		return nil, m.client.notTheObject(k, a)
	}
	return doc, nil
}

// Apply lets the server apply what d says, for this client's field manager: on
// the version that d carries, or on whatever is there if it carries none. What
// isn't there is created.
func (o *Object) Apply(ctx context.Context, d types.Document, options PatchOptions, id retry.WriteID) (types.Document, error) {
	if err := o.owns(d); err != nil {
		return nil, err
	}
	body, err := d.JSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", o.Object(), err)
	}
	return o.maps.Patch(ctx, o.name, apitypes.ApplyYAMLPatchType, body, options, id)
}

// ManagerConflict is a field that a server-side apply would take from another
// manager.
type ManagerConflict struct {
	Field   string // as the server names it: .data.mode
	Message string // names the other manager: conflict with "kubectl-edit" using v1
}

// ManagerConflicts are those for which the server refused an apply; none if the
// error is anything else.
func ManagerConflicts(err error) []ManagerConflict {
	var status interface{ Status() metav1.Status }
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var found []ManagerConflict
	for _, c := range status.Status().Details.Causes {
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			found = append(found, ManagerConflict{Field: c.Field, Message: c.Message})
		}
	}
	return found
}
