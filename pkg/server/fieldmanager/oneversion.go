package fieldmanager

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/cmctl/pkg/types"
)

// oneVersion is what apimachinery asks of a scheme, for a resource with a
// single version and without defaults of its own.
type oneVersion struct{ resource *types.Resource }

// ConvertToVersion gives typed objects back as they are, and makes those that
// come out of a merge typed.
func (v oneVersion) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	kind := v.resource.GroupVersionKind()
	if want, _ := target.KindForGroupVersionKinds([]schema.GroupVersionKind{kind}); want != kind {
		// For this error, entries of a version that doesn't exist are dropped.
		return nil, runtime.NewNotRegisteredErrForKind("cmserver", want)
	}
	merged, ok := in.(runtime.Unstructured)
	if !ok {
		return in, nil
	}
	out := v.resource.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged.UnstructuredContent(), out); err != nil {
		return nil, err
	}
	return out, nil
}

// Convert is part of the interface, and not used by the field manager.
func (v oneVersion) Convert(in, out, _ any) error {
	return fmt.Errorf("convert %T to %T: %s have one version", in, out, v.resource.Plural)
}

// ConvertFieldLabel is part of the interface, and not used by the field manager.
func (v oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default leaves the object as it is: the server fills in what is missing.
func (v oneVersion) Default(runtime.Object) {}

// New makes an empty object.
func (v oneVersion) New(schema.GroupVersionKind) (runtime.Object, error) {
	return v.resource.New(), nil
}
