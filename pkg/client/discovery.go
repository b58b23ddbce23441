package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregated asks for all groups and their resources in one answer.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Resource is a kind of objects that a server has.
type Resource struct {
	Name       string // as in paths: configmaps
	ShortNames []string
	APIVersion string // the group's preferred version
	Namespaced bool
	Kind       string
	Verbs      []string
}

// Group is the API group, empty for the oldest one, which has configmaps.
func (r Resource) Group() string {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// Resources lists what the server has, by group and name, each resource in the
// version that its group prefers.
func (c *Client) Resources(ctx context.Context) ([]Resource, error) {
	var all []Resource
	for _, path := range []string{"api", "apis"} {
		found, err := c.resourcesBelow(ctx, path)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b Resource) int {
		return cmp.Or(strings.Compare(a.Group(), b.Group()), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

func (c *Client) resourcesBelow(ctx context.Context, path string) ([]Resource, error) {
	k := call{method: http.MethodGet, path: []string{path}, accept: aggregated + ",application/json", object: "the server's resources", limit: listLimit}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	var list discoveryv2.APIGroupDiscoveryList
	if json.Unmarshal(a.body, &list) != nil {
		return nil, c.notTheObject(k, a)
	}
	if list.Kind == "APIGroupDiscoveryList" {
		return fromAggregated(list), nil
	}
	if path == "api" {
		return c.resourcesOf(ctx, []string{"api", "v1"})
	}
	return c.resourcesOfGroups(ctx)
}

// fromAggregated takes each resource from the first version that has it: the
// versions come most preferred first.
func fromAggregated(list discoveryv2.APIGroupDiscoveryList) []Resource {
	var all []Resource
	for _, group := range list.Items {
		seen := map[string]bool{}
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				if seen[r.Resource] {
					continue
				}
				seen[r.Resource] = true
				found := Resource{
					Name: r.Resource, ShortNames: r.ShortNames, Verbs: r.Verbs, Namespaced: r.Scope == discoveryv2.ScopeNamespace,
					APIVersion: schema.GroupVersion{Group: group.Name, Version: version.Version}.String(),
				}
				if r.ResponseKind != nil {
					found.Kind = r.ResponseKind.Kind
				}
				all = append(all, found)
			}
		}
	}
	return all
}

// resourcesOfGroups asks group by group, for servers that don't answer in one.
func (c *Client) resourcesOfGroups(ctx context.Context) ([]Resource, error) {
	groups, err := c.groups(ctx)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, g := range groups.Groups {
		found, err := c.resourcesOf(ctx, []string{"apis", g.Name, g.PreferredVersion.Version})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (c *Client) resourcesOf(ctx context.Context, path []string) ([]Resource, error) {
	k := call{method: http.MethodGet, path: path, object: "the resources of " + strings.Join(path, "/"), limit: listLimit}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if json.Unmarshal(a.body, &list) != nil || list.Kind != "APIResourceList" {
		return nil, c.notTheObject(k, a)
	}
	var all []Resource
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue // a part of another resource
		}
		all = append(all, Resource{Name: r.Name, ShortNames: r.ShortNames, APIVersion: list.GroupVersion,
			Namespaced: r.Namespaced, Kind: r.Kind, Verbs: r.Verbs})
	}
	return all, nil
}

// groups are those that the server has beside the oldest.
func (c *Client) groups(ctx context.Context) (*metav1.APIGroupList, error) {
	k := call{method: http.MethodGet, path: []string{"apis"}, object: "the server's API groups", limit: listLimit}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	list := &metav1.APIGroupList{}
	if json.Unmarshal(a.body, list) != nil || list.Kind != "APIGroupList" {
		return nil, c.notTheObject(k, a)
	}
	return list, nil
}
