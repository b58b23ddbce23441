package server_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server"
)

// impersonation lets boss act as jane, in some groups, and as a service account; jane
// may read, and so may the group devs.
const impersonation = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: imp}, rules: [
 {verbs: [impersonate], apiGroups: [""], resources: [users], resourceNames: [jane, "system:anonymous"]},
 {verbs: [impersonate], apiGroups: [""], resources: [groups], resourceNames: [devs, "system:unauthenticated"]},
 {verbs: [impersonate], apiGroups: [authentication.k8s.io], resources: [uids], resourceNames: ["7"]},
 {verbs: [impersonate], apiGroups: [authentication.k8s.io], resources: [userextras/scopes], resourceNames: [view]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: imp},
 roleRef: {kind: ClusterRole, name: imp}, subjects: [{kind: User, name: boss}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: robots, namespace: default}, rules: [
 {verbs: [impersonate], apiGroups: [""], resources: [serviceaccounts], resourceNames: [robot]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: robots, namespace: default},
 roleRef: {kind: Role, name: robots}, subjects: [{kind: User, name: boss}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: edit, namespace: default},
 roleRef: {kind: ClusterRole, name: edit}, subjects: [{kind: User, name: jane}, {kind: Group, name: devs}, {kind: Group, name: "system:serviceaccounts:default"}]}
`

func TestImpersonation(t *testing.T) {
	a := ruled(t, impersonation)
	const cannot = `is forbidden: User "boss" cannot impersonate resource `
	for name, test := range map[string]struct {
		who     string
		headers map[string][]string
		code    int
		message string
	}{
		"oneself":                {"boss", nil, 403, `configmaps is forbidden: User "boss" cannot list`},
		"a user":                 {"boss", map[string][]string{"Impersonate-User": {"jane"}}, 200, ""},
		"another user":           {"boss", map[string][]string{"Impersonate-User": {"joe"}}, 403, `users "joe" ` + cannot + `"users" in API group "" at the cluster scope`},
		"by who may not":         {"jane", map[string][]string{"Impersonate-User": {"jane"}}, 403, `users "jane" is forbidden: User "jane" cannot impersonate`},
		"by nobody":              {"", map[string][]string{"Impersonate-User": {"jane"}}, 403, `User "system:anonymous" cannot impersonate`},
		"by an admin":            {masters, map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Group": {"x"}}, 200, ""},
		"loses one's own groups": {masters, map[string][]string{"Impersonate-User": {"joe"}}, 403, `configmaps is forbidden: User "joe" cannot list`},
		"into the masters":       {"boss", map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Group": {"system:masters"}}, 403, `groups "system:masters" ` + cannot},
		"one group of two":       {"boss", map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Group": {"devs", "x"}}, 403, `groups "x" ` + cannot},
		"nobody":                 {"boss", map[string][]string{"Impersonate-User": {"system:anonymous"}}, 403, `User "system:anonymous" cannot list`},
		"unauthenticated":        {"boss", map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Group": {"system:unauthenticated"}}, 200, ""},
		"an account":             {"boss", map[string][]string{"Impersonate-User": {"system:serviceaccount:default:robot"}}, 200, ""},
		"an account, in groups":  {"boss", map[string][]string{"Impersonate-User": {"system:serviceaccount:default:robot"}, "Impersonate-Group": {"system:unauthenticated"}}, 403, `User "system:serviceaccount:default:robot" cannot list`},
		"another account":        {"boss", map[string][]string{"Impersonate-User": {"system:serviceaccount:x:robot"}}, 403, `serviceaccounts "robot" ` + cannot + `"serviceaccounts" in API group "" in the namespace "x"`},
		"no account":             {"boss", map[string][]string{"Impersonate-User": {"system:serviceaccount:default:"}}, 403, `users "system:serviceaccount:default:" ` + cannot},
		"a uid":                  {"boss", map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"7"}}, 200, ""},
		"another uid":            {"boss", map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"8"}}, 403, `uids.authentication.k8s.io "8" ` + cannot},
		"an extra":               {"boss", map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Extra-Scopes": {"view"}}, 200, ""},
		"another extra":          {"boss", map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Extra-A%2fb": {"view"}}, 403, `userextras.authentication.k8s.io "view" ` + cannot + `"userextras/a/b"`},
		"a group alone":          {"boss", map[string][]string{"Impersonate-Group": {"devs"}}, 400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without impersonating a user name`},
		"a uid alone":            {masters, map[string][]string{"Impersonate-Uid": {"7"}}, 400, "without impersonating a user name"},
		"an extra alone":         {masters, map[string][]string{"Impersonate-Extra-A": {"b"}}, 400, "without impersonating a user name"},
		"no name":                {masters, map[string][]string{"Impersonate-User": {""}}, 400, "without impersonating a user name"},
		"a blank name":           {masters, map[string][]string{"Impersonate-User": {" "}}, 400, "without impersonating a user name"},
		"a space after a name":   {masters, map[string][]string{"Impersonate-User": {"jane\u00a0"}}, 400, "begin or end with a space"},
		"a tab in a name":        {masters, map[string][]string{"Impersonate-User": {"ja\tne"}}, 400, "control characters"},
		"no group":               {masters, map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Group": {""}}, 400, "one of its groups is empty"},
		"no group beside one":    {masters, map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Group": {"devs", ""}}, 400, "one of its groups is empty"},
		"no uid":                 {masters, map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Uid": {""}}, 400, "header Impersonate-Uid is empty"},
		"two names":              {masters, map[string][]string{"Impersonate-User": {"jane", "admin"}}, 400, "header Impersonate-User is given 2 times"},
		"two uids":               {masters, map[string][]string{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"7", "8"}}, 400, "header Impersonate-Uid is given 2 times"},
		"a header misspelt":      {masters, map[string][]string{"Impersonate-Users": {"jane"}}, 400, "header Impersonate-Users is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest("GET", a.url+collection, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, values := range test.headers {
				req.Header[name] = values
			}
			req.Header.Set("Test-User", test.who)
			got, err := a.answer(req)
			if err != nil {
				t.Fatal(err)
			}
			if got.code != test.code || !strings.Contains(got.status.Message, test.message) {
				t.Errorf("answered %d %q", got.code, got.status.Message)
			}
		})
	}
}

// The history names whom a write was made as; the log names both.
func TestAWriteIsTheImpersonatedUsers(t *testing.T) {
	var log strings.Builder
	rules := rulesOf(t, impersonation)
	a := begin(t, func(o *server.Options) {
		o.Authenticator, o.Authorizer, o.Logger = grouped{}, rules, slog.New(slog.NewTextHandler(&log, nil))
	})
	a.must(201, "POST", collection, `{"metadata":{"name":"flags"}}`, "Test-User", "boss", "Impersonate-User", "jane")
	if got := a.must(200, "GET", flags+"/history", "", "Test-User", "jane"); !strings.Contains(got.body, `"user":"jane"`) {
		t.Errorf("the history is %s", got.body)
	}
	if !strings.Contains(log.String(), "user=jane impersonator=boss") {
		t.Errorf("the log is %s", log.String())
	}
}

// Where nobody is asked who they are, nobody can be told from anybody.
func TestImpersonationWithoutAuthentication(t *testing.T) {
	a := begin(t)
	a.must(201, "POST", collection, `{"metadata":{"name":"flags"}}`, "Impersonate-User", "jane")
	if got := a.must(200, "GET", flags+"/history", ""); strings.Contains(got.body, "jane") {
		t.Errorf("the history is %s", got.body)
	}
}
