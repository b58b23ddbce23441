package authz

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The rules of these functions are Kubernetes' own. Fields that it fills in are
// filled in here as well.

func validateRole(r *rbacv1.Role) field.ErrorList {
	return append(validateMeta(&r.ObjectMeta, true), validateRules(r.Rules, true)...)
}

func validateClusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	errs := append(validateMeta(&r.ObjectMeta, false), validateRules(r.Rules, false)...)
	if r.AggregationRule == nil {
		return errs
	}
	at := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		errs = append(errs, metavalidation.ValidateLabelSelector(&r.AggregationRule.ClusterRoleSelectors[i],
			metavalidation.LabelSelectorValidationOptions{}, at.Index(i))...)
	}
	return errs
}

func validateMeta(m *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	return validation.ValidateObjectMeta(m, namespaced, path.ValidatePathSegmentName, field.NewPath("metadata"))
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool) (errs field.ErrorList) {
	for i, r := range rules {
		errs = append(errs, validateRule(r, namespaced, field.NewPath("rules").Index(i))...)
	}
	return errs
}

func validateRule(r rbacv1.PolicyRule, namespaced bool, at *field.Path) (errs field.ErrorList) {
	if len(r.Verbs) == 0 {
		errs = append(errs, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
	}
	if len(r.NonResourceURLs) > 0 {
		urls := at.Child("nonResourceURLs")
		if namespaced {
			errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
		}
		if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
		}
		return errs
	}
	if len(r.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(r.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}

func validateRoleBinding(b *rbacv1.RoleBinding) field.ErrorList {
	errs := append(validateMeta(&b.ObjectMeta, true), validateRef(&b.RoleRef, "Role", "ClusterRole")...)
	return append(errs, validateSubjects(b.Subjects, true)...)
}

func validateClusterRoleBinding(b *rbacv1.ClusterRoleBinding) field.ErrorList {
	errs := append(validateMeta(&b.ObjectMeta, false), validateRef(&b.RoleRef, "ClusterRole")...)
	return append(errs, validateSubjects(b.Subjects, false)...)
}

func validateRef(r *rbacv1.RoleRef, kinds ...string) (errs field.ErrorList) {
	at := field.NewPath("roleRef")
	errs = append(errs, defaulted(&r.APIGroup, rbacv1.GroupName, at.Child("apiGroup"))...)
	errs = append(errs, oneOf(r.Kind, at.Child("kind"), kinds...)...)
	if r.Name == "" {
		return append(errs, field.Required(at.Child("name"), ""))
	}
	return append(errs, valid(r.Name, at.Child("name"), path.IsValidPathSegmentName(r.Name))...)
}

func validateSubjects(subjects []rbacv1.Subject, namespaced bool) (errs field.ErrorList) {
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(s *rbacv1.Subject, namespaced bool, at *field.Path) (errs field.ErrorList) {
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			errs = append(errs, valid(s.Name, at.Child("name"), validation.ValidateServiceAccountName(s.Name, false))...)
		}
		errs = append(errs, oneOf(s.APIGroup, at.Child("apiGroup"), "")...)
		if !namespaced && s.Namespace == "" {
			errs = append(errs, field.Required(at.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		errs = append(errs, defaulted(&s.APIGroup, rbacv1.GroupName, at.Child("apiGroup"))...)
	default:
		errs = append(errs, oneOf(s.Kind, at.Child("kind"), rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)...)
	}
	return errs
}

// defaulted fills in the one value that a field may have.
func defaulted(value *string, only string, at *field.Path) field.ErrorList {
	if *value == "" {
		*value = only
	}
	return oneOf(*value, at, only)
}

func oneOf(value string, at *field.Path, allowed ...string) field.ErrorList {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}

func valid(value string, at *field.Path, problems []string) (errs field.ErrorList) {
	for _, p := range problems {
		errs = append(errs, field.Invalid(at, value, p))
	}
	return errs
}
