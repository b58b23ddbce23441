package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// APIVersions is the answer of /api. Clients find the server where they reached
// it, so no address is given. As in Kubernetes, it names no apiVersion.
func APIVersions() *metav1.APIVersions {
	return &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{types.APIVersion},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
}

// APIGroups is the answer of /apis: the named groups, which are those of reviews.
func APIGroups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	}
	for _, name := range groupNames() {
		group := APIGroup(name)
		group.TypeMeta = metav1.TypeMeta{} // items have none
		list.Groups = append(list.Groups, *group)
	}
	return list
}

// groupNames are those of the named groups, sorted.
func groupNames() []string {
	var names []string
	for _, r := range types.Reviews {
		names = append(names, r.Group)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// APIGroup is the answer of /apis/ and the name of a group.
func APIGroup(name string) *metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + types.APIVersion, Version: types.APIVersion}
	return &metav1.APIGroup{
		TypeMeta:         metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:             name,
		Versions:         []metav1.GroupVersionForDiscovery{version},
		PreferredVersion: version,
	}
}

// ReviewResources is what a named group has, sorted by name.
func ReviewResources(group string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: group + "/" + types.APIVersion,
	}
	for _, r := range types.Reviews {
		if r.Group == group {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: metav1.Verbs{"create"},
			})
		}
	}
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// APIResources is the answer of /api/v1: what there is and what can be done with
// it, sorted by name. As in Kubernetes, it names no apiVersion.
func APIResources() *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: types.APIVersion,
	}
	for _, r := range types.Resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name:               r.Plural,
			SingularName:       r.Singular,
			Namespaced:         r.Namespaced,
			Kind:               r.Kind,
			Verbs:              verbs(r),
			ShortNames:         r.ShortNames,
			StorageVersionHash: storageVersionHash(r),
		})
	}
	list.APIResources = append(list.APIResources, metav1.APIResource{
		Name:       types.ConfigMaps.Plural + "/history",
		Namespaced: true,
		Kind:       types.HistoryKind,
		Verbs:      metav1.Verbs{"get"},
	})
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// verbs are what can be done with a resource, sorted. As in Kubernetes, no
// request deletes all namespaces.
func verbs(r *types.Resource) metav1.Verbs {
	if r.Namespaced {
		return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	}
	return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
}

// storageVersionHash changes when objects are stored as another version. It is
// computed as kube-apiserver does, so that clients see the same value.
func storageVersionHash(r *types.Resource) string {
	sum := sha256.Sum256([]byte("/" + types.APIVersion + "/" + r.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
