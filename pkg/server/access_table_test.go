package server_test

import (
	"bufio"

	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/authz"
)

// accessRules are those of the tables below. {ns} is the namespace of the tests.
const accessRules = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{ns}-impersonator"}
rules:
- {verbs: [impersonate], apiGroups: [""], resources: [users], resourceNames: ["{ns}-reader", "{ns}-nobody"]}
- {verbs: [impersonate], apiGroups: [""], resources: [groups], resourceNames: ["{ns}-team"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: "{ns}"}
rules: [{verbs: [get, list, watch], apiGroups: [""], resources: [configmaps]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lister, namespace: "{ns}"}
rules: [{verbs: [list], apiGroups: [""], resources: [configmaps]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one, namespace: "{ns}"}
rules: [{verbs: ["*"], apiGroups: [""], resources: [configmaps], resourceNames: [flags]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: patcher, namespace: "{ns}"}
rules: [{verbs: [patch], apiGroups: [""], resources: [configmaps]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deleter, namespace: "{ns}"}
rules: [{verbs: [delete], apiGroups: [""], resources: [configmaps]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: sub, namespace: "{ns}"}
rules: [{verbs: [get], apiGroups: [""], resources: ["*/history"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{ns}-creator"}
rules: [{verbs: [create], apiGroups: [""], resources: [configmaps]}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reader, namespace: "{ns}"},
 roleRef: {kind: Role, name: reader, apiGroup: rbac.authorization.k8s.io},
 subjects: [{kind: User, name: "{ns}-reader"}, {kind: Group, name: "{ns}-team"}, {kind: ServiceAccount, name: robot}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: lister, namespace: "{ns}"},
 roleRef: {kind: Role, name: lister, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-lister"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: one, namespace: "{ns}"},
 roleRef: {kind: Role, name: one, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-one"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: patcher, namespace: "{ns}"},
 roleRef: {kind: Role, name: patcher, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-patcher"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: deleter, namespace: "{ns}"},
 roleRef: {kind: Role, name: deleter, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-deleter"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: sub, namespace: "{ns}"},
 roleRef: {kind: Role, name: sub, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-sub"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: dangling, namespace: "{ns}"},
 roleRef: {kind: Role, name: missing, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-dangling"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "{ns}-creator"},
 roleRef: {kind: ClusterRole, name: "{ns}-creator", apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-creator"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "{ns}-impersonator"},
 roleRef: {kind: ClusterRole, name: "{ns}-impersonator", apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-boss"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: editor, namespace: "{ns}"},
 roleRef: {kind: ClusterRole, name: edit, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: "{ns}-editor"}]}
`

// accessNamespace is the namespace of the tables.
const accessNamespace = "cmctl-access"

// attempt is one request, and whether it is let through.
type attempt struct {
	who, method, path string
	body              string // JSON, or YAML to apply
	allowed           bool
	code              int    // of the answer; 0: 403 if it is not allowed, else anything but that and 401
	ours              bool   // kube-apiserver answers otherwise: it lacks the path, or the controller that fills its role edit
	headers           string // name: value
}

// attempts are who tries what, and every way around that we know of. In paths {c} is
// the collection in the namespace of the tests, and {o} that of another.
var attempts = []attempt{
	// one identity a verb
	{who: "nobody", method: "GET", path: "{c}/flags"},
	{who: "nobody", method: "GET", path: "{c}/missing"},
	{who: "nobody", method: "GET", path: "{c}"},
	{who: "nobody", method: "POST", path: "{c}", body: `{"metadata":{"name":"new"}}`},
	{who: "nobody", method: "PUT", path: "{c}/flags", body: `{}`},
	{who: "nobody", method: "PATCH", path: "{c}/flags", body: `{}`},
	{who: "nobody", method: "DELETE", path: "{c}/flags"},
	{who: "nobody", method: "DELETE", path: "{c}/missing"},
	{who: "nobody", method: "DELETE", path: "{c}"},
	{who: "reader", method: "GET", path: "{c}/flags", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "{c}/missing", allowed: true, code: 404},
	{who: "reader", method: "GET", path: "{c}", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "{o}"},
	{who: "reader", method: "GET", path: "{o}/flags"},
	{who: "reader", method: "GET", path: "/api/v1/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/configmaps?fieldSelector=metadata.namespace%3D" + accessNamespace},
	{who: "reader", method: "PUT", path: "{c}/flags", body: `{}`},
	{who: "reader", method: "PATCH", path: "{c}/flags", body: `{}`},
	{who: "reader", method: "POST", path: "{c}", body: `{}`},
	{who: "dangling", method: "GET", path: "{c}"},
	{who: "editor", method: "POST", path: "{c}", body: `{"metadata":{"name":"a"}}`, allowed: true, code: 201, ours: true},
	{who: "editor", method: "DELETE", path: "{c}/a", allowed: true, code: 200, ours: true},
	{who: "editor", method: "GET", path: "/api/v1/namespaces/" + accessNamespace, allowed: true, code: 200, ours: true},
	{who: "editor", method: "GET", path: "/api/v1/namespaces"},
	{who: "editor", method: "DELETE", path: "/api/v1/namespaces/" + accessNamespace},
	{who: "editor", method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"b"}}`},
	{who: "editor", method: "PUT", path: "/api/v1/namespaces/" + accessNamespace + "/finalize", body: `{}`},
	{who: "editor", method: "POST", path: "{o}", body: `{"metadata":{"name":"a"}}`},

	// a watch is no list, and no read
	{who: "lister", method: "GET", path: "{c}", allowed: true, code: 200},
	{who: "lister", method: "GET", path: "{c}?watch=true"},
	{who: "lister", method: "GET", path: "{c}?watch=1"},
	{who: "lister", method: "GET", path: "{c}?watch"},
	{who: "lister", method: "GET", path: "{c}?watch=&timeoutSeconds=1"},
	{who: "lister", method: "GET", path: "{c}?watch=nonsense"},
	{who: "lister", method: "GET", path: "{c}?watch=false", allowed: true, code: 200},
	{who: "lister", method: "GET", path: "{c}?watch=false&watch=true&timeoutSeconds=1", allowed: true, code: 200},
	{who: "lister", method: "GET", path: "{c}?watch=true&watch=false"},
	{who: "lister", method: "GET", path: "{c}?%77atch=true"},
	{who: "lister", method: "GET", path: "{c}?Watch=true", allowed: true, code: 200},
	{who: "lister", method: "GET", path: "{c}?watch=true&limit=x"},
	{who: "lister", method: "GET", path: "/api/v1/watch/namespaces/" + accessNamespace + "/configmaps"},
	{who: "lister", method: "GET", path: "/api/v1/watch/namespaces/" + accessNamespace + "/configmaps?watch=false"},
	{who: "lister", method: "GET", path: "{c}/flags"},
	{who: "lister", method: "HEAD", path: "{c}/flags"},
	{who: "lister", method: "OPTIONS", path: "{c}"},
	{who: "lister", method: "OPTIONS", path: "{c}/flags"},
	{who: "reader", method: "OPTIONS", path: "{c}/flags"},
	{who: "reader", method: "TRACE", path: "{c}/flags"},
	{who: "reader", method: "get", path: "{c}/flags"},
	{who: "nobody", method: "HEAD", path: "{c}/flags"},
	{who: "nobody", method: "HEAD", path: "{c}"},

	// one name
	{who: "one", method: "GET", path: "{c}/flags", allowed: true, code: 200},
	{who: "one", method: "GET", path: "{c}/other"},
	{who: "one", method: "GET", path: "{c}"},
	{who: "one", method: "GET", path: "{c}?fieldSelector=metadata.name%3Dflags", allowed: true, code: 200},
	{who: "one", method: "GET", path: "{c}?fieldSelector=metadata.name%3Dother"},
	{who: "one", method: "GET", path: "{c}?fieldSelector=metadata.name!%3Dother"},
	{who: "one", method: "GET", path: "{c}?fieldSelector=metadata.name%3Dflags,metadata.name%3Dother", allowed: true, code: 200},
	{who: "one", method: "GET", path: "{c}?fieldSelector=metadata.name%3Dflags&fieldSelector=", allowed: true, code: 200},
	{who: "one", method: "GET", path: "{c}?fieldSelector=&fieldSelector=metadata.name%3Dflags"},
	{who: "one", method: "GET", path: "{c}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dflags", allowed: true, code: 200},
	{who: "one", method: "GET", path: "/api/v1/configmaps?fieldSelector=metadata.name%3Dflags"},
	{who: "one", method: "POST", path: "{c}", body: `{"metadata":{"name":"flags"}}`},
	{who: "one", method: "DELETE", path: "{c}"},
	{who: "one", method: "DELETE", path: "{c}?fieldSelector=metadata.name%3Dflags"},
	{who: "one", method: "PATCH", path: "{c}/flags", body: `{"data":{"a":"b"}}`, allowed: true, code: 200},
	{who: "one", method: "PATCH", path: "{c}/flags", body: `{"metadata":{"name":"other"}}`, allowed: true, code: 400},
	{who: "one", method: "PATCH", path: "{c}/flags", body: `{"metadata":{"namespace":"default"}}`, allowed: true, code: 400},
	{who: "one", method: "GET", path: "{c}/flags/history"},
	{who: "one", method: "GET", path: "{c}/flags%2f", allowed: true, code: 200},
	{who: "one", method: "GET", path: "{c}/%66lags", allowed: true, code: 200},
	{who: "one", method: "GET", path: "{c}/Flags"},

	// a patch is no update, and makes nothing
	{who: "patcher", method: "PATCH", path: "{c}/flags", body: `{"data":{"a":"c"}}`, allowed: true, code: 200},
	{who: "patcher", method: "PUT", path: "{c}/flags", body: `{"metadata":{"name":"flags"}}`},
	{who: "patcher", method: "PATCH", path: "{c}/missing", body: `{"data":{"a":"c"}}`, allowed: true, code: 404},
	{who: "patcher", method: "PATCH", path: "{c}/missing?fieldManager=x", body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: missing}\n"},
	{who: "patcher", method: "PATCH", path: "{c}/missing?fieldManager=x&dryRun=All", body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: missing}\n"},
	{who: "one", method: "DELETE", path: "{c}/flags", allowed: true, code: 200},
	{who: "one", method: "PATCH", path: "{c}/flags?fieldManager=x", body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flags}\n", allowed: true, code: 201},

	// one deletion is not many
	{who: "deleter", method: "DELETE", path: "{c}"},
	{who: "deleter", method: "DELETE", path: "{c}/"},
	{who: "deleter", method: "DELETE", path: "{c}/%20", allowed: true, code: 404},
	{who: "deleter", method: "DELETE", path: "{c}?labelSelector=a%3Db"},
	{who: "deleter", method: "DELETE", path: "{c}/missing", allowed: true, code: 404, body: `{"kind":"DeleteOptions","apiVersion":"v1"}`},

	// a namespace that is not there
	{who: "creator", method: "POST", path: "/api/v1/namespaces/cmctl-access-none/configmaps", body: `{"metadata":{"name":"a"}}`, allowed: true, code: 404},
	{who: "creator", method: "POST", path: "{c}", body: `{"metadata":{"name":"made"}}`, allowed: true, code: 201},
	{who: "creator", method: "POST", path: "{c}", body: `{"metadata":{"name":"a","namespace":"default"}}`, allowed: true, code: 400},
	{who: "creator", method: "GET", path: "{c}/made"},

	// subresources
	{who: "reader", method: "GET", path: "{c}/flags/history"},
	{who: "reader", method: "GET", path: "{c}/flags/status"},
	{who: "reader", method: "GET", path: "{c}/flags%2Fhistory"},
	{who: "reader", method: "GET", path: "{c}/flags/history/"},
	{who: "sub", method: "GET", path: "{c}/flags/history", allowed: true, code: 200, ours: true},
	{who: "sub", method: "GET", path: "{c}/flags"},
	{who: "sub", method: "GET", path: "{c}/flags/history/x", allowed: true, code: 404},
	{who: "sub", method: "POST", path: "{c}/flags/history"},

	// paths
	{who: "reader", method: "GET", path: "{c}/", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + "/configmaps/../secrets"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + "/%2e%2e/default/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + "%2f..%2fdefault/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + "/configmaps/%2e%2e/%2e%2e/default/configmaps/flags"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces//configmaps"},
	{who: "reader", method: "GET", path: "//api/v1/namespaces/default/configmaps", ours: true},
	{who: "reader", method: "GET", path: "/api//v1/namespaces/default/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1//configmaps"},
	{who: "reader", method: "GET", path: "/API/v1/namespaces/default/configmaps"},
	{who: "reader", method: "GET", path: "/api/V1/namespaces/default/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/Namespaces/" + accessNamespace + "/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + "/ConfigMaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + strings.ToUpper(accessNamespace) + "/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + "%00/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + ";x/configmaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/default/configmaps?namespace=" + accessNamespace},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/default%2Fconfigmaps%2Fflags"},
	{who: "reader", method: "GET", path: "/api%2fv1%2fnamespaces%2fdefault%2fconfigmaps"},
	{who: "reader", method: "GET", path: "/api/v1/namespaces/" + accessNamespace + "/secrets"},
	{who: "reader", method: "GET", path: "/api/v1/secrets"},
	{who: "reader", method: "GET", path: "/apis/apps/v1/namespaces/" + accessNamespace + "/deployments"},
	{who: "reader", method: "GET", path: "/apis/apps/v1/namespaces/" + accessNamespace + "/configmaps"},
	{who: "reader", method: "GET", path: "/nowhere"},
	{who: "reader", method: "POST", path: "/version"},
	{who: "reader", method: "GET", path: "/metrics"},
	{who: "reader", method: "GET", path: "/healthz/ping"},

	// discovery
	{who: "reader", method: "GET", path: "/api", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "/api/v1", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "/apis", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "/apis/authorization.k8s.io/v1", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "/openapi/v3", allowed: true, code: 200},
	{who: "reader", method: "GET", path: "/version", allowed: true, code: 200},
	{who: "anonymous", method: "GET", path: "/version", allowed: true, code: 200},
	{who: "anonymous", method: "GET", path: "/readyz", allowed: true},
	{who: "anonymous", method: "GET", path: "/readyz/ping"},
	{who: "anonymous", method: "GET", path: "/api"},
	{who: "anonymous", method: "GET", path: "/apis"},
	{who: "anonymous", method: "GET", path: "/openapi/v2"},
	{who: "anonymous", method: "GET", path: "{c}"},
	{who: "anonymous", method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body: `{}`},
	{who: "reader", method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", body: `{}`},

	// headers of proxies
	{who: "anonymous", method: "GET", path: "{c}", headers: "X-Remote-User: admin"},
	{who: "anonymous", method: "GET", path: "{c}", headers: "X-Remote-Group: system:masters"},
	{who: "anonymous", method: "GET", path: "{c}", headers: "X-Forwarded-User: admin"},
	{who: "nobody", method: "GET", path: "{c}", headers: "X-Forwarded-For: 127.0.0.1"},
	{who: "nobody", method: "GET", path: "{c}", headers: "X-Original-URL: /version"},
	{who: "nobody", method: "GET", path: "{c}", headers: "X-Rewrite-URL: /version"},
	{who: "lister", method: "GET", path: "{c}/flags", headers: "X-HTTP-Method-Override: LIST"},
	{who: "patcher", method: "PATCH", path: "{c}/flags", body: `{}`, headers: "X-HTTP-Method-Override: DELETE", allowed: true, code: 200},
}

// expand fills in where the tables are.
func (a attempt) expand() attempt {
	a.path = strings.NewReplacer("{c}", "/api/v1/namespaces/"+accessNamespace+"/configmaps", "{o}", "/api/v1/namespaces/default/configmaps").Replace(a.path)
	return a
}

// target is a server that attempts are made on: ours, or kube-apiserver.
type target struct {
	t      testing.TB
	url    string
	client *http.Client
	as     func(http.Header, string) // says who sends a request
}

// send makes an attempt with the path exactly as it is written.
func (s target) send(a attempt) (int, metav1.Status) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), a.method, s.url, strings.NewReader(a.body))
	if err != nil {
		s.t.Fatal(err)
	}
	path, query, _ := strings.Cut(a.path, "?")
	req.URL.Opaque = "//" + req.URL.Host + path
	req.URL.RawQuery = query
	switch {
	case a.method == "PATCH" && strings.HasPrefix(a.body, "apiVersion"):
		req.Header.Set("Content-Type", "application/apply-patch+yaml")
	case a.method == "PATCH":
		req.Header.Set("Content-Type", "application/merge-patch+json")
	case a.body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	if name, value, ok := strings.Cut(a.headers, ": "); ok {
		req.Header.Set(name, value)
	}
	s.as(req.Header, a.who)
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	defer resp.Body.Close()
	var status metav1.Status
	_ = json.NewDecoder(resp.Body).Decode(&status) // what is no Status has no message
	return resp.StatusCode, status
}

// rulesOf loads manifests.
func rulesOf(t testing.TB, manifests string) *authz.Rules {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := authz.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// ruled is our server under rules. Who sends a request is in a header, of groups as
// authentication adds them.
func ruled(t testing.TB, manifests string) *api {
	t.Helper()
	rules := rulesOf(t, manifests)
	return begin(t, func(o *server.Options) { o.Authenticator, o.Authorizer = grouped{}, rules })
}

// grouped takes a user's name and groups from headers, as "name group group".
type grouped struct{}

func (grouped) Authenticate(r *http.Request) (user.Info, error) {
	all := strings.Fields(r.Header.Get("Test-User"))
	if len(all) == 0 {
		return nil, nil
	}
	return &user.DefaultInfo{Name: all[0], Groups: append(all[1:], user.AllAuthenticated)}, nil
}

// bearer takes them from a token.
type bearer struct{}

func (bearer) Authenticate(r *http.Request) (user.Info, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	named := &http.Request{Header: http.Header{"Test-User": {token}}}
	return grouped{}.Authenticate(named)
}

const masters = "admin system:masters"

// accessTarget is our server with what the tables need.
func accessTarget(t testing.TB) (target, *api) {
	t.Helper()
	a := ruled(t, strings.ReplaceAll(accessRules, "{ns}", accessNamespace))
	a.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"`+accessNamespace+`"}}`, "Test-User", masters)
	for _, name := range []string{"flags", "other"} {
		a.must(201, "POST", "/api/v1/namespaces/"+accessNamespace+"/configmaps", `{"metadata":{"name":"`+name+`"}}`, "Test-User", masters)
	}
	return target{t, a.url, a.client, func(h http.Header, who string) {
		if who != "anonymous" {
			h.Set("Test-User", accessNamespace+"-"+who)
		}
	}}, a
}

func TestEveryWayIn(t *testing.T) {
	server, _ := accessTarget(t)
	for _, a := range attempts {
		a = a.expand()
		code, status := server.send(a)
		name := fmt.Sprintf("%s: %s %s %s", a.who, a.method, a.path, a.headers)
		switch want := a.code; {
		case !a.allowed && code != http.StatusForbidden:
			t.Errorf("%s: answered %d %q", name, code, status.Message)
		case a.allowed && (code == http.StatusForbidden || code == http.StatusUnauthorized):
			t.Errorf("%s: refused %q", name, status.Message)
		case want != 0 && code != want:
			t.Errorf("%s: answered %d %q, want %d", name, code, status.Message, want)
		}
	}
}

// A refusal says the same of what is there and of what is not.
func TestARefusalDoesNotTellWhatExists(t *testing.T) {
	server, _ := accessTarget(t)
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE"} {
		_, there := server.send(attempt{who: "nobody", method: method, path: "{c}/flags", body: "{}"}.expand())
		_, missing := server.send(attempt{who: "nobody", method: method, path: "{c}/elags", body: "{}"}.expand())
		if there.Message != strings.ReplaceAll(missing.Message, "elags", "flags") {
			t.Errorf("%s: %q and %q", method, there.Message, missing.Message)
		}
	}
}

// The same table on a real kube-apiserver, with the same rules: the same codes and
// the same words.
func TestEveryWayInIsAsOnKubeAPIServer(t *testing.T) {
	path := os.Getenv("CMCTL_E2E_KUBECONFIG")
	if path == "" {
		t.Log("NOT TRIED: CMCTL_E2E_KUBECONFIG names no kube-apiserver")
		return
	}
	ours, _ := accessTarget(t)
	real := kubeTarget(t, path)
	for _, a := range attempts {
		a = a.expand()
		if a.ours {
			continue
		}
		wantCode, want := real.send(a)
		code, got := ours.send(a)
		if wantCode != http.StatusForbidden && a.allowed {
			want.Message, got.Message = "", "" // other refusals have tests of their own
		}
		if code != wantCode || got.Message != want.Message || (got.Message != "" && got.Reason != want.Reason) {
			t.Errorf("%s: %s %s\nours %d %s %q\nreal %d %s %q", a.who, a.method, a.path, code, got.Reason, got.Message, wantCode, want.Reason, want.Message)
		}
	}
}

// kubeTarget prepares a kube-apiserver for the tables, and says who sends a request
// by impersonation.
func kubeTarget(t *testing.T, kubeconfig string) target {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"} // which sends paths as they are
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	root := target{t, config.Host, client, func(http.Header, string) {}}
	apply := func(path, manifest string) {
		if code, status := root.send(attempt{method: "PATCH", path: path + "?fieldManager=test&force=true", body: manifest}); code > 201 {
			t.Fatalf("%s: %d %s", path, code, status.Message)
		}
	}
	named := func(kind, version, name string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", version, kind, name)
	}
	namespace := "/api/v1/namespaces/" + accessNamespace
	apply(namespace, named("Namespace", "v1", accessNamespace))
	for _, name := range []string{"flags", "other"} {
		apply(namespace+"/configmaps/"+name, named("ConfigMap", "v1", name))
	}
	var made []string
	for _, manifest := range strings.Split(strings.ReplaceAll(accessRules, "{ns}", accessNamespace), "---") {
		path, text := rbacPath(t, manifest)
		apply(path, text)
		made = append(made, path)
	}
	t.Cleanup(func() {
		root.t = t
		for _, path := range append(made, namespace+"/configmaps/flags", namespace+"/configmaps/other", namespace+"/configmaps/made") {
			req, _ := http.NewRequest(http.MethodDelete, config.Host+path, nil)
			if resp, err := client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		client.CloseIdleConnections()
	})
	as := func(h http.Header, who string) {
		name := accessNamespace + "-" + who
		if who == "anonymous" {
			name = user.Anonymous
		}
		h.Set("Impersonate-User", name)
	}
	s := target{t, config.Host, client, as}
	for range 50 { // its rules come into force a moment later
		if code, _ := s.send(attempt{who: "deleter", method: "DELETE", path: namespace + "/configmaps/missing"}); code == http.StatusNotFound {
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the rules do not come into force")
	return s
}

// Two paths may not hide in one request: what follows the first is another request,
// and judged as such.
func TestSmuggledRequests(t *testing.T) {
	_, a := accessTarget(t)
	u, err := url.Parse(a.url)
	if err != nil {
		t.Fatal(err)
	}
	flags := "/api/v1/namespaces/" + accessNamespace + "/configmaps/flags"
	for name, raw := range map[string]string{
		"two lengths":            "POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\nGET " + flags + " HTTP/1.1\r\n\r\n",
		"a length and chunks":    "POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET " + flags + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"an encoding misspelt":   "POST /version HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"a space before a colon": "GET " + flags + " HTTP/1.1\r\nHost: x\r\nTest-User : admin\r\n\r\n",
		"a header in a header":   "GET " + flags + " HTTP/1.1\r\nHost: x\r\nX-A: b\rTest-User: admin system:masters\r\n\r\n",
		"a folded header":        "GET " + flags + " HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Test-User: admin system:masters\r\n\r\n",
		"a URL of another host":  "GET http://elsewhere" + flags + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"no path":                "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"a tunnel":               "CONNECT " + flags + " HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			if _, err := conn.Write([]byte(raw)); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			for in := bufio.NewReader(conn); ; {
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					return // no more answers
				}
				if resp.StatusCode < 400 && !strings.HasPrefix(raw, "OPTIONS *") {
					t.Errorf("answered %s", resp.Status)
				}
				_ = resp.Body.Close()
			}
		})
	}
}

// rbacPath is where a manifest is applied, and the manifest with all that
// kube-apiserver wants of who applies.
func rbacPath(t *testing.T, manifest string) (path, text string) {
	t.Helper()
	var o metav1.PartialObjectMetadata
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	path = "/apis/rbac.authorization.k8s.io/v1/"
	if o.Namespace != "" {
		path += "namespaces/" + o.Namespace + "/"
	}
	asJSON, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}

	asYAML, err := yaml.JSONToYAML(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	return path + strings.ToLower(o.Kind) + "s/" + o.Name, string(asYAML)
}
