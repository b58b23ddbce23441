package server_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server"
)

// BenchmarkGetUnderRules is a GET of a user whose right is one of a thousand
// bindings, beside the same without rules.
func BenchmarkGetUnderRules(b *testing.B) {
	manifests := strings.Builder{}
	manifests.WriteString("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader, namespace: default}," +
		" rules: [{verbs: [get], apiGroups: [''], resources: [configmaps]}]}\n")
	for i := range 1000 {
		fmt.Fprintf(&manifests, "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b%d, namespace: default},"+
			" roleRef: {kind: Role, name: reader, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: user%d}]}\n", i, i)
	}
	rules := rulesOf(b, manifests.String())
	for name, options := range map[string][]option{
		"none": nil,
		"1000": {func(o *server.Options) { o.Authenticator, o.Authorizer = grouped{}, rules }},
	} {
		b.Run(name, func(b *testing.B) {
			a := begin(b, options...)
			a.must(201, "POST", collection, `{"metadata":{"name":"flags"}}`, "Test-User", masters)
			h := a.server.Handler()
			r := httptest.NewRequest("GET", flags, nil)
			r.Header.Set("Test-User", "user500")
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
