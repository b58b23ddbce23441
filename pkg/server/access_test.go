package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/server"
)

// byHeader takes the user's name from a header.
type byHeader struct{}

func (byHeader) Authenticate(r *http.Request) (user.Info, error) {
	switch name := r.Header.Get("Test-User"); name {
	case "":
		return nil, nil
	case "impostor":
		return nil, errors.New("a reason for the log")
	default:
		return &user.DefaultInfo{Name: name, UID: "u-1", Groups: []string{"devs"}, Extra: map[string][]string{"team": {"a"}}}, nil
	}
}

// judge notes what it is asked, and allows it to everyone but joe.
type judge struct{ asked []string }

func (j *judge) Authorize(a authorizer.Attributes) (bool, string) {
	j.asked = append(j.asked, fmt.Sprintf("%s %s %s|%s|%s|%s", a.GetUser().GetName(), a.GetVerb(),
		a.GetNamespace(), a.GetResource(), a.GetSubresource(), a.GetName()))
	return a.GetUser().GetName() != "joe", ""
}

func (*judge) RulesFor(user.Info, string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, error) {
	return nil, nil, nil
}

func access(j *judge) option {
	return func(o *server.Options) { o.Authenticator, o.Authorizer = byHeader{}, j }
}

// What is judged is what the request does, in Kubernetes' terms.
func TestWhatIsJudged(t *testing.T) {
	for _, test := range []struct{ method, path, want string }{
		{"GET", collection, "list default|configmaps||"},
		{"GET", collection + "?watch=1", "watch default|configmaps||"},
		{"GET", collection + "?watch=0", "list default|configmaps||"},
		{"GET", collection + "?fieldSelector=metadata.name%3Dflags", "list default|configmaps||flags"},
		{"GET", collection + "?watch=true&fieldSelector=metadata.name%3Dflags", "watch default|configmaps||flags"},
		{"GET", collection + "?watch=nonsense&limit=x", "watch default|configmaps||"},
		{"GET", collection + "?watch=0&limit=x", "list default|configmaps||"},
		{"GET", collection + "?fieldSelector=metadata.name%3Da%2Fb", "list default|configmaps||"},
		{"DELETE", collection + "?fieldSelector=metadata.name%3Dflags", "deletecollection default|configmaps||"},
		{"GET", "/api/v1/watch/namespaces/default/configmaps?fieldSelector=metadata.name%3Dflags", "watch default|configmaps||"},
		{"POST", "/api/v1/watch/namespaces/default/configmaps", "watch default|configmaps||"},
		{"POST", collection, "create default|configmaps||"},
		{"DELETE", collection, "deletecollection default|configmaps||"},
		{"GET", "/api/v1/configmaps", "list |configmaps||"},
		{"GET", flags, "get default|configmaps||flags"},
		{"HEAD", flags, "get default|configmaps||flags"},
		{"PUT", flags, "update default|configmaps||flags"},
		{"PATCH", flags, "patch default|configmaps||flags"},
		{"DELETE", flags, "delete default|configmaps||flags"},
		{"OPTIONS", flags, " default|configmaps||flags"},
		{"GET", flags + "/history", "get default|configmaps|history|flags"},
		{"GET", "/api/v1/watch/namespaces/default/configmaps/flags", "watch default|configmaps||flags"},
		{"GET", "/api/v1/watch/configmaps", "watch |configmaps||"},
		{"GET", "/api/v1/namespaces", "list |namespaces||"},
		{"GET", "/api/v1/namespaces/default", "get default|namespaces||default"},
		{"PUT", "/api/v1/namespaces/default/finalize", "update default|namespaces|finalize|default"},
		{"GET", "/api/v1/namespaces%2Fdefault%2Fconfigmaps%2Fflags", "get default|configmaps||flags"},
		{"GET", "/api/v1/namespaces/default/configmaps/flags/", "get default|configmaps||flags"},
		{"POST", selfReviews, "create |selfsubjectreviews||"},
		{"GET", "/apis/authentication.k8s.io/v1", "get |||"},
		{"GET", "/api", "get |||"},
		{"GET", "/healthz", "get |||"},
		{"POST", "/nowhere", "post |||"},
		{"GET", "/api/v1/namespaces/default/secrets", "list default|secrets||"},
		{"GET", "/api/v1/secrets?watch=1", "watch |secrets||"},
		{"GET", "/apis/apps/v1/namespaces/default/deployments/web", "get default|deployments||web"},
		{"PATCH", "/apis/apps/v1/namespaces/default/deployments/web/scale", "patch default|deployments|scale|web"},
		{"PUT", "/api/v1/namespaces/default/status", "update default|namespaces|status|default"},
		{"GET", "/api/v1/namespaces/default/configmaps/flags/history/1", "get default|configmaps|history|flags"},
		{"GET", "/api/v1/proxy/namespaces/default/services/a/b", "proxy default|services||a"},
		{"GET", "/api/v1/watch", "watch |||"},
		{"GET", "/api/v1//namespaces/default/configmaps", "get ||default|namespaces"},
		{"GET", "/api/v1/namespaces//configmaps", "list |configmaps||"},
		{"GET", "/apis/apps/v1", "get |||"},
		{"GET", "/API/v1/namespaces/default/configmaps", "get |||"},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "create |selfsubjectaccessreviews||"},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			j := &judge{}
			a := start(t, access(j))
			got := a.do(test.method, test.path, "", "Test-User", "joe")
			if got.code != http.StatusForbidden {
				t.Errorf("answered %d: %s", got.code, got.body)
			}
			if len(j.asked) != 1 || j.asked[0] != "joe "+test.want {
				t.Errorf("judged %q, want %q", j.asked, test.want)
			}
		})
	}
}

