package types

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits that Kubernetes does not have. What they bound would otherwise take
// minutes: the time of a merge grows with the square of a list's length, that of
// managedFields with the square of their number.
const (
	// MaxListItems is how many finalizers, and how many ownerReferences, an object
	// may have.
	MaxListItems = 1000
	// MaxManagedFields is how many entries a body may have in managedFields. The
	// server itself keeps ten for updates, and one for each that applies.
	MaxManagedFields = 1000
	// MaxCauses is how many problems a refusal names, and maxCauseBytes how much
	// text they may be.
	MaxCauses     = 100
	maxCauseBytes = 256 << 10
)

// limitLists refuses lists that are too long. old is nil for a new object; what
// is stored already may stay.
func limitLists(next, old Object) field.ErrorList {
	var had struct{ finalizers, owners int }
	if old != nil {
		had.finalizers, had.owners = len(old.GetFinalizers()), len(old.GetOwnerReferences())
	}
	var errs field.ErrorList
	limit := func(name string, n, had int) {
		if n > max(MaxListItems, had) {
			errs = append(errs, field.TooMany(field.NewPath("metadata", name), n, MaxListItems))
		}
	}
	limit("finalizers", len(next.GetFinalizers()), had.finalizers)
	limit("ownerReferences", len(next.GetOwnerReferences()), had.owners)
	if ns, ok := next.(*Namespace); ok && len(ns.Spec.Finalizers) > MaxListItems {
		errs = append(errs, field.TooMany(field.NewPath("spec", "finalizers"), len(ns.Spec.Finalizers), MaxListItems))
	}
	return errs
}

// LimitManagedFields refuses entries that are too many. old is nil for a new
// object; what is stored already may stay.
func LimitManagedFields(next, old Object) error {
	n, limit := len(next.GetManagedFields()), MaxManagedFields
	if old != nil {
		limit = max(limit, len(old.GetManagedFields()))
	}
	if n > limit {
		return BadRequest(fmt.Sprintf("metadata.managedFields has %d entries; at most %d are taken", n, MaxManagedFields))
	}
	return nil
}

// checkFieldsV1 refuses entries that could not be sent as JSON again: protobuf has
// them as bytes.
func checkFieldsV1(o Object) error {
	for i, e := range o.GetManagedFields() {
		if e.FieldsV1 != nil && !utf8.Valid(e.FieldsV1.GetRawBytes()) {
			return BadRequest(fmt.Sprintf("metadata.managedFields[%d].fieldsV1 is not UTF-8 text", i))
		}
	}
	return nil
}

// named is how many of the errors a refusal names, one at least.
func named(errs field.ErrorList) int {
	n, size := 0, 0
	for n < len(errs) && n < MaxCauses && size < maxCauseBytes {
		size += len(errs[n].Error())
		n++
	}
	return n
}
