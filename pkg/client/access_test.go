package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/pkg/client"
)

// guarded is a server with access control: whoever asks may do nothing but get.
func guarded(t *testing.T) *client.Client {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(path string, change func(map[string]any)) {
		mux.HandleFunc("POST /apis/"+path, func(w http.ResponseWriter, r *http.Request) {
			var review map[string]any
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			if r.URL.RawQuery != "" {
				t.Errorf("a question with %s", r.URL.RawQuery)
			}
			change(review)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			if err := json.NewEncoder(w).Encode(review); err != nil {
				t.Error(err)
			}
		})
	}
	answer("authorization.k8s.io/v1/selfsubjectaccessreviews", func(r map[string]any) {
		spec := r["spec"].(map[string]any)["resourceAttributes"].(map[string]any)
		allowed := spec["verb"] == "get" && spec["namespace"] == "team-a" && spec["name"] == "flags" && spec["resource"] == "configmaps" && (spec["subresource"] == nil || spec["subresource"] == "history")
		r["status"] = map[string]any{"allowed": allowed, "reason": "because"}
	})
	answer("authorization.k8s.io/v1/selfsubjectrulesreviews", func(r map[string]any) {
		r["status"] = map[string]any{"incomplete": true, "resourceRules": []any{
			map[string]any{"verbs": []string{"get"}, "apiGroups": []string{""}, "resources": []string{"configmaps", "pods"}, "resourceNames": []string{"flags"}},
			map[string]any{"verbs": []string{"list"}, "apiGroups": []string{"*"}, "resources": []string{"*"}},
			map[string]any{"verbs": []string{"get"}, "apiGroups": []string{""}, "resources": []string{"configmaps/history", "pods/log", "*/status"}},
			map[string]any{"verbs": []string{"watch"}, "apiGroups": []string{"apps"}, "resources": []string{"*"}},
			map[string]any{"verbs": []string{"create"}, "apiGroups": []string{""}, "resources": []string{"pods"}},
		}}
	})
	answer("authentication.k8s.io/v1/selfsubjectreviews", func(r map[string]any) {
		r["status"] = map[string]any{"userInfo": map[string]any{"username": "ann", "uid": "7", "groups": []string{"a"}}}
	})
	return connect(t, client.TargetOptions{Server: listen(t, mux)}, client.Options{FieldManager: "me", DryRun: true})
}

func TestCanI(t *testing.T) {
	c := guarded(t)
	for what, want := range map[client.Access]bool{
		{Verb: "get"}: true, {Verb: "update"}: false, {Verb: "get", Subresource: "history"}: true, {Verb: "get", Subresource: "status"}: false,
	} {
		what.Name, what.Namespace = "flags", "team-a"
		got, err := c.CanI(t.Context(), what)
		if err != nil || got.Allowed != want || got.Reason != "because" {
			t.Errorf("%v: %v, %v", what, got, err)
		}
	}
	rules, complete, err := c.AccessRules(t.Context(), "team-a")
	if want := "[{[configmaps] [get] [flags]} {[*] [list] []} {[configmaps/history */status] [get] []}]"; err != nil || complete || fmt.Sprint(rules) != want {
		t.Errorf("got %v, %v, %v", rules, complete, err)
	}
	if me, err := c.WhoAmI(t.Context()); err != nil || me.Username != "ann" || me.UID != "7" || !slices.Equal(me.Groups, []string{"a"}) {
		t.Errorf("got %v, %v", me, err)
	}
}

// A server may tell no callers apart, and say so by having no such group.
func TestAServerWithoutAccessControl(t *testing.T) {
	none := http.NewServeMux()
	none.Handle("/apis", stub(200, "application/json", `{"kind":"APIGroupList","groups":[]}`))
	none.Handle("/", stub(404, "text/plain", "404 page not found"))
	c := connect(t, client.TargetOptions{Server: listen(t, none)}, client.Options{})
	if _, err := c.CanI(t.Context(), client.Access{Verb: "get"}); !errors.Is(err, client.ErrNoAccessControl) {
		t.Errorf("can I: %v", err)
	}
	if _, _, err := c.AccessRules(t.Context(), namespace); !errors.Is(err, client.ErrNoAccessControl) {
		t.Errorf("rules: %v", err)
	}
	if _, err := c.WhoAmI(t.Context()); !errors.Is(err, client.ErrNoAccessControl) {
		t.Errorf("who am I: %v", err)
	}
}

