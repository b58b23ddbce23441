package authz_test

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/server/authz"
)

// Without rules it counts whether somebody is known, and nothing else.
func TestAuthenticated(t *testing.T) {
	known := &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}
	for _, test := range []struct {
		what           authorizer.AttributesRecord
		known, unknown bool
	}{
		{authorizer.AttributesRecord{ResourceRequest: true, Verb: "get", Resource: "configmaps", Name: "flags"}, true, false},
		{authorizer.AttributesRecord{ResourceRequest: true, Verb: "get", Resource: "configmaps", Path: "/version"}, true, false},
		{authorizer.AttributesRecord{ResourceRequest: true, Verb: "deletecollection", Resource: "configmaps"}, true, false},
		{authorizer.AttributesRecord{Verb: "get", Path: "/version"}, true, true},
		{authorizer.AttributesRecord{Verb: "get", Path: "/version/"}, true, true},
		{authorizer.AttributesRecord{Verb: "get", Path: "/version/x"}, true, false},
		{authorizer.AttributesRecord{Verb: "get", Path: "/versions"}, true, false},
		{authorizer.AttributesRecord{Verb: "get", Path: "/healthz"}, true, true},
		{authorizer.AttributesRecord{Verb: "head", Path: "/livez"}, true, true},
		{authorizer.AttributesRecord{Verb: "get", Path: "/readyz/store"}, true, true},
		{authorizer.AttributesRecord{Verb: "post", Path: "/readyz"}, true, false},
		{authorizer.AttributesRecord{Verb: "get", Path: "/readyzz"}, true, false},
		{authorizer.AttributesRecord{Verb: "get", Path: "/api"}, true, false},
		{authorizer.AttributesRecord{Verb: "get", Path: "/apis"}, true, false},
		{authorizer.AttributesRecord{Verb: "get", Path: "/openapi/v2"}, true, false},
	} {
		for u, want := range map[user.Info]bool{known: test.known, authn.Anonymous: test.unknown} {
			a := test.what
			a.User = u
			if got, _ := (authz.Authenticated{}).Authorize(a); got != want {
				t.Errorf("%s of %s %s%s: allowed %t", u.GetName(), a.Verb, a.Resource, a.Path, got)
			}
		}
		a := test.what
		if got, _ := (authz.Authenticated{}).Authorize(a); got != test.unknown {
			t.Errorf("nobody's %s %s%s: allowed %t", a.Verb, a.Resource, a.Path, got)
		}
	}
}
