package authz

import (
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	files "example.com/cmctl/pkg/server/manifests"
)

// manifests are the objects that the rules are made of, by what they are called.
type manifests struct {
	roles               map[string]*rbacv1.Role // by namespace/name, as the bindings of roles
	clusterRoles        map[string]*rbacv1.ClusterRole
	roleBindings        map[string]*rbacv1.RoleBinding
	clusterRoleBindings map[string]*rbacv1.ClusterRoleBinding

	origins map[string]string // where each was read, by kind and name
	errs    []error           // each names its file
}

func newManifests() *manifests {
	return &manifests{
		roles:               map[string]*rbacv1.Role{},
		clusterRoles:        map[string]*rbacv1.ClusterRole{},
		roleBindings:        map[string]*rbacv1.RoleBinding{},
		clusterRoleBindings: map[string]*rbacv1.ClusterRoleBinding{},
		origins:             map[string]string{},
	}
}

// readFolder reads every manifest of a folder, and warns of what it passes over.
func (m *manifests) readFolder(dir string) (warnings []string) {
	folder := files.Read(dir)
	m.errs = append(m.errs, folder.Errs...)
	for _, d := range folder.Documents {
		m.add(d)
	}
	warnings = folder.Passed
	for _, path := range folder.Exposed {
		warnings = append(warnings, path+" can be written by everybody on this machine, who can so give themselves every right; 'chmod o-w' it")
	}
	return warnings
}

// add takes one document.
func (m *manifests) add(d files.Document) {
	if d.APIVersion != rbacv1.SchemeGroupVersion.String() {
		m.refuse(d.Origin, d.Kind, fmt.Errorf("apiVersion %q is not %s", d.APIVersion, rbacv1.SchemeGroupVersion))
		return
	}
	switch d.Kind {
	case "Role":
		take(m, m.roles, d, &rbacv1.Role{}, validateRole)
	case "ClusterRole":
		take(m, m.clusterRoles, d, &rbacv1.ClusterRole{}, validateClusterRole)
	case "RoleBinding":
		take(m, m.roleBindings, d, &rbacv1.RoleBinding{}, validateRoleBinding)
	case "ClusterRoleBinding":
		take(m, m.clusterRoleBindings, d, &rbacv1.ClusterRoleBinding{}, validateClusterRoleBinding)
	default:
		m.refuse(d.Origin, d.Kind, errors.New("the kinds that are read are Role, ClusterRole, RoleBinding and ClusterRoleBinding"))
	}
}

// refuse notes what is wrong at origin with what calls itself what.
func (m *manifests) refuse(origin, what string, err error) {
	if what != "" {
		origin += " (" + what + ")"
	}
	m.errs = append(m.errs, fmt.Errorf("%s: %w", origin, err))
}

// object is one of the four kinds.
type object interface {
	runtime.Object
	metav1.Object
}

// take decodes, checks and keeps an object. One name is one object: of two it would
// be chance which counts.
func take[T object](m *manifests, into map[string]T, d files.Document, o T, validate func(T) field.ErrorList) {
	err := d.Decode(o)
	kind, name := o.GetObjectKind().GroupVersionKind().Kind, qualified(o.GetNamespace(), o.GetName())
	what := strings.TrimSpace(kind + " " + name)
	if err != nil {
		m.refuse(d.Origin, what, err)
		return
	}
	if errs := validate(o); len(errs) > 0 {
		m.refuse(d.Origin, what, errs.ToAggregate())
		return
	}
	if other, ok := m.origins[what]; ok {
		m.refuse(d.Origin, what, fmt.Errorf("it is also in %s: keep one of them", other))
		return
	}
	m.origins[what] = d.Origin
	if err := replaces(o, kind); err != nil {
		m.refuse(d.Origin, what, err)
		return
	}
	into[name] = o
}

// qualified is how messages name an object.
func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
