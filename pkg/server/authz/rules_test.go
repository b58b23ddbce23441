package authz_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/server/authz"
)

// folder is a folder with files of that content.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t testing.TB, manifests string) *authz.Rules {
	t.Helper()
	rules, err := authz.Load(folder(t, map[string]string{"rules.yaml": manifests}))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

const head = "apiVersion: rbac.authorization.k8s.io/v1\n"

// The short forms of manifests in these tests.
func clusterRole(name, rules string) string {
	return fmt.Sprintf("---\n%skind: ClusterRole\nmetadata: {name: %s}\nrules: [%s]\n", head, name, rules)
}

func role(namespace, name, rules string) string {
	return fmt.Sprintf("---\n%skind: Role\nmetadata: {name: %s, namespace: %s}\nrules: [%s]\n", head, name, namespace, rules)
}

func bind(namespace, kind, name, subject string) string {
	return fmt.Sprintf("---\n%skind: RoleBinding\nmetadata: {name: %s, namespace: %s}\nroleRef: {kind: %s, name: %s}\nsubjects: [%s]\n",
		head, strings.ToLower(kind)+"-"+name, namespace, kind, name, subject)
}

func bindEverywhere(name, subject string) string {
	return fmt.Sprintf("---\n%skind: ClusterRoleBinding\nmetadata: {name: all-%s}\nroleRef: {kind: ClusterRole, name: %s}\nsubjects: [%s]\n",
		head, name, name, subject)
}

// request is "verb resource[/sub] [namespace[/name]]", or "verb /path".
func request(who user.Info, text string) *authorizer.AttributesRecord {
	words := append(strings.Fields(text), "", "")
	if strings.HasPrefix(words[1], "/") {
		return &authorizer.AttributesRecord{User: who, Verb: words[0], Path: words[1]}
	}
	a := &authorizer.AttributesRecord{User: who, Verb: words[0], ResourceRequest: true}
	a.Resource, a.Subresource, _ = strings.Cut(words[1], "/")
	a.Resource, a.APIGroup, _ = strings.Cut(a.Resource, ".")
	a.Namespace, a.Name, _ = strings.Cut(words[2], "/")
	return a
}

