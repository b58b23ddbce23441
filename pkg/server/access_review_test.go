package server_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"example.com/cmctl/pkg/server"
)

const reviews = "/apis/authorization.k8s.io/v1/"

func TestReviewsAnswerAsTheRulesSay(t *testing.T) {
	a := ruled(t, strings.ReplaceAll(accessRules, "{ns}", "team"))
	for name, test := range map[string]struct{ who, path, body, want string }{
		"yes": {"team-reader", "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"team"}}}`,
			`"status":{"allowed":true,"reason":"RBAC: allowed by RoleBinding \"reader/team\" of Role \"reader\" to User \"team-reader\""}`},
		"no":      {"team-reader", "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"x"}}}`, `"status":{"allowed":false}`},
		"a path":  {"team-reader", "selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/api"}}}`, `"allowed":true`},
		"no path": {"team-reader", "selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/metrics"}}}`, `"allowed":false`},
		"a name":  {"team-one", "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"team","name":"flags"}}}`, `"allowed":true`},
		"a dangling role": {"team-dangling", "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"team"}}}`,
			`"allowed":false,"reason":"rbac: RBAC: role.rbac.authorization.k8s.io \"missing\" not found"`},
		"own rules": {"team-one", "selfsubjectrulesreviews", `{"spec":{"namespace":"team"}}`,
			`{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"],"resourceNames":["flags"]}`},
		"somebody else":              {masters, "subjectaccessreviews", `{"spec":{"user":"team-reader","resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"team"}}}`, `"allowed":true`},
		"a group":                    {masters, "subjectaccessreviews", `{"spec":{"groups":["team-team"],"resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"team"}}}`, `"allowed":true`},
		"somebody else, who may not": {masters, "subjectaccessreviews", `{"spec":{"user":"joe","resourceAttributes":{"verb":"get","resource":"configmaps","namespace":"team"}}}`, `"allowed":false`},
	} {
		t.Run(name, func(t *testing.T) {
			got := a.must(201, "POST", reviews+test.path, test.body, "Test-User", test.who)
			if !strings.Contains(got.body, test.want) {
				t.Errorf("answered %s", got.body)
			}
		})
	}
}

func TestReviewsThatAreRefused(t *testing.T) {
	a := ruled(t, "")
	const one = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
	for name, test := range map[string]struct {
		who, method, path, body string
		code                    int
		message                 string
	}{
		"nothing asked":       {"joe", "POST", "selfsubjectaccessreviews", `{"spec":{}}`, 422, one},
		"two things asked":    {"joe", "POST", "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}`, 422, one},
		"a name":              {"joe", "POST", "selfsubjectaccessreviews", `{"metadata":{"name":"a"},"spec":{"resourceAttributes":{}}}`, 422, "metadata: Invalid value"},
		"another kind":        {"joe", "POST", "selfsubjectaccessreviews", `{"kind":"ConfigMap"}`, 400, "this path takes kind SelfSubjectAccessReview"},
		"another version":     {"joe", "POST", "selfsubjectaccessreviews", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1"}`, 400, "of apiVersion authorization.k8s.io/v1 only"},
		"an unknown field":    {"joe", "POST", "selfsubjectaccessreviews?fieldValidation=Strict", `{"spec":{"a":1}}`, 400, `unknown field "spec.a"`},
		"no namespace":        {"joe", "POST", "selfsubjectrulesreviews", `{"spec":{}}`, 400, "no namespace on request"},
		"another method":      {masters, "GET", "selfsubjectrulesreviews", "", 405, "does not allow this method"},
		"a review by anybody": {"joe", "POST", "subjectaccessreviews", `{}`, 403, `subjectaccessreviews.authorization.k8s.io is forbidden: User "joe" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope`},
		"about nobody":        {masters, "POST", "subjectaccessreviews", `{"spec":{"resourceAttributes":{}}}`, 422, "at least one of user or group"},
		"a named review":      {masters, "GET", "subjectaccessreviews/a", "", 404, "could not find"},
	} {
		t.Run(name, func(t *testing.T) {
			got := a.do(test.method, reviews+test.path, test.body, "Test-User", test.who)
			if got.code != test.code || !strings.Contains(got.status.Message, test.message) {
				t.Errorf("answered %d %q", got.code, got.status.Message)
			}
		})
	}
}

// As client-go asks, in protobuf too; and without rules.
func TestReviewsByClientGo(t *testing.T) {
	a := begin(t)
	for _, media := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		c, err := authorizationclient.NewForConfig(&rest.Config{Host: a.url, ContentConfig: rest.ContentConfig{ContentType: media}})
		if err != nil {
			t.Fatal(err)
		}
		question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps"}}}
		got, err := c.SelfSubjectAccessReviews().Create(t.Context(), question, metav1.CreateOptions{})
		if err != nil || !got.Status.Allowed || !strings.Contains(got.Status.Reason, "no access control") {
			t.Errorf("%s: %+v, %v", media, got, err)
		}
		rules, err := c.SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "a"}}, metav1.CreateOptions{})
		if err != nil || len(rules.Status.ResourceRules) != 1 || rules.Status.Incomplete {
			t.Errorf("%s: %+v, %v", media, rules, err)
		}
	}
}

