package authz

import (
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Authenticated is for servers without rules: whoever is authenticated may do
// everything, and others may find out that there is a server.
type Authenticated struct{}

// open are the paths that everyone may read, as in Kubernetes: those of probes, and the
// server's version.
var open = []string{"/healthz", "/livez", "/readyz", "/version"}

// Authorize implements Authorizer.
func (Authenticated) Authorize(a authorizer.Attributes) (bool, string) {
	if u := a.GetUser(); u != nil && slices.Contains(u.GetGroups(), user.AllAuthenticated) {
		return true, ""
	}
	return !a.IsResourceRequest() && (a.GetVerb() == "get" || a.GetVerb() == "head") && isOpen(a.GetPath()), ""
}

// isOpen tells whether a path is one that everyone may read; a probe's checks are
// below it.
func isOpen(path string) bool {
	for _, p := range open {
		if path == p || (strings.HasPrefix(path, p+"/") && p != "/version") {
			return true
		}
	}
	return path == "/version/"
}

// RulesFor implements Authorizer.
func (Authenticated) RulesFor(u user.Info, _ string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, error) {
	if u == nil || !slices.Contains(u.GetGroups(), user.AllAuthenticated) {
		paths := []string{"/version", "/version/"}
		for _, p := range open[:3] {
			paths = append(paths, p, p+"/*")
		}
		return nil, []authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"get"}, NonResourceURLs: paths}}, nil
	}
	return []authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		[]authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}, nil
}
