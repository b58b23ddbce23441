package discovery

import (
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is a group of the API that has a name, in its only version.
type Group struct {
	Name      string
	Version   string
	Resources []metav1.APIResource
}

// Groups are the named groups there are, in the order in which they are listed.
func Groups() []Group { return []Group{authorizationGroup()} }

// authorizationGroup are the questions about what may be done.
func authorizationGroup() Group {
	return Group{Name: authorizationv1.GroupName, Version: "v1", Resources: []metav1.APIResource{
		question("selfsubjectaccessreview", "SelfSubjectAccessReview"),
		question("selfsubjectrulesreview", "SelfSubjectRulesReview"),
		question("subjectaccessreview", "SubjectAccessReview"),
	}}
}

// question is a resource of which nothing is kept: it is created, and answered.
func question(singular, kind string) metav1.APIResource {
	return metav1.APIResource{Name: singular + "s", SingularName: singular, Kind: kind, Verbs: metav1.Verbs{"create"}}
}

// groupVersion is how clients name the group with its version.
func (g Group) groupVersion() metav1.GroupVersionForDiscovery {
	return metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + g.Version, Version: g.Version}
}

// APIGroup is the answer of /apis/<name>.
func (g Group) APIGroup() *metav1.APIGroup {
	return &metav1.APIGroup{
		TypeMeta:         metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:             g.Name,
		Versions:         []metav1.GroupVersionForDiscovery{g.groupVersion()},
		PreferredVersion: g.groupVersion(),
	}
}

// APIResources is the answer of /apis/<name>/<version>.
func (g Group) APIResources() *metav1.APIResourceList {
	return &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: g.groupVersion().GroupVersion,
		APIResources: g.Resources,
	}
}

// aggregated is the group in the aggregated form.
func (g Group) aggregated() apidiscoveryv2.APIGroupDiscovery {
	a := group(g.Resources)
	a.Name = g.Name
	a.Versions[0].Version = g.Version
	return a
}

// aggregatedGroups are all named groups in that form.
func aggregatedGroups() (all []apidiscoveryv2.APIGroupDiscovery) {
	for _, g := range Groups() {
		all = append(all, g.aggregated())
	}
	return all
}
