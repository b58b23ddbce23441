package patch

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/types"
)

// strategic applies a strategic merge patch, which knows from the object's Go
// type which lists are merged, and by which key.
func (p Patch) strategic(res *types.Resource, old types.Object) (result, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return result{}, fmt.Errorf("patch %s: %w", old.GetName(), err)
	}
	changes, problems, err := p.changes()
	if err != nil {
		return result{}, types.BadRequest(err.Error())
	}
	after, err := strategicpatch.StrategicMergeMapPatch(before, changes, res.New())
	if err != nil {
		// Directives that make no sense, or do not fit the object: a client's
		// mistake, for all that kube-apiserver answers 500 to some.
		return result{}, types.BadRequest(err.Error())
	}
	// Of another kind nothing is said, as kube-apiserver says nothing: the Go type
	// is what counts.
	for _, name := range []string{"kind", "apiVersion"} {
		if _, ok := after[name].(string); ok {
			delete(after, name)
		}
	}
	document, err := json.Marshal(after)
	if err != nil {
		return result{}, types.BadRequest(err.Error())
	}
	return result{
		document: document,
		problems: problems,
		shown:    func() string { return fmt.Sprintf("%+v", changes) },
		reason: func(err error) error {
			// Kubernetes decodes the map, and says it in other words.
			if other := runtime.DefaultUnstructuredConverter.FromUnstructured(after, res.New()); other != nil {
				return other
			}
			return err
		},
	}, nil
}

// changes are the patch as a map. Each call reads a new one, which the merge may
// change.
func (p Patch) changes() (changes map[string]any, problems []string, err error) {
	changes = map[string]any{}
	if p.strict() {
		problems, err = decodeStrict(p.body, &changes)
		return changes, problems, err
	}
	return changes, nil, kjson.UnmarshalCaseSensitivePreserveInts(p.body, &changes)
}
