package server

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// listOptions reads the parameters that lists and watches have in common, by
// Kubernetes' own rules: which texts are true, which combinations are refused.
func listOptions(r *request) (*internalversion.ListOptions, error) {
	o := &internalversion.ListOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(r.query, metav1.SchemeGroupVersion, o); err != nil {
		return nil, types.BadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(o, true)
	if errs := metainternal.ValidateListOptions(o, true); len(errs) > 0 {
		return nil, types.InvalidOptions("ListOptions", errs)
	}
	return o, nil
}

// The fields that selectors may name.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
	fieldPhase     = "status.phase"
)

// selection is the part of a resource's objects that a request is about.
type selection struct {
	resource  *types.Resource
	namespace string // empty: all
	labels    labels.Selector
	fields    fields.Selector
}

// selectionOf is what the path and the selectors choose. A name in the path, as
// the older form of a watch has it, is a selector too.
func selectionOf(r *request, o *internalversion.ListOptions) (selection, error) {
	sel := selection{resource: r.resource, namespace: r.namespace, labels: labels.Everything(), fields: fields.Everything()}
	if o.LabelSelector != nil {
		sel.labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		var err error
		if sel.fields, err = o.FieldSelector.Transform(knownFields(r.resource)); err != nil {
			return sel, types.BadRequest(err.Error())
		}
	}
	if r.name == "" {
		return sel, nil
	}
	if sel.fields.Empty() {
		sel.fields = fields.OneTermEqualSelector(fieldName, r.name)
	} else if name, _ := sel.fields.RequiresExactMatch(fieldName); name != r.name {
		return sel, types.BadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	return sel, nil
}

// knownFields refuses the fields that objects of a resource can't be selected by.
func knownFields(res *types.Resource) fields.TransformFunc {
	return func(name, value string) (string, string, error) {
		switch {
		case name == fieldName, name == fieldNamespace && res.Namespaced, name == fieldPhase && res == types.Namespaces:
			return name, value, nil
		case res == types.Namespaces:
			return "", "", fmt.Errorf("field label not supported: %s", name)
		}
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", name, fieldName, fieldNamespace)
	}
}

// prefix is what the keys begin with of the collection that the path names.
func (s selection) prefix() store.Key { return prefixOf(s.resource, s.namespace) }

// scope is the narrowest prefix of the keys that can match. Others may have it
// as well.
func (s selection) scope() store.Key {
	namespace := s.namespace
	if pinned, ok := s.fields.RequiresExactMatch(fieldNamespace); ok && namespace == "" {
		namespace = pinned
	}
	prefix := prefixOf(s.resource, namespace)
	if namespace == "" && s.resource.Namespaced {
		return prefix
	}
	name, _ := s.fields.RequiresExactMatch(fieldName)
	return prefix + store.Key(name)
}

// pinned tells that at most one object can match.
func (s selection) pinned() bool {
	_, named := s.fields.RequiresExactMatch(fieldName)
	return named && (s.namespace != "" || !s.resource.Namespaced)
}

// selects tells that there are selectors.
func (s selection) selects() bool { return !s.labels.Empty() || !s.fields.Empty() }

// matches applies the selectors to a record in scope.
func (s selection) matches(rec store.Record) bool {
	if !s.labels.Empty() && !s.labels.Matches(labels.Set(rec.Labels)) {
		return false
	}
	if s.fields.Empty() {
		return true
	}
	namespace, name := splitKey(s.resource, rec.Key)
	set := fields.Set{fieldName: name, fieldNamespace: namespace}
	if s.resource == types.Namespaces {
		set[fieldPhase] = phaseOf(rec)
	}
	return s.fields.Matches(set)
}

// phaseOf is the phase of a stored namespace.
func phaseOf(rec store.Record) string {
	o, err := decoded(types.Namespaces, rec)
	if err != nil {
		return "" // no phase, so no match: whoever reads it gets the error
	}
	return string(o.(*corev1.Namespace).Status.Phase)
}
