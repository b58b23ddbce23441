package authz

import (
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/types"
)

// builtin are the builtins, to look at only.
var builtin = sync.OnceValue(builtins)

// builtins are the roles and bindings that are there by themselves: those of
// Kubernetes, as far as they say something about what is served here.
func builtins() *manifests {
	m := newManifests()
	for _, r := range builtinRoles() {
		m.clusterRoles[r.Name] = &r
	}
	for role, groups := range map[string][]string{
		"cluster-admin":             {user.SystemPrivilegedGroup},
		"system:discovery":          {user.AllAuthenticated},
		"system:basic-user":         {user.AllAuthenticated},
		"system:public-info-viewer": {user.AllAuthenticated, user.AllUnauthenticated},
	} {
		b := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		for _, g := range groups {
			b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: g})
		}
		m.clusterRoleBindings[role] = b
	}
	return m
}

// aggregateTo is the label that adds a ClusterRole to one of the three for users.
func aggregateTo(role string) map[string]string {
	return map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + role: "true"}
}

var (
	reading = []string{"get", "list", "watch"}
	writing = []string{"create", "delete", "deletecollection", "patch", "update"}
)

func builtinRoles() []rbacv1.ClusterRole {
	const authorization, authentication = "authorization.k8s.io", "authentication.k8s.io"
	configMaps := types.ConfigMaps.Plural
	return []rbacv1.ClusterRole{
		clusterRole("cluster-admin", resources([]string{"*"}, "*", "*"), urls([]string{"*"}, "*")),
		clusterRole("system:discovery", urls([]string{"get"}, "/livez", "/readyz", "/healthz", "/version", "/version/",
			"/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*")),
		clusterRole("system:public-info-viewer", urls([]string{"get"}, "/livez", "/readyz", "/healthz", "/version", "/version/")),
		clusterRole("system:monitoring", urls([]string{"get"}, "/metrics", "/metrics/slis", "/livez", "/readyz", "/healthz",
			"/livez/*", "/readyz/*", "/healthz/*")),
		clusterRole("system:basic-user",
			resources([]string{"create"}, authorization, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			resources([]string{"create"}, authentication, "selfsubjectreviews")),
		aggregated("admin", nil),
		aggregated("edit", aggregateTo("admin")),
		aggregated("view", aggregateTo("edit")),
		part("edit", resources(writing, "", configMaps, "events")),
		part("view", resources(reading, "", configMaps, "namespaces", "namespaces/status", "events"),
			resources([]string{"get"}, "", configMaps+"/history")),
	}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// aggregated is one of the three roles for users.
func aggregated(name string, labels map[string]string) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: name, Labels: labels},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: aggregateTo(name)}}},
	}
}

// part is what one of the three has of its own.
func part(of string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	r := clusterRole("system:aggregate-to-"+of, rules...)
	r.Labels = aggregateTo(of)
	return r
}

func resources(verbs []string, group string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: names}
}

func urls(verbs []string, paths ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: paths}
}

// replaces checks that an object which has the name of a built-in one says that it
// is to stand in its place, as Kubernetes wants it said to leave a changed one alone.
func replaces(o object, kind string) error {
	b := builtin()
	_, isRole := b.clusterRoles[o.GetName()]
	_, isBinding := b.clusterRoleBindings[o.GetName()]
	if kind == "ClusterRole" && isRole || kind == "ClusterRoleBinding" && isBinding {
		if o.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] != "false" {
			return fmt.Errorf("%s is built in, and in force without a file: give yours another name, or annotate it with %s: \"false\" to replace the built-in one",
				o.GetName(), rbacv1.AutoUpdateAnnotationKey)
		}
	}
	return nil
}
