package authz

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Rules are the roles and bindings of one folder, and the built-in ones. They never
// change, and are an Authorizer that any number of goroutines may use.
type Rules struct {
	everywhere bound            // by ClusterRoleBindings
	within     map[string]bound // by RoleBindings, by namespace
	// Warnings tell what has no effect, or another one than it seems.
	Warnings []string
}

// bound are the roles that subjects have.
type bound map[subject][]*grant

// subject is a user or a group. A service account is a user.
type subject struct {
	isGroup bool
	name    string
}

// grant is a role that a binding gives to a subject.
type grant struct {
	role   *role
	reason string // says which binding, in Kubernetes' words
}

// role is what bindings refer to.
type role struct {
	rules []rbacv1.PolicyRule
	err   error // there is no such role
}

// Load reads the manifests of a folder. What is not understood as a whole is
// refused, all problems at once.
func Load(dir string) (*Rules, error) {
	m := newManifests()
	warnings := m.readFolder(dir)
	if err := errors.Join(m.errs...); err != nil {
		return nil, err
	}
	read := len(m.origins)
	b := builtins()
	maps.Copy(b.clusterRoles, m.clusterRoles)
	maps.Copy(b.clusterRoleBindings, m.clusterRoleBindings)
	m.clusterRoles, m.clusterRoleBindings = b.clusterRoles, b.clusterRoleBindings
	r := m.rules()
	r.Warnings = append(warnings, r.Warnings...)
	if read == 0 {
		r.Warnings = append(r.Warnings, dir+" holds no roles or bindings: only members of the group "+user.SystemPrivilegedGroup+" may do anything")
	}
	return r, nil
}

// rules index the manifests by whom they are for.
func (m *manifests) rules() *Rules {
	r := &Rules{everywhere: bound{}, within: map[string]bound{}}
	roles := m.allRoles(r)
	for _, name := range slices.Sorted(maps.Keys(m.clusterRoleBindings)) {
		b := m.clusterRoleBindings[name]
		r.bind(r.everywhere, roles, "ClusterRoleBinding", name, "", b.RoleRef, b.Subjects)
	}
	for _, name := range slices.Sorted(maps.Keys(m.roleBindings)) {
		b := m.roleBindings[name]
		if r.within[b.Namespace] == nil {
			r.within[b.Namespace] = bound{}
		}
		// Kubernetes puts the name before the namespace here.
		r.bind(r.within[b.Namespace], roles, "RoleBinding", b.Name+"/"+b.Namespace, b.Namespace, b.RoleRef, b.Subjects)
	}
	return r
}

// allRoles are the roles by kind and qualified name.
func (m *manifests) allRoles(r *Rules) map[string]*role {
	all := map[string]*role{}
	for name, o := range m.roles {
		all["Role "+name] = &role{rules: o.Rules}
	}
	for name, o := range m.clusterRoles {
		rules := o.Rules
		if o.AggregationRule != nil {
			rules = m.aggregate(o)
			if len(o.Rules) > 0 {
				r.Warnings = append(r.Warnings, fmt.Sprintf("ClusterRole %s has an aggregationRule: its own rules don't count, only those that are gathered", name))
			}
		}
		all["ClusterRole "+name] = &role{rules: rules}
	}
	return all
}

// aggregate gathers the rules of all roles that an aggregationRule selects, and of
// those that these select in turn.
func (m *manifests) aggregate(start *rbacv1.ClusterRole) (rules []rbacv1.PolicyRule) {
	seen := map[string]bool{start.Name: true}
	for queue := []*rbacv1.ClusterRole{start}; len(queue) > 0; queue = queue[1:] {
		for _, name := range slices.Sorted(maps.Keys(m.clusterRoles)) {
			o := m.clusterRoles[name]
			switch {
			case seen[name] || !selects(queue[0].AggregationRule, o.Labels):
				continue
			case o.AggregationRule != nil:
				queue = append(queue, o)
			default:
				rules = append(rules, o.Rules...)
			}
			seen[name] = true
		}
	}
	return rules
}

func selects(a *rbacv1.AggregationRule, of map[string]string) bool {
	return slices.ContainsFunc(a.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(of)) // an error was refused before
	})
}

// bind gives a role to the subjects of a binding. One that refers to no role gives
// nothing, as in Kubernetes; those whom it is for are told when they are refused.
func (r *Rules) bind(to bound, roles map[string]*role, kind, name, namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	at := ref.Name
	if ref.Kind == "Role" {
		at = qualified(namespace, ref.Name)
	}
	given, ok := roles[ref.Kind+" "+at]
	if !ok {
		given = &role{err: fmt.Errorf("%s.%s %q not found", strings.ToLower(ref.Kind), rbacv1.GroupName, ref.Name)}
		roles[ref.Kind+" "+at] = given
	}
	if given.err != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s %s gives nothing: there is no %s %s", kind, name, ref.Kind, at))
	}
	if len(subjects) == 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s %s is for nobody: it has no subjects", kind, name))
	}
	for _, s := range subjects {
		key := subjectOf(s, namespace)
		if slices.ContainsFunc(to[key], func(g *grant) bool { return g.role == given }) {
			continue // by an earlier binding
		}
		to[key] = append(to[key], &grant{role: given, reason: fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s",
			kind, name, ref.Kind, ref.Name, described(s, namespace))})
	}
}