// A continue token of another namespace, or of somebody else, shows nothing that its
// bearer may not read.
func TestAContinueTokenGivesNoRight(t *testing.T) {
	a := ruled(t, strings.ReplaceAll(accessRules, "{ns}", "team"))
	for _, namespace := range []string{"default", "team", "zoo"} {
		for _, name := range []string{"a", "b", "c"} {
			a.must(201, "POST", "/api/v1/namespaces/"+namespace+"/configmaps", `{"metadata":{"name":"`+name+`"}}`, "Test-User", masters)
		}
	}
	for _, path := range []string{"/api/v1/configmaps", collection, "/api/v1/namespaces/zoo/configmaps"} {
		page := a.must(200, "GET", path+"?limit=1", "", "Test-User", masters)
		token := page.list.Continue
		if got := a.do("GET", path+"?limit=1&continue="+token, "", "Test-User", "team-reader"); got.code != 403 {
			t.Errorf("%s: answered %d", path, got.code)
		}
		got := a.do("GET", "/api/v1/namespaces/team/configmaps?continue="+token, "", "Test-User", "team-reader")
		for _, item := range got.list.Items {
			if item.Namespace != "team" {
				t.Errorf("%s: a token leads to %s/%s", path, item.Namespace, item.Name)
			}
		}
	}
}

// What kubectl auth can-i says of each verb is what kubectl may then do.
func TestKubectlCanIAgreesWithWhatIsAllowed(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl")
	}
	// The name in the token stands for its user.
	rules := rulesOf(t, strings.ReplaceAll(accessRules, "{ns}", "team"))
	a := begin(t, func(o *server.Options) { o.Authenticator, o.Authorizer = bearer{}, rules })
	for _, name := range []string{"flags", "other"} {
		a.must(201, "POST", "/api/v1/namespaces/team/configmaps", `{"metadata":{"name":"`+name+`"}}`, "Authorization", "Bearer admin system:masters")
	}
	secure := httptest.NewTLSServer(a.server.Handler()) // else kubectl keeps its token to itself
	defer secure.Close()
	home := t.TempDir()
	run := func(who string, args ...string) (string, error) {
		config := filepath.Join(home, who)
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
			"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":{"token":%q}}]}`, secure.URL, who)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), kubectl, append([]string{"--kubeconfig", config, "--cache-dir", filepath.Join(home, "cache")}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, who := range []string{"team-one", "team-editor", "admin system:masters"} {
		for _, question := range []struct {
			ask  string // after can-i
			path string // what is then done, as method and path
			body string
		}{
			{"get configmaps/flags -n team", "GET /api/v1/namespaces/team/configmaps/flags", ""},
			{"get configmaps/other -n team", "GET /api/v1/namespaces/team/configmaps/other", ""},
			{"get configmaps/flags --subresource=history -n team", "GET /api/v1/namespaces/team/configmaps/flags/history", ""},
			{"list configmaps -n team", "GET /api/v1/namespaces/team/configmaps", ""},
			{"list configmaps -A", "GET /api/v1/configmaps", ""},
			{"list configmaps -n default", "GET /api/v1/namespaces/default/configmaps", ""},
			{"watch cm -n team", "GET /api/v1/namespaces/team/configmaps?watch=1&timeoutSeconds=1&resourceVersion=1", ""},
			{"create configmaps -n team", "POST /api/v1/namespaces/team/configmaps?dryRun=All", `{"metadata":{"name":"new"}}`},
			{"update configmaps/flags -n team", "PUT /api/v1/namespaces/team/configmaps/flags", `{}`},
			{"patch configmaps/flags -n team", "PATCH /api/v1/namespaces/team/configmaps/flags?dryRun=All", `{}`},
			{"delete configmaps/flags -n team", "DELETE /api/v1/namespaces/team/configmaps/flags?dryRun=All", ""},
			{"deletecollection configmaps -n team", "DELETE /api/v1/namespaces/team/configmaps?dryRun=All", ""},
			{"create namespaces", "POST /api/v1/namespaces?dryRun=All", `{"metadata":{"name":"new"}}`},
			{"delete namespaces/team -n team", "DELETE /api/v1/namespaces/team?dryRun=All", ""},
			{"get namespaces/team -n team", "GET /api/v1/namespaces/team", ""},
			{"list namespaces", "GET /api/v1/namespaces", ""},
			{"get /api", "GET /api", ""},
			{"get /healthz/ping", "GET /healthz/ping", ""},
			{"create subjectaccessreviews.authorization.k8s.io", "POST " + reviews + "subjectaccessreviews", `{}`},
		} {
			said, err := run(who, append([]string{"auth", "can-i"}, strings.Fields(question.ask)...)...)
			lines := strings.Fields(strings.ReplaceAll(said, "Warning: resource", ""))
			yes := err == nil
			if len(lines) == 0 || (lines[len(lines)-1] == "yes") != yes {
				t.Errorf("%s: can-i %s says %q, %v", who, question.ask, said, err)
			}
			method, path, _ := strings.Cut(question.path, " ")
			headers := []string{"Authorization", "Bearer " + who}
			if method == "PATCH" {
				headers = append(headers, "Content-Type", "application/merge-patch+json")
			}
			if got := a.do(method, path, question.body, headers...); (got.code != 403) != yes {
				t.Errorf("%s: can-i %s says %v, and %s is answered %d %s", who, question.ask, yes, question.path, got.code, got.status.Message)
			}
		}
	}
	for who, want := range map[string]string{"team-one": "flags", "team-reader": "selfsubjectaccessreviews.authorization.k8s.io", "admin system:masters": "*.*"} {
		if said, err := run(who, "auth", "can-i", "--list", "-n", "team"); err != nil || !strings.Contains(said, want) {
			t.Errorf("%s: can-i --list says %s, %v", who, said, err)
		}
	}
	if said, err := run("admin system:masters", "auth", "can-i", "list", "cm", "-n", "team", "--as", "team-one"); err == nil || !strings.HasPrefix(said, "no") {
		t.Errorf("as another: %q, %v", said, err)
	}
	if said, err := run("team-boss", "get", "cm", "-n", "team", "-o", "name", "--as", "team-reader"); err != nil || !strings.Contains(said, "configmap/flags") {
		t.Errorf("as another: %q, %v", said, err)
	}
}