func TestWhoIsRefused(t *testing.T) {
	a := start(t, access(&judge{}))
	for _, test := range []struct {
		user, path string
		code       int
		message    string
	}{
		{"impostor", flags, 401, "Unauthorized"},
		{"joe", flags, 403, `configmaps "flags" is forbidden: User "joe" cannot get resource "configmaps" in API group "" in the namespace "default"`},
		{"joe", collection, 403, `configmaps is forbidden: User "joe" cannot list resource "configmaps" in API group "" in the namespace "default"`},
		{"joe", "/api/v1/configmaps", 403, `configmaps is forbidden: User "joe" cannot list resource "configmaps" in API group "" at the cluster scope`},
		{"joe", "/version", 403, `forbidden: User "joe" cannot get path "/version"`},
		{"", flags, 404, `configmaps "flags" not found`},
		{"jane", flags, 404, `configmaps "flags" not found`},
	} {
		got := a.do("GET", test.path, "", "Test-User", test.user)
		if got.code != test.code || got.status.Message != test.message || int(got.status.Code) != test.code {
			t.Errorf("%q on %s: answered %d %q", test.user, test.path, got.code, got.status.Message)
		}
	}
}

// What is wrong beside the store is told, and the server stays ready.
func TestAConcernIsToldByAVerboseProbe(t *testing.T) {
	err := errors.New("a secret path")
	a := start(t, func(o *server.Options) {
		o.Concerns = []server.Concern{{Name: "rules", Look: func() error { return err }}, {Name: "tokens", Look: func() error { return nil }}}
	})
	const want = "[+]ping ok\n[+]store ok\n[!]rules: reason withheld, the log has it\nreadyz check passed\n"
	if got := a.do("GET", "/readyz?verbose", ""); got.code != 200 || got.body != want {
		t.Errorf("answered %d %q", got.code, got.body)
	}
	if got := a.do("GET", "/readyz", ""); got.code != 200 || got.body != "ok" {
		t.Errorf("answered %d %q", got.code, got.body)
	}
}

// Who is refused a credential, or has none, keeps no connection that carries many
// requests at once; and once a request is let through, its token is gone.
func TestConnectionsOfThoseWhomNobodyKnows(t *testing.T) {
	seen := make(chan string, 10)
	a := start(t, access(&judge{}))
	hs := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.server.Handler().ServeHTTP(w, r)
		seen <- r.Header.Get("Authorization")
	}))
	hs.EnableHTTP2 = true
	hs.StartTLS()
	defer hs.Close()
	for user, want := range map[string]struct {
		code int
		kept bool
		left string
	}{"jane": {200, true, ""}, "": {200, false, ""}, "impostor": {401, false, "Bearer x"}} {
		var reused []bool
		for range 2 {
			trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = append(reused, i.Reused) }}
			req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, hs.URL+"/version", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Test-User", user)
			req.Header.Set("Authorization", "Bearer x")
			resp, err := hs.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.ProtoMajor != 2 || resp.StatusCode != want.code {
				t.Errorf("%q: %s %d %v", user, resp.Proto, resp.StatusCode, err)
			}
			_ = resp.Body.Close()
			if left := <-seen; left != want.left {
				t.Errorf("%q: the token is left as %q", user, left)
			}
		}
		if reused[1] != want.kept {
			t.Errorf("%q: the connection was used again: %t", user, reused[1])
		}
		hs.Client().CloseIdleConnections()
	}
}
