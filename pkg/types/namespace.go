package types

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Namespace is Kubernetes' own type.
type Namespace = corev1.Namespace

// NewNamespace is a namespace as a create makes it from nothing but its name.
func NewNamespace(name string) *Namespace {
	ns := Namespaces.New().(*Namespace)
	ns.Name = name
	prepareNamespace(ns)
	return ns
}

// prepareNamespace gives a new namespace what each has in Kubernetes: the label
// with its name, the finalizer that lets its contents go first, and the phase.
func prepareNamespace(ns *Namespace) {
	nameLabel(ns)
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
}

// keepNamespace lets an update change metadata only: phase and finalizers are
// the server's.
func keepNamespace(next, old *Namespace) {
	nameLabel(next)
	next.Spec.Finalizers = old.Spec.Finalizers
	next.Status = old.Status
}

// nameLabel sets the label that is no client's to change.
func nameLabel(ns *Namespace) {
	if ns.Name == "" {
		return
	}
	ns.Labels = maps.Clone(ns.Labels)
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func validateNamespace(ns *Namespace) field.ErrorList {
	errs := validateMeta(&ns.ObjectMeta, false, apivalidation.ValidateNamespaceName)
	path := field.NewPath("spec", "finalizers")
	for _, name := range ns.Spec.Finalizers {
		errs = append(errs, apivalidation.ValidateFinalizerName(string(name), path)...)
		errs = append(errs, validateOwnFinalizer(path, string(name))...)
	}
	return errs
}

// validateNamespaceUpdate looks at metadata only: the rest is kept.
func validateNamespaceUpdate(next, old *Namespace) field.ErrorList {
	errs := validateMetaUpdate(&next.ObjectMeta, &old.ObjectMeta, false)
	return append(errs, validateGenerateName(&next.ObjectMeta, apivalidation.ValidateNamespaceName)...)
}
