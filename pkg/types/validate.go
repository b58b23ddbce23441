package types

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	errs := validateMeta(&cm.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	return append(errs, validateData(cm)...)
}

// ValidateUpdate checks that new may replace old. Both have what the server
// alone sets: uid, creationTimestamp and a resourceVersion.
func ValidateUpdate(new, old *ConfigMap) field.ErrorList {
	errs := validateMetaUpdate(&new.ObjectMeta, &old.ObjectMeta, true)
	errs = append(errs, validateImmutable(new, old)...)
	errs = append(errs, validateGenerateName(&new.ObjectMeta, apivalidation.NameIsDNSSubdomain)...)
	return append(errs, validateData(new)...)
}

// validateMeta checks what all objects have in common.
func validateMeta(meta *metav1.ObjectMeta, namespaced bool, name apivalidation.ValidateNameFunc) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, namespaced, name, field.NewPath("metadata"))
	return append(errs, validateFinalizers(meta)...)
}

// validateMetaUpdate checks that an update changes nothing that must stay. What is
// wrong with the metadata comes first, as in Kubernetes; names are asked there only
// whether they fit into a path.
func validateMetaUpdate(new, old *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(new, namespaced, path.ValidatePathSegmentName, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateObjectMetaUpdate(new, old, field.NewPath("metadata"))...)
	// Both look at labels and the like, and must not tell it twice.
	return distinct(append(errs, validateFinalizers(new)...))
}

// validateGenerateName is what is left to ask about names in an update.
func validateGenerateName(meta *metav1.ObjectMeta, name apivalidation.ValidateNameFunc) field.ErrorList {
	var errs field.ErrorList
	if meta.GenerateName == "" {
		return nil
	}
	for _, message := range name(meta.GenerateName, true) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "generateName"), meta.GenerateName, message))
	}
	return errs
}

func validateFinalizers(meta *metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	for i, name := range meta.Finalizers {
		errs = append(errs, validateOwnFinalizer(field.NewPath("metadata", "finalizers").Index(i), name)...)
	}
	return errs
}

// validateOwnFinalizer leaves the names without a domain to Kubernetes.
func validateOwnFinalizer(path *field.Path, name string) field.ErrorList {
	standard := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes)}
	if strings.Contains(name, "/") || slices.Contains(standard, name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")}
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
	// As in Kubernetes an empty map is another one than none here, but not in data.
	if !reflect.DeepEqual(new.BinaryData, old.BinaryData) {
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
