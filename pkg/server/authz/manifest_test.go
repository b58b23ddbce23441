package authz_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/authz"
)

func TestManifestsThatAreRefused(t *testing.T) {
	const ok = "rules: [{verbs: [get], apiGroups: [''], resources: [configmaps]}]\n"
	binding := func(rest string) string {
		return head + "kind: RoleBinding\nmetadata: {name: b, namespace: a}\n" + rest
	}
	for name, test := range map[string]struct{ text, message string }{
		"no YAML":                    {"a: [", "document 1: it is no YAML"},
		"a text":                     {"hello", "cannot unmarshal"},
		"no kind":                    {"metadata: {name: a}", `apiVersion "" is not`},
		"another kind":               {head + "kind: Secret", "(Secret): the kinds that are read are Role, ClusterRole"},
		"another group":              {"apiVersion: v1\nkind: ConfigMap", `(ConfigMap): apiVersion "v1" is not rbac.authorization.k8s.io/v1`},
		"an older version":           {"apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: Role", "v1beta1"},
		"an unknown field":           {head + "kind: Role\nmetadata: {name: r, namespace: a}\nrule: []\n" + ok, `(Role a/r): unknown field "rule"`},
		"a field in another case":    {head + "kind: Role\nmetadata: {name: r, namespace: a}\nrules: [{Verbs: [get], verbs: [get], apiGroups: [''], resources: [x]}]", `unknown field "rules[0].Verbs"`},
		"a key twice":                {head + "kind: Role\nmetadata: {name: r, namespace: a}\nmetadata: {name: r, namespace: b}\n" + ok, "metadata"},
		"a wrong type":               {head + "kind: Role\nmetadata: {name: r, namespace: a}\nrules: {}", "cannot unmarshal"},
		"the second of two":          {head + "kind: ClusterRole\nmetadata: {name: r}\n" + ok + "--- # next\n" + head + "kind: Role\nmetadata: {name: r}", "document 2 (Role r): metadata.namespace: Required value"},
		"no name":                    {head + "kind: ClusterRole\nmetadata: {}", "metadata.name: Required value"},
		"a bad name":                 {head + "kind: ClusterRole\nmetadata: {name: a/b}", "may not contain '/'"},
		"a cluster role's namespace": {head + "kind: ClusterRole\nmetadata: {name: r, namespace: a}", "metadata.namespace: Forbidden"},
		"no verbs":                   {head + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [x]}]", "rules[0].verbs: Required"},
		"no groups":                  {head + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{verbs: [get], resources: [x]}]", "rules[0].apiGroups: Required"},
		"no resources":               {head + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{verbs: [get], apiGroups: ['']}]", "rules[0].resources: Required"},
		"paths in a role":            {head + "kind: Role\nmetadata: {name: r, namespace: a}\nrules: [{verbs: [get], nonResourceURLs: [/x]}]", "namespaced rules cannot apply to non-resource URLs"},
		"paths and resources":        {head + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{verbs: [get], nonResourceURLs: [/x], resources: [x]}]", "both regular resources and non-resource URLs"},
		"nothing to gather":          {head + "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {}", "at least one clusterRoleSelector"},
		"a bad selector":             {head + "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b c}}]}", "clusterRoleSelectors[0]"},
		"another role's kind":        {binding("roleRef: {kind: Group, name: r}"), `roleRef.kind: Unsupported value: "Group"`},
		"a role for everywhere":      {head + "kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {kind: Role, name: r}", "roleRef.kind"},
		"another role's group":       {binding("roleRef: {kind: Role, name: r, apiGroup: v1}"), "roleRef.apiGroup"},
		"no role":                    {binding("subjects: []"), "roleRef.name: Required"},
		"no subject's kind":          {binding("roleRef: {kind: Role, name: r}\nsubjects: [{name: x}]"), `subjects[0].kind: Unsupported value: ""`},
		"another subject's kind":     {binding("roleRef: {kind: Role, name: r}\nsubjects: [{kind: Team, name: x}]"), "subjects[0].kind"},
		"a user's group":             {binding("roleRef: {kind: Role, name: r}\nsubjects: [{kind: User, name: x, apiGroup: apps}]"), "subjects[0].apiGroup"},
		"an account's group":         {binding("roleRef: {kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: x, apiGroup: rbac.authorization.k8s.io}]"), "subjects[0].apiGroup"},
		"no subject's name":          {binding("roleRef: {kind: Role, name: r}\nsubjects: [{kind: User}]"), "subjects[0].name: Required"},
		"an account of nowhere":      {head + "kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {kind: ClusterRole, name: r}\nsubjects: [{kind: ServiceAccount, name: x}]", "subjects[0].namespace: Required"},
		"a built-in role":            {head + "kind: ClusterRole\nmetadata: {name: view}\n" + ok, "view is built in"},
		"a built-in binding":         {head + "kind: ClusterRoleBinding\nmetadata: {name: 'system:discovery'}\nroleRef: {kind: ClusterRole, name: r}", "is built in"},
		"one name twice":             {head + "kind: ClusterRole\nmetadata: {name: r}\n" + ok + "---\n" + head + "kind: ClusterRole\nmetadata: {name: r}\n" + ok, "document 2 (ClusterRole r): it is also in"},
		"in a list":                  {"apiVersion: v1\nkind: List\nitems:\n- {kind: Pod, apiVersion: v1}", "document 1, items[0] (Pod)"},
		"a list of another name":     {"apiVersion: v1\nkind: List\nentries: []\nitems: []", `unknown field "entries"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := authz.Load(folder(t, map[string]string{"rules.yaml": test.text}))
			if err == nil || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "rules.yaml") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestEveryProblemIsToldAtOnce(t *testing.T) {
	_, err := authz.Load(folder(t, map[string]string{"a.yaml": "a: [", "b.json": "{", "c.yml": head + "kind: X"}))
	for _, name := range []string{"a.yaml", "b.json", "c.yml"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("it says %v", err)
		}
	}
	if _, err := authz.Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing folder is no matter")
	}
}

func TestFormsOfManifests(t *testing.T) {
	const asJSON = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"NAME"},"rules":null}`
	const bad = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"b"},"roleRef":{"kind":"ClusterRole","name":"NAME"},"subjects":[{"kind":"User","name":"u"}]}`
	named := func(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }
	dir := folder(t, map[string]string{
		"one.json":   named(asJSON, "one") + "\n" + named(asJSON, "two"),
		"three.yaml": "# a comment\n---\n---\n" + head + "kind: List\n",
		".hidden":    "a: [", "notes.txt": "a: [",
	})
	if _, err := authz.Load(dir); err == nil {
		t.Error("a List of another group is taken")
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("three.yaml", "# a comment\n---\n---\napiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- "+named(asJSON, "three")+"\n- "+named(bad, "four")+"\n")
	if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	rules, err := authz.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(rules.Warnings, "\n")
	for _, want := range []string{"notes.txt is not read", "more is a folder", "ClusterRoleBinding b gives nothing: there is no ClusterRole four"} {
		if !strings.Contains(told, want) {
			t.Errorf("it does not say %q:\n%s", want, told)
		}
	}
	if len(rules.Warnings) != 3 {
		t.Errorf("warnings:\n%s", told)
	}
	if err := os.Chmod(filepath.Join(dir, "one.json"), 0o666); err != nil {
		t.Fatal(err)
	}
	if rules, _ := authz.Load(dir); !strings.Contains(strings.Join(rules.Warnings, "\n"), "can be written by everybody") {
		t.Errorf("warnings: %q", rules.Warnings)
	}
}

// FuzzLoad reads whatever a file may hold.
func FuzzLoad(f *testing.F) {
	f.Add(head + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{verbs: [get], apiGroups: [''], resources: [x]}]\n---\n")
	f.Add("apiVersion: v1\nkind: List\nitems: [{kind: List, apiVersion: v1, items: [null]}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := authz.Load(folder(t, map[string]string{"a.yaml": text, "b.json": text}))
		if (rules == nil) == (err == nil) {
			t.Errorf("%v and %v", rules, err)
		}
	})
}
