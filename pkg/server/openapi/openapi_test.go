package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/server/discovery"
	"example.com/cmctl/pkg/types"
)

// methods are the operations of a path, by method.
func methods(p spec.PathItem) map[string]*spec.Operation {
	all := map[string]*spec.Operation{
		http.MethodGet: p.Get, http.MethodPut: p.Put, http.MethodPost: p.Post, http.MethodPatch: p.Patch, http.MethodDelete: p.Delete,
	}
	maps.DeleteFunc(all, func(_ string, o *spec.Operation) bool { return o == nil })
	return all
}

// queryOf are the names of the query parameters of an operation, in their order.
func queryOf(o *spec.Operation) string {
	var names []string
	for _, p := range o.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestOperationsAreNamedAndParameterizedAsInKubernetes(t *testing.T) {
	const (
		list = "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion resourceVersionMatch " +
			"sendInitialEvents timeoutSeconds watch"
		write  = "dryRun fieldManager fieldValidation"
		remove = "dryRun gracePeriodSeconds orphanDependents propagationPolicy"
		many   = "continue dryRun fieldSelector gracePeriodSeconds labelSelector limit orphanDependents propagationPolicy " +
			"resourceVersion resourceVersionMatch sendInitialEvents timeoutSeconds"
	)
	const (
		configMaps = "/api/v1/namespaces/{namespace}/configmaps"
		namespaces = "/api/v1/namespaces"
		watched    = "/api/v1/watch"

		authorization = "/apis/authorization.k8s.io/v1"
	)
	tests := []struct{ path, method, id, action, query string }{
		{"/api/", "GET", "getCoreAPIVersions", "", ""},
		{"/api/v1/", "GET", "getCoreV1APIResources", "", ""},
		{"/api/v1/configmaps", "GET", "listCoreV1ConfigMapForAllNamespaces", "list", list},
		{namespaces, "GET", "listCoreV1Namespace", "list", list},
		{namespaces, "POST", "createCoreV1Namespace", "post", write},
		{configMaps, "DELETE", "deleteCoreV1CollectionNamespacedConfigMap", "deletecollection", many},
		{configMaps, "GET", "listCoreV1NamespacedConfigMap", "list", list},
		{configMaps, "POST", "createCoreV1NamespacedConfigMap", "post", write},
		{configMaps + "/{name}", "DELETE", "deleteCoreV1NamespacedConfigMap", "delete", remove},
		{configMaps + "/{name}", "GET", "readCoreV1NamespacedConfigMap", "get", ""},
		{configMaps + "/{name}", "PATCH", "patchCoreV1NamespacedConfigMap", "patch", write + " force"},
		{configMaps + "/{name}", "PUT", "replaceCoreV1NamespacedConfigMap", "put", write},
		{configMaps + "/{name}/history", "GET", "readCoreV1NamespacedConfigMapHistory", "get", "resourceVersion"},
		{namespaces + "/{name}", "DELETE", "deleteCoreV1Namespace", "delete", remove},
		{namespaces + "/{name}", "GET", "readCoreV1Namespace", "get", ""},
		{namespaces + "/{name}", "PATCH", "patchCoreV1Namespace", "patch", write + " force"},
		{namespaces + "/{name}", "PUT", "replaceCoreV1Namespace", "put", write},
		{watched + "/configmaps", "GET", "watchCoreV1ConfigMapListForAllNamespaces", "watchlist", list},
		{watched + "/namespaces", "GET", "watchCoreV1NamespaceList", "watchlist", list},
		{watched + "/namespaces/{namespace}/configmaps", "GET", "watchCoreV1NamespacedConfigMapList", "watchlist", list},
		{watched + "/namespaces/{namespace}/configmaps/{name}", "GET", "watchCoreV1NamespacedConfigMap", "watch", list},
		{watched + "/namespaces/{name}", "GET", "watchCoreV1Namespace", "watch", list},
		{"/apis/", "GET", "getAPIVersions", "", ""},
		{"/apis/authentication.k8s.io/", "GET", "getAuthenticationAPIGroup", "", ""},
		{"/apis/authentication.k8s.io/v1/", "GET", "getAuthenticationV1APIResources", "", ""},
		{"/apis/authentication.k8s.io/v1/selfsubjectreviews", "POST", "createAuthenticationV1SelfSubjectReview", "post", write},
		{"/version/", "GET", "getCodeVersion", "", ""},
		{"/apis/authorization.k8s.io/", "GET", "getAuthorizationAPIGroup", "", ""},
		{authorization + "/", "GET", "getAuthorizationV1APIResources", "", ""},
		{authorization + "/selfsubjectaccessreviews", "POST", "createAuthorizationV1SelfSubjectAccessReview", "post", write},
		{authorization + "/selfsubjectrulesreviews", "POST", "createAuthorizationV1SelfSubjectRulesReview", "post", write},
		{authorization + "/subjectaccessreviews", "POST", "createAuthorizationV1SubjectAccessReview", "post", write},
	}
	paths := newSwagger().Paths.Paths
	total := 0
	for _, p := range paths {
		total += len(methods(p))
	}
	if total != len(tests) {
		t.Errorf("there are %d operations, not %d", total, len(tests))
	}
	for _, test := range tests {
		o := methods(paths[test.path])[test.method]
		if o == nil {
			t.Errorf("%s %s is not described", test.method, test.path)
			continue
		}
		action, _ := o.Extensions.GetString("x-kubernetes-action")
		if got := queryOf(o); o.ID != test.id || action != test.action || got != test.query {
			t.Errorf("%s %s is %s, %s with %q", test.method, test.path, o.ID, action, got)
		}
	}
}

func TestWhatDiscoveryListsIsDescribed(t *testing.T) {
	described := map[string]bool{}
	for _, item := range newSwagger().Paths.Paths {
		for _, o := range methods(item) {
			kind, _ := o.Extensions["x-kubernetes-group-version-kind"].(map[string]any)
			action, _ := o.Extensions.GetString("x-kubernetes-action")
			described[fmt.Sprint(kind["kind"], " ", action)] = true
		}
	}
	actions := map[string]string{"create": "post", "update": "put", "watch": "watchlist"}
	resources := discovery.APIResources().APIResources
	for _, g := range discovery.APIGroups().Groups {
		resources = append(resources, discovery.ReviewResources(g.Name).APIResources...)
	}
	for _, r := range resources {
		for _, verb := range r.Verbs {
			if action := cmp.Or(actions[verb], verb); !described[r.Kind+" "+action] {
				t.Errorf("no operation is the %s of %s", verb, r.Name)
			}
		}
	}
}

func TestOperationsNameTheKindOfTheirObject(t *testing.T) {
	for path, item := range newSwagger().Paths.Paths {
		want, group := "", ""
		switch {
		case strings.HasSuffix(path, "/selfsubjectreviews"):
			want, group = types.SelfSubjectReviews.Kind, types.SelfSubjectReviews.Group
		case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
			want, group = "SelfSubjectAccessReview", "authorization.k8s.io"
		case strings.HasSuffix(path, "/selfsubjectrulesreviews"):
			want, group = "SelfSubjectRulesReview", "authorization.k8s.io"
		case strings.HasSuffix(path, "/subjectaccessreviews"):
			want, group = "SubjectAccessReview", "authorization.k8s.io"
		case strings.HasSuffix(path, "/history"):
			want = types.HistoryKind
		case strings.Contains(path, "/configmaps"):
			want = types.ConfigMaps.Kind
		case strings.Contains(path, "/namespaces"):
			want = types.Namespaces.Kind
		}
		for method, o := range methods(item) {
			kind, _ := o.Extensions["x-kubernetes-group-version-kind"].(map[string]any)
			if want == "" && kind == nil {
				continue
			}
			if kind["group"] != group || kind["version"] != "v1" || kind["kind"] != want {
				t.Errorf("%s %s is about %v, not %s", method, path, kind, want)
			}
		}
	}
}

var variable = regexp.MustCompile(`{(\w+)}`)

func TestEveryVariableOfAPathIsARequiredParameter(t *testing.T) {
	for path, item := range newSwagger().Paths.Paths {
		var declared []string
		for _, p := range item.Parameters {
			if p.In == "path" && p.Required {
				declared = append(declared, "{"+p.Name+"}")
			}
		}
		want := variable.FindAllString(path, -1)
		slices.Sort(declared)
		slices.Sort(want)
		if !slices.Equal(declared, want) {
			t.Errorf("%s declares %q", path, declared)
		}
	}
}

func TestEveryParameterIsDescribed(t *testing.T) {
	for path, item := range newSwagger().Paths.Paths {
		for method, o := range methods(item) {
			for _, p := range slices.Concat(item.Parameters, o.Parameters) {
				if p.In != "body" && (p.Description == "" || p.Type == "") {
					t.Errorf("%s %s: parameter %s is a %q described as %q", method, path, p.Name, p.Type, p.Description)
				}
			}
		}
	}
}

func TestTheHistorysDefinitionsHaveTheFieldsOfItsTypes(t *testing.T) {
	definitions := historyDefinitions()
	for name, example := range map[string]any{
		historyModel:      types.HistoryList{TypeMeta: metav1.TypeMeta{Kind: "K", APIVersion: "v1"}, Items: []types.HistoryEntry{}},
		historyMetaModel:  types.HistoryMeta{},
		historyEntryModel: types.HistoryEntry{UID: "u", User: "u", WriteID: "w", Deleted: true},
	} {
		fields := decode(t, encode(t, example)).(map[string]any)
		got, want := slices.Sorted(maps.Keys(definitions[name].Properties)), slices.Sorted(maps.Keys(fields))
		if !slices.Equal(got, want) {
			t.Errorf("%s has the fields %q, not %q", name, got, want)
		}
	}
}

func TestDocumentsAreTheSameEveryTime(t *testing.T) {
	first, err := makeDocuments()
	if err != nil {
		t.Fatal(err)
	}
	second, err := makeDocuments()
	if err != nil {
		t.Fatal(err)
	}
	for path, d := range first {
		for media, body := range d.bodies {
			if !slices.Equal(body, second[path].bodies[media]) {
				t.Errorf("%s as %s is another one the second time", path, media)
			}
		}
	}
}