// Only a server's own word means that it has no access control: neither a
// proxy's page, nor a refusal, nor one that has the API and answers 404.
func TestWhatIsNoWordAboutAccessControl(t *testing.T) {
	notFound := `{"kind":"Status","status":"Failure","reason":"NotFound","details":{},"code":404}`
	for name, h := range map[string]http.Handler{
		"a page":    stub(404, "text/html", "<html>"),
		"forbidden": stub(403, "application/json", `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}`),
		"404 to all": stub(404, "application/json",
			notFound),
		"a failure": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				stub(500, "text/html", "oops").ServeHTTP(w, r)
				return
			}
			stub(200, "application/json", `{"kind":"APIGroupList","groups":[]}`).ServeHTTP(w, r)
		}),
		"the group is there": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, notFound)
				return
			}
			fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"authorization.k8s.io"}]}`)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, client.TargetOptions{Server: listen(t, h)}, client.Options{})
			if _, err := c.CanI(t.Context(), client.Access{Verb: "get"}); err == nil || errors.Is(err, client.ErrNoAccessControl) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A server that can't say just now which groups it has is not one that has none of
// this kind: its own answer is the reason.
func TestAnOverloadedServerIsTheReason(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := http.StatusServiceUnavailable
		if r.Method == http.MethodPost {
			code = http.StatusNotFound
		}
		stub(code, "text/html", "<html>").ServeHTTP(w, r)
	})
	c := connect(t, client.TargetOptions{Server: listen(t, h)}, client.Options{})
	var u *client.UnexpectedError
	if _, err := c.CanI(t.Context(), client.Access{Verb: "get"}); !errors.As(err, &u) || u.Code != http.StatusServiceUnavailable {
		t.Errorf("got %v", err)
	}
}

func TestResources(t *testing.T) {
	aggregated := connect(t, client.TargetOptions{Server: listen(t, realAPI(t))}, client.Options{})
	// An older server knows the plain lists alone.
	older := connect(t, client.TargetOptions{Server: listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := map[string]string{
			"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis": `{"kind":"APIGroupList","groups":[{"name":"apps","preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
			"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","shortNames":["cm"],"namespaced":true,"kind":"ConfigMap","verbs":["get"]},
				{"name":"namespaces/status","kind":"Namespace"}]}`,
			"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get"]}]}`,
		}[r.URL.Path]
		if !ok {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}))}, client.Options{})
	for name, c := range map[string]struct {
		client *client.Client
		want   string
	}{
		"in one answer": {aggregated, "configmaps  v1 true ConfigMap [cm], namespaces  v1 false Namespace [ns], " +
			"selfsubjectreviews authentication.k8s.io authentication.k8s.io/v1 false SelfSubjectReview [], " +
			"selfsubjectaccessreviews authorization.k8s.io authorization.k8s.io/v1 false SelfSubjectAccessReview [], " +
			"selfsubjectrulesreviews authorization.k8s.io authorization.k8s.io/v1 false SelfSubjectRulesReview [], " +
			"subjectaccessreviews authorization.k8s.io authorization.k8s.io/v1 false SubjectAccessReview []"},
		"group by group": {older, "configmaps  v1 true ConfigMap [cm], deployments apps apps/v1 true Deployment []"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := c.client.Resources(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range all {
				got = append(got, fmt.Sprint(r.Name, " ", r.Group(), " ", r.APIVersion, " ", r.Namespaced, " ", r.Kind, " ", r.ShortNames))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %s", strings.Join(got, ", "))
			}
		})
	}
}
