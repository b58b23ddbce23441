package types

import (
	"bytes"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxDataBytes is how much Data and BinaryData may hold together. Only values
// count, those of BinaryData as bytes and not as base64.
const MaxDataBytes = corev1.MaxSecretSize

// immutableMessage is what an immutable ConfigMap answers to a change.
const immutableMessage = "field is immutable when `immutable` is set"

// ValidateName says what is wrong with an object's name: nothing, or one
// message for each rule that it breaks. A valid name is a DNS-1123 subdomain,
// so it holds neither a path separator nor "..".
func ValidateName(name string) []string {
	return apivalidation.NameIsDNSSubdomain(name, false)
}

// ValidateNamespace says what is wrong with the name of a namespace.
func ValidateNamespace(name string) []string {
	return apivalidation.ValidateNamespaceName(name, false)
}

// ValidateKey says what is wrong with a key of Data or BinaryData. A valid key
// is a file name without path separators that does not begin with "..".
func ValidateKey(key string) []string {
	return validation.IsConfigMapKey(key)
}

// ValidateConfigMap checks a ConfigMap whose namespace and name are set, with
// the field paths and causes of Kubernetes. Errors come in a fixed order.
func ValidateConfigMap(cm *ConfigMap) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&cm.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateData(cm)...)
}

// ValidateUpdate checks that new may replace old. Both have what the server
// alone sets: uid, creationTimestamp and a resourceVersion.
func ValidateUpdate(new, old *ConfigMap) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&new.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, validateImmutable(new, old)...)
	// Both halves look at labels and the like, and must not tell it twice.
	return distinct(append(errs, ValidateConfigMap(new)...))
}

// validateImmutable lets an immutable ConfigMap change its metadata only.
func validateImmutable(new, old *ConfigMap) field.ErrorList {
	if !isSet(old.Immutable) {
		return nil
	}
	var errs field.ErrorList
	if !isSet(new.Immutable) {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableMessage))
	}
	if !maps.Equal(new.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), immutableMessage))
	}
	if !maps.EqualFunc(new.BinaryData, old.BinaryData, bytes.Equal) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutableMessage))
	}
	return errs
}

func isSet(b *bool) bool { return b != nil && *b }

func validateData(cm *ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		size += len(cm.Data[key])
		path := field.NewPath("data").Key(key)
		errs = append(errs, validateKey(path, key)...)
		if _, both := cm.BinaryData[key]; both {
			errs = append(errs, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		size += len(cm.BinaryData[key])
		errs = append(errs, validateKey(field.NewPath("binaryData").Key(key), key)...)
	}
	if size > MaxDataBytes {
		// Kubernetes names no field here, because no single one is too long.
		errs = append(errs, field.TooLong(field.NewPath(""), "", MaxDataBytes))
	}
	return errs
}

func validateKey(path *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range ValidateKey(key) {
		errs = append(errs, field.Invalid(path, key, message))
	}
	return errs
}

// distinct drops errors that say the same as one before them.
func distinct(errs field.ErrorList) field.ErrorList {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		text := e.Error()
		if seen[text] {
			return true
		}
		seen[text] = true
		return false
	})
}