func TestRulesAllowWhatTheySay(t *testing.T) {
	const jane = "{kind: User, name: jane}"
	janeHerself := &user.DefaultInfo{Name: "jane", Groups: []string{"devs", user.AllAuthenticated}}
	for _, test := range []struct {
		name, manifests string
		allowed, denied []string
	}{
		{"no rule", "", nil, []string{"get configmaps a/b", "get /metrics", "create namespaces"}},
		{"a role in its namespace", role("a", "r", "{verbs: [get], apiGroups: [''], resources: [configmaps]}") + bind("a", "Role", "r", jane),
			[]string{"get configmaps a/b", "get configmaps a"},
			[]string{"get configmaps b/b", "get configmaps", "list configmaps a", "get configmaps/history a/b", "get secrets a/b", "get configmaps.apps a/b", "Get configmaps a/b", "get Configmaps a/b"}},
		{"a role of another namespace", role("b", "r", "{verbs: ['*'], apiGroups: ['*'], resources: ['*']}") + bind("a", "Role", "r", jane),
			nil, []string{"get configmaps a/b", "get configmaps b/b"}},
		{"a cluster role in a namespace", clusterRole("r", "{verbs: ['*'], apiGroups: ['*'], resources: ['*']}, {verbs: ['*'], nonResourceURLs: ['*']}") + bind("a", "ClusterRole", "r", jane),
			[]string{"get configmaps a/b", "delete namespaces a/a", "x y/z a"}, []string{"get configmaps b/b", "list configmaps", "get /metrics"}},
		{"a cluster role everywhere", clusterRole("r", "{verbs: [list], apiGroups: [''], resources: [configmaps]}") + bindEverywhere("r", jane),
			[]string{"list configmaps", "list configmaps a"}, []string{"watch configmaps"}},
		{"to a group", clusterRole("r", "{verbs: [list], apiGroups: [''], resources: [configmaps]}") + bindEverywhere("r", "{kind: Group, name: devs}"),
			[]string{"list configmaps"}, nil},
		{"to a group of that user's name", clusterRole("r", "{verbs: [list], apiGroups: [''], resources: [configmaps]}") + bindEverywhere("r", "{kind: Group, name: jane}"),
			nil, []string{"list configmaps"}},
		{"to a user of that group's name", clusterRole("r", "{verbs: [list], apiGroups: [''], resources: [configmaps]}") + bindEverywhere("r", "{kind: User, name: devs}"),
			nil, []string{"list configmaps"}},
		{"all verbs, one resource", role("a", "r", "{verbs: ['*'], apiGroups: [''], resources: [configmaps]}") + bind("a", "Role", "r", jane),
			[]string{"deletecollection configmaps a", " configmaps a"}, []string{"get configmaps/history a/b"}},
		{"names", role("a", "r", "{verbs: ['*'], apiGroups: [''], resources: [configmaps], resourceNames: [x, z2]}") + bind("a", "Role", "r", jane),
			[]string{"get configmaps a/x", "watch configmaps a/z2", "delete configmaps a/x"},
			[]string{"get configmaps a/z", "list configmaps a", "create configmaps a", "deletecollection configmaps a", "get configmaps a/X"}},
		{"a subresource", role("a", "r", "{verbs: [get], apiGroups: [''], resources: [configmaps/history]}") + bind("a", "Role", "r", jane),
			[]string{"get configmaps/history a/x"}, []string{"get configmaps a/x", "get secrets/history a/x", "get configmaps/other a/x"}},
		{"a subresource of all", role("a", "r", "{verbs: [get], apiGroups: [''], resources: ['*/history']}") + bind("a", "Role", "r", jane),
			[]string{"get configmaps/history a/x", "get secrets/history a/x"}, []string{"get configmaps a/x", "get configmaps/xhistory a/x"}},
		{"what looks like all subresources", role("a", "r", "{verbs: [get], apiGroups: [''], resources: ['configmaps/*', 'config*']}") + bind("a", "Role", "r", jane),
			nil, []string{"get configmaps/history a/x", "get configmaps a/x"}},
		{"all groups", role("a", "r", "{verbs: [get], apiGroups: ['*'], resources: [configmaps]}") + bind("a", "Role", "r", jane),
			[]string{"get configmaps.apps a/b", "get configmaps a/b"}, nil},
		{"paths", clusterRole("r", "{verbs: [get], nonResourceURLs: [/metrics, /debug/*, /x*]}") + bindEverywhere("r", jane),
			[]string{"get /metrics", "get /debug/a/b", "get /debug/", "get /xyz", "get /x"}, []string{"get /metrics/", "get /debug", "post /metrics", "get /Metrics"}},
		{"gathered rules", clusterRole("part", "{verbs: [get], apiGroups: [''], resources: [a]}") +
			"---\n" + head + "kind: ClusterRole\nmetadata: {name: more, labels: {to: whole}}\nrules: [{verbs: [get], apiGroups: [''], resources: [b]}]\n" +
			"---\n" + head + "kind: ClusterRole\nmetadata: {name: loop, labels: {to: whole}}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {to: whole}}]}\n" +
			"---\n" + head + "kind: ClusterRole\nmetadata: {name: whole}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {to: whole}}]}\nrules: [{verbs: [get], apiGroups: [''], resources: [c]}]\n" +
			bindEverywhere("whole", jane),
			[]string{"get b a/x"}, []string{"get a a/x", "get c a/x"}},
		{"a role that is added to view", "---\n" + head + "kind: ClusterRole\nmetadata: {name: more, labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}\n" +
			"rules: [{verbs: [get], apiGroups: [''], resources: [b]}]\n" + bind("a", "ClusterRole", "admin", jane),
			[]string{"get b a/x", "update configmaps a/x", "get configmaps/history a/x"}, []string{"get b b/x"}},
		{"view", bind("a", "ClusterRole", "view", jane),
			[]string{"get configmaps a/b", "watch configmaps a", "get namespaces a/a", "get configmaps/history a/b", "list events a"},
			[]string{"update configmaps a/b", "create configmaps a", "delete namespaces a/a", "list namespaces"}},
		{"edit", bind("a", "ClusterRole", "edit", jane),
			[]string{"get configmaps a/b", "create configmaps a", "deletecollection configmaps a", "patch configmaps a/b"},
			[]string{"create namespaces", "delete namespaces a/a", "impersonate serviceaccounts a/b", "update namespaces/finalize a/a"}},
		{"cluster-admin in a namespace", bind("a", "ClusterRole", "cluster-admin", jane), []string{"delete namespaces a/a"}, []string{"list configmaps", "get /metrics"}},
		{"what is built in", "", []string{"get /api", "get /openapi/v2", "get /apis/x", "get /healthz", "create selfsubjectaccessreviews.authorization.k8s.io", "create selfsubjectreviews.authentication.k8s.io"},
			[]string{"create subjectaccessreviews.authorization.k8s.io", "get /healthz/ping", "post /api"}},
		{"a built-in one replaced", "---\n" + head + "kind: ClusterRole\nmetadata: {name: 'system:discovery', annotations: {rbac.authorization.kubernetes.io/autoupdate: 'false'}}\n",
			[]string{"get /healthz"}, []string{"get /api"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := load(t, test.manifests)
			for want, texts := range map[bool][]string{true: test.allowed, false: test.denied} {
				for _, text := range texts {
					if strings.HasPrefix(text, " ") {
						text = "any" + text
					}
					if got, reason := rules.Authorize(request(janeHerself, text)); got != want {
						t.Errorf("%s: %v %s", text, got, reason)
					}
				}
			}
		})
	}
}

