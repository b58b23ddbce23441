package quota

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/cmctl/pkg/server/manifests"
)

// Load reads the ResourceQuota manifests of a folder, empty: none. Whatever is not
// understood makes it fail, and the error names each such place: a bound that was
// meant must not be missing.
func Load(dir string, d Defaults) (*Rules, error) {
	l := loader{rules: &Rules{own: map[string][]Quota{}, every: d.completed(nil)}, origins: map[string]string{}}
	if dir != "" {
		l.folder(manifests.Read(dir))
	}
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	for namespace, quotas := range l.rules.own {
		l.rules.own[namespace] = d.completed(quotas)
	}
	return l.rules, nil
}

// loader collects quotas, and all that is wrong.
type loader struct {
	rules   *Rules
	origins map[string]string // where each quota was read, by namespace/name
	errs    []error
}

func (l *loader) refuse(origin string, err error) {
	l.errs = append(l.errs, fmt.Errorf("%s: %w", origin, err))
}

// folder takes what a folder holds. What is no manifest has no place in it.
func (l *loader) folder(f manifests.Folder) {
	l.errs = append(l.errs, f.Errs...)
	for _, what := range f.Passed {
		l.errs = append(l.errs, fmt.Errorf("%s; move it out of the folder", what))
	}
	for _, d := range f.Documents {
		switch {
		case d.APIVersion != "v1":
			l.refuse(d.Origin, fmt.Errorf("apiVersion is %q, not v1", d.APIVersion))
		case d.Kind != "ResourceQuota":
			l.refuse(d.Origin, fmt.Errorf("kind is %q: ResourceQuota alone is read here", d.Kind))
		default:
			l.quota(d)
		}
	}
}

func (l *loader) quota(d manifests.Document) {
	var manifest corev1.ResourceQuota
	if err := d.Decode(&manifest); err != nil {
		l.refuse(d.Origin, err)
		return
	}
	full := manifest.Namespace + "/" + manifest.Name
	origin := d.Origin + " (" + full + ")"
	if errs := validate(&manifest); len(errs) > 0 {
		l.refuse(origin, errs.ToAggregate())
		return
	}
	if other, ok := l.origins[full]; ok {
		l.refuse(origin, fmt.Errorf("it is also in %s: keep one of them", other))
		return
	}
	l.origins[full] = origin
	q := Quota{Name: manifest.Name, Hard: map[string]int64{}}
	for key, bound := range manifest.Spec.Hard {
		q.Hard[string(key)] = bound.Value()
	}
	l.rules.own[manifest.Namespace] = append(l.rules.own[manifest.Namespace], q)
}

// validate refuses what this server can't hold anybody to. A status is what some
// other server had counted.
func validate(q *corev1.ResourceQuota) field.ErrorList {
	errs := validation.ValidateObjectMeta(&q.ObjectMeta, true, path.ValidatePathSegmentName, field.NewPath("metadata"))
	spec := field.NewPath("spec")
	if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		errs = append(errs, field.Forbidden(spec.Child("scopes"), "ConfigMaps have none"))
	}
	known := []string{ConfigMaps, CountConfigMaps, Bytes}
	for key, bound := range q.Spec.Hard {
		at := spec.Child("hard").Key(string(key))
		if !slices.Contains(known, string(key)) {
			errs = append(errs, field.NotSupported(at, string(key), known))
		}
		if _, exact := bound.AsInt64(); !exact || bound.Sign() < 0 {
			errs = append(errs, field.Invalid(at, bound.String(), "must be a whole number, not below 0"))
		}
	}
	return errs
}