// subjectOf is whom a binding in a namespace means.
func subjectOf(s rbacv1.Subject, namespace string) subject {
	if s.Kind != rbacv1.ServiceAccountKind {
		return subject{isGroup: s.Kind == rbacv1.GroupKind, name: s.Name}
	}
	return subject{name: serviceaccount.MakeUsername(account(s, namespace), s.Name)}
}

// account is the namespace of a service account, which may be left out.
func account(s rbacv1.Subject, namespace string) string {
	if s.Namespace != "" {
		return s.Namespace
	}
	return namespace
}

func described(s rbacv1.Subject, namespace string) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return fmt.Sprintf("%s %q", s.Kind, s.Name+"/"+account(s, namespace))
	}
	return fmt.Sprintf("%s %q", s.Kind, s.Name)
}

// grants calls visit for each role that a user has in a namespace, until it returns
// false. A role that a user has in several ways comes several times.
func (r *Rules) grants(u user.Info, namespace string, visit func(*grant) bool) {
	in := r.within[namespace]
	for _, b := range []bound{r.everywhere, in} {
		if len(b) == 0 {
			continue
		}
		for _, g := range b[subject{name: u.GetName()}] {
			if !visit(g) {
				return
			}
		}
		for _, name := range u.GetGroups() {
			for _, g := range b[subject{isGroup: true, name: name}] {
				if !visit(g) {
					return
				}
			}
		}
	}
}

// Authorize is that of Authorizer. The reason of what is allowed names the binding.
func (r *Rules) Authorize(a authorizer.Attributes) (allowed bool, reason string) {
	u := a.GetUser()
	if u == nil {
		return false, ""
	}
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return true, ""
	}
	var errs []error
	is := matterOf(a)
	r.grants(u, a.GetNamespace(), func(g *grant) bool {
		if g.role.err != nil {
			errs = append(errs, g.role.err)
			return true
		}
		for i := range g.role.rules {
			if is.allowedBy(&g.role.rules[i]) {
				allowed, reason = true, g.reason
				return false
			}
		}
		return true
	})
	if !allowed && len(errs) > 0 {
		reason = fmt.Sprintf("rbac: RBAC: %v", utilerrors.NewAggregate(errs))
	}
	return allowed, reason
}

// RulesFor is that of Authorizer.
func (r *Rules) RulesFor(u user.Info, namespace string) (resources []authorizer.ResourceRuleInfo, paths []authorizer.NonResourceRuleInfo, err error) {
	if u == nil {
		return nil, nil, nil
	}
	if slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		resources, paths = Everything()
		return resources, paths, nil
	}
	var errs []error
	seen := map[*role]bool{}
	r.grants(u, namespace, func(g *grant) bool {
		if seen[g.role] {
			return true
		}
		seen[g.role] = true
		if g.role.err != nil {
			errs = append(errs, g.role.err)
		}
		for _, rule := range g.role.rules {
			if len(rule.Resources) > 0 {
				resources = append(resources, &authorizer.DefaultResourceRuleInfo{
					Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
			}
			if len(rule.NonResourceURLs) > 0 {
				paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
			}
		}
		return true
	})
	return resources, paths, utilerrors.NewAggregate(errs)
}

// Everything are the rules of whoever may do everything.
func Everything() ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo) {
	all := []string{"*"}
	return []authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{Verbs: all, APIGroups: all, Resources: all}},
		[]authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{Verbs: all, NonResourceURLs: all}}
}

// matter is what a request is about, as rules name it. It is taken out of the
// attributes once: every one of their methods copies them.
type matter struct {
	ofResource                         bool
	verb, path                         string
	group, resource, subresource, name string
}

func matterOf(a authorizer.Attributes) matter {
	return matter{ofResource: a.IsResourceRequest(), verb: a.GetVerb(), path: a.GetPath(),
		group: a.GetAPIGroup(), resource: a.GetResource(), subresource: a.GetSubresource(), name: a.GetName()}
}

// allowedBy tells whether one rule allows it.
func (m *matter) allowedBy(rule *rbacv1.PolicyRule) bool {
	if !anyOrOne(rule.Verbs, m.verb) {
		return false
	}
	if !m.ofResource {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return covers(url, m.path) })
	}
	return anyOrOne(rule.APIGroups, m.group) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, m.name)) &&
		slices.ContainsFunc(rule.Resources, func(r string) bool { return names(r, m.resource, m.subresource) })
}

func anyOrOne(list []string, one string) bool {
	for _, s := range list {
		if s == "*" || s == one {
			return true
		}
	}
	return false
}

// covers tells whether a nonResourceURL is a path, or with its * the beginning of it.
func covers(url, path string) bool {
	if url == path {
		return true
	}
	return strings.HasSuffix(url, "*") && strings.HasPrefix(path, strings.TrimRight(url, "*"))
}

// names tells whether what a rule calls a resource is the one of the request.
func names(rule, resource, subresource string) bool {
	if rule == "*" {
		return true
	}
	if subresource == "" {
		return rule == resource
	}
	of, sub, ok := strings.Cut(rule, "/")
	return ok && sub == subresource && (of == resource || of == "*")
}

// Current is an Authorizer by the rules that are in force when it is asked.
type Current func() *Rules

// Authorize is that of Authorizer.
func (c Current) Authorize(a authorizer.Attributes) (bool, string) { return c().Authorize(a) }

// RulesFor is that of Authorizer.
func (c Current) RulesFor(u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, error) {
	return c().RulesFor(u, namespace)
}