func TestWhoIsMeant(t *testing.T) {
	const anything = "{verbs: [get], apiGroups: [''], resources: [configmaps]}"
	rules := load(t, role("a", "r", anything)+bind("a", "Role", "r", "{kind: ServiceAccount, name: robot}, {kind: ServiceAccount, name: robot, namespace: b}")+
		role("a", "gone", anything)+bind("a", "Role", "missing", "{kind: User, name: joe}, {kind: Group, name: devs}"))
	for _, test := range []struct {
		who    *user.DefaultInfo
		want   bool
		reason string
	}{
		{&user.DefaultInfo{Name: "system:serviceaccount:a:robot"}, true, `RBAC: allowed by RoleBinding "role-r/a" of Role "r" to ServiceAccount "robot/a"`},
		{&user.DefaultInfo{Name: "system:serviceaccount:b:robot"}, true, `RBAC: allowed by RoleBinding "role-r/a" of Role "r" to ServiceAccount "robot/b"`},
		{&user.DefaultInfo{Name: "system:serviceaccount:c:robot"}, false, ""},
		{&user.DefaultInfo{Name: "robot"}, false, ""},
		{&user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}, true, ""},
		{&user.DefaultInfo{Name: user.SystemPrivilegedGroup}, false, ""},
		{&user.DefaultInfo{Name: "joe", Groups: []string{"devs"}}, false, `rbac: RBAC: role.rbac.authorization.k8s.io "missing" not found`},
		{&user.DefaultInfo{}, false, ""},
	} {
		if got, reason := rules.Authorize(request(test.who, "get configmaps a/b")); got != test.want || reason != test.reason {
			t.Errorf("%v: %v %q", test.who, got, reason)
		}
	}
	if got, _ := rules.Authorize(&authorizer.AttributesRecord{Verb: "get", Path: "/version"}); got {
		t.Error("nobody may do something")
	}
}

func TestRulesForTellWhatIsAllowed(t *testing.T) {
	rules := load(t, role("a", "r", "{verbs: [get], apiGroups: [''], resources: [configmaps], resourceNames: [x]}")+
		bind("a", "Role", "r", "{kind: User, name: jane}, {kind: Group, name: devs}")+bind("a", "ClusterRole", "gone", "{kind: User, name: jane}"))
	jane := &user.DefaultInfo{Name: "jane", Groups: []string{"devs"}}
	resources, paths, err := rules.RulesFor(jane, "a")
	if len(resources) != 1 || resources[0].GetResourceNames()[0] != "x" || len(paths) != 0 || err == nil {
		t.Errorf("%v %v %v", resources, paths, err)
	}
	if resources, _, err := rules.RulesFor(jane, "b"); len(resources) != 0 || err != nil {
		t.Errorf("%v %v", resources, err)
	}
	if resources, paths, _ := rules.RulesFor(&user.DefaultInfo{Groups: []string{user.SystemPrivilegedGroup}}, "b"); len(resources) != 1 || len(paths) != 1 {
		t.Errorf("%v %v", resources, paths)
	}
}

// BenchmarkAuthorize decides with a thousand bindings.
func BenchmarkAuthorize(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		name := fmt.Sprintf("r%d", i)
		text.WriteString(role("a", name, fmt.Sprintf("{verbs: [get], apiGroups: [''], resources: [configmaps], resourceNames: [n%d]}", i)))
		text.WriteString(bind("a", "Role", name, fmt.Sprintf("{kind: User, name: user%d}, {kind: Group, name: all}", i)))
	}
	rules := load(b, text.String())
	for name, a := range map[string]*authorizer.AttributesRecord{
		"one binding":    request(&user.DefaultInfo{Name: "user500", Groups: []string{"x", user.AllAuthenticated}}, "get configmaps a/n500"),
		"no binding":     request(&user.DefaultInfo{Name: "joe", Groups: []string{"x", user.AllAuthenticated}}, "get configmaps a/n500"),
		"all by a group": request(&user.DefaultInfo{Name: "joe", Groups: []string{"all", user.AllAuthenticated}}, "get configmaps a/none"),
		"system:masters": request(&user.DefaultInfo{Name: "joe", Groups: []string{user.SystemPrivilegedGroup}}, "get configmaps a/none"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Authorize(a)
			}
		})
	}
}
