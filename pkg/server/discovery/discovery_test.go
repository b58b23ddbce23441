package discovery_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubediscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"example.com/cmctl/pkg/server/discovery"
	"example.com/cmctl/pkg/types"
)

const (
	asJSON       = "application/json"
	form         = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	aggregatedV2 = asJSON + form
	aggregatedV1 = asJSON + ";g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// plain writes a document as JSON, whatever is asked.
func plain(document any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", asJSON)
		_ = json.NewEncoder(w).Encode(document)
	})
}

// authorizationVersions are those of the one named group.
const authorizationVersions = `"versions":[{"groupVersion":"authorization.k8s.io/v1","version":"v1"}],` +
	`"preferredVersion":{"groupVersion":"authorization.k8s.io/v1","version":"v1"}`

// handler is a server that serves nothing but discovery.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api", discovery.Aggregated(plain(discovery.APIVersions())))
	mux.Handle("/apis", discovery.Aggregated(plain(discovery.APIGroups())))
	mux.Handle("/api/v1", discovery.Aggregated(plain(discovery.APIResources())))
	for _, g := range discovery.APIGroups().Groups {
		mux.Handle("/apis/"+g.Name, plain(discovery.APIGroup(g.Name)))
		mux.Handle("/apis/"+g.Name+"/v1", plain(discovery.ReviewResources(g.Name)))
	}
	return mux
}

func ask(t *testing.T, method, target string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Header = header
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, r)
	return w
}

func accept(media string) http.Header { return http.Header{"Accept": {media}} }

// assertJSON compares a body with JSON text, whatever its white space.
func assertJSON(t *testing.T, got []byte, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("the body is\n%s\nnot\n%s", got, want)
	}
}

func TestDocumentsAreThoseOfKubernetes(t *testing.T) {
	const (
		allVerbs = `["create","delete","deletecollection","get","list","patch","update","watch"]`
		nsVerbs  = `["create","delete","get","list","patch","update","watch"]`

		authenticationV1 = `"versions":[{"groupVersion":"authentication.k8s.io/v1","version":"v1"}],
			"preferredVersion":{"groupVersion":"authentication.k8s.io/v1","version":"v1"}`
	)
	tests := map[string]struct{ path, accept, want string }{
		"the versions":       {"/api", "", `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}`},
		"the groups":         {"/apis", "", `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"authentication.k8s.io",` + authenticationV1 + `},{"name":"authorization.k8s.io",` + authorizationVersions + `}]}`},
		"a group of reviews": {"/apis/authentication.k8s.io", "", `{"kind":"APIGroup","apiVersion":"v1","name":"authentication.k8s.io",` + authenticationV1 + `}`},
		"the reviews": {"/apis/authentication.k8s.io/v1", "", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"authentication.k8s.io/v1",
			"resources":[{"name":"selfsubjectreviews","singularName":"selfsubjectreview","namespaced":false,"kind":"SelfSubjectReview","verbs":["create"]}]}`},
		"the resources": {"/api/v1", "", `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":` + allVerbs + `,
				"shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="},
			{"name":"configmaps/history","singularName":"","namespaced":true,"kind":"ConfigMapHistory","verbs":["get"]},
			{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":` + nsVerbs + `,
				"shortNames":["ns"],"storageVersionHash":"Q3oi5N2YM8M="}]}`},
		"the aggregated resources": {"/api", aggregatedV2, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2",
			"metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","freshness":"Current","resources":[
				{"resource":"configmaps","responseKind":{"group":"","version":"","kind":"ConfigMap"},"scope":"Namespaced",
					"singularResource":"configmap","verbs":` + allVerbs + `,"shortNames":["cm"]},
				{"resource":"namespaces","responseKind":{"group":"","version":"","kind":"Namespace"},"scope":"Cluster",
					"singularResource":"namespace","verbs":` + nsVerbs + `,"shortNames":["ns"]}]}]}]}`},
		"a group": {"/apis/authorization.k8s.io", "",
			`{"kind":"APIGroup","apiVersion":"v1","name":"authorization.k8s.io",` + authorizationVersions + `}`},
		"the resources of a group": {"/apis/authorization.k8s.io/v1", "", `{"kind":"APIResourceList","apiVersion":"v1",
			"groupVersion":"authorization.k8s.io/v1","resources":[
			{"name":"selfsubjectaccessreviews","singularName":"selfsubjectaccessreview","namespaced":false,"kind":"SelfSubjectAccessReview","verbs":["create"]},
			{"name":"selfsubjectrulesreviews","singularName":"selfsubjectrulesreview","namespaced":false,"kind":"SelfSubjectRulesReview","verbs":["create"]},
			{"name":"subjectaccessreviews","singularName":"subjectaccessreview","namespaced":false,"kind":"SubjectAccessReview","verbs":["create"]}]}`},
		"the aggregated groups": {"/apis", aggregatedV2,
			`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
				{"metadata":{"name":"authentication.k8s.io"},"versions":[{"version":"v1","freshness":"Current","resources":[
					{"resource":"selfsubjectreviews","responseKind":{"group":"","version":"","kind":"SelfSubjectReview"},"scope":"Cluster",
						"singularResource":"selfsubjectreview","verbs":["create"]}]}]},
			{"metadata":{"name":"authorization.k8s.io"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"selfsubjectaccessreviews","responseKind":{"group":"","version":"","kind":"SelfSubjectAccessReview"},"scope":"Cluster","singularResource":"selfsubjectaccessreview","verbs":["create"]},
			{"resource":"selfsubjectrulesreviews","responseKind":{"group":"","version":"","kind":"SelfSubjectRulesReview"},"scope":"Cluster","singularResource":"selfsubjectrulesreview","verbs":["create"]},
			{"resource":"subjectaccessreviews","responseKind":{"group":"","version":"","kind":"SubjectAccessReview"},"scope":"Cluster","singularResource":"subjectaccessreview","verbs":["create"]}]}]}]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := ask(t, http.MethodGet, test.path, accept(test.accept))
			if w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			assertJSON(t, w.Body.Bytes(), test.want)
		})
	}
}

func TestAcceptChoosesTheForm(t *testing.T) {
	const inPlain = asJSON
	tests := map[string]struct{ path, accept, contentType string }{
		"nothing asked":               {"/api", "", inPlain},
		"anything":                    {"/apis", "*/*", inPlain},
		"client-go":                   {"/api", aggregatedV2 + "," + asJSON, aggregatedV2},
		"client-go without peers":     {"/apis", aggregatedV2 + ";profile=nopeer," + aggregatedV2, aggregatedV2},
		"an older kubectl":            {"/api", aggregatedV2 + "," + aggregatedV1 + "," + asJSON, aggregatedV2},
		"parameters in another order": {"/api", asJSON + ";as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", aggregatedV2},
		"YAML":                        {"/api", types.MediaYAML + form, types.MediaYAML + form},
		"protobuf":                    {"/apis", types.MediaProtobuf + form + "," + aggregatedV2, types.MediaProtobuf + form},
		"a media type that is not":    {"/api", "application/xml" + form + "," + aggregatedV2, aggregatedV2},
		"plain is preferred":          {"/api", asJSON + "," + aggregatedV2, inPlain},
		"plain has more weight":       {"/api", aggregatedV2 + ";q=0.5," + asJSON, inPlain},
		"aggregated is refused":       {"/api", aggregatedV2 + ";q=0," + asJSON, inPlain},
		"the beta alone":              {"/api", aggregatedV1, inPlain},
		"the beta before plain":       {"/apis", aggregatedV1 + "," + asJSON, inPlain},
		"another kind":                {"/api", asJSON + ";as=Table;v=v1;g=meta.k8s.io", inPlain},
		"aggregated where it is not":  {"/api/v1", aggregatedV2, inPlain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := ask(t, http.MethodGet, test.path, accept(test.accept))
			if got := w.Header().Get("Content-Type"); got != test.contentType {
				t.Errorf("the answer is %s, not %s", got, test.contentType)
			}
		})
	}
}

func TestOtherMethodsAreForThePlainHandler(t *testing.T) {
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodDelete} {
		if got := ask(t, method, "/api", accept(aggregatedV2)).Header().Get("Content-Type"); got != asJSON {
			t.Errorf("%s is answered with %s", method, got)
		}
	}
}

func TestOtherMediaTypesHoldWhatJSONSays(t *testing.T) {
	want := ask(t, http.MethodGet, "/api", accept(aggregatedV2)).Body.String()

	asYAML, err := yaml.YAMLToJSON(ask(t, http.MethodGet, "/api", accept(types.MediaYAML+form)).Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	assertJSON(t, asYAML, want)

	content, ok := bytes.CutPrefix(ask(t, http.MethodGet, "/api", accept(types.MediaProtobuf+form)).Body.Bytes(), []byte("k8s\x00"))
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(content); !ok || err != nil {
		t.Fatalf("no envelope: %v", err)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := list.Unmarshal(envelope.Raw); err != nil {
		t.Fatal(err)
	}
	list.Kind, list.APIVersion = envelope.Kind, envelope.APIVersion
	again, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	assertJSON(t, again, want)
}

func TestAggregatedDocumentsAreRevalidated(t *testing.T) {
	first := ask(t, http.MethodGet, "/api", accept(aggregatedV2))
	etag := first.Header().Get("ETag")
	header := accept(aggregatedV2)
	header.Set("If-None-Match", etag)
	if w := ask(t, http.MethodGet, "/api", header); etag == "" || w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("with ETag %s: %d %s", etag, w.Code, w.Body)
	}
	header.Set("If-None-Match", `"another"`)
	if w := ask(t, http.MethodGet, "/api", header); w.Code != http.StatusOK {
		t.Errorf("with another ETag: %d", w.Code)
	}
	if w := ask(t, http.MethodGet, "/api", nil); w.Header().Get("ETag") != "" {
		t.Error("the plain document has an ETag")
	}
}

func TestPrettyIsIndented(t *testing.T) {
	compact, pretty := ask(t, http.MethodGet, "/api", accept(aggregatedV2)), ask(t, http.MethodGet, "/api?pretty=true", accept(aggregatedV2))
	assertJSON(t, pretty.Body.Bytes(), compact.Body.String())
	if !bytes.Contains(pretty.Body.Bytes(), []byte("\n  ")) || bytes.Contains(compact.Body.Bytes(), []byte("\n  ")) {
		t.Errorf("compact:\n%s\npretty:\n%s", compact.Body, pretty.Body)
	}
}

// client is client-go's own.
func client(t *testing.T) *kubediscovery.DiscoveryClient {
	t.Helper()
	server := httptest.NewServer(handler())
	t.Cleanup(server.Close)
	c, err := kubediscovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientGoFindsTheResourcesInBothForms(t *testing.T) {
	c := client(t)
	_, aggregated, err := c.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	_, plain, err := c.WithLegacy().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	names := func(lists []*metav1.APIResourceList) (all []string) {
		for _, list := range lists {
			for _, r := range list.APIResources {
				all = append(all, list.GroupVersion+" "+r.Name+" "+r.SingularName+" "+r.Kind)
			}
		}
		slices.Sort(all) // client-go gives the groups in any order
		return all
	}
	want := []string{
		"authentication.k8s.io/v1 selfsubjectreviews selfsubjectreview SelfSubjectReview",
		"authorization.k8s.io/v1 selfsubjectaccessreviews selfsubjectaccessreview SelfSubjectAccessReview",
		"authorization.k8s.io/v1 selfsubjectrulesreviews selfsubjectrulesreview SelfSubjectRulesReview",
		"authorization.k8s.io/v1 subjectaccessreviews subjectaccessreview SubjectAccessReview",
		"v1 configmaps configmap ConfigMap", "v1 namespaces namespace Namespace",
	}
	if got := names(aggregated); !reflect.DeepEqual(got, want) {
		t.Errorf("aggregated: %q", got)
	}
	// Only the plain form lists the subresource that Kubernetes does not have.
	want = slices.Insert(want, 5, "v1 configmaps/history  ConfigMapHistory")
	if got := names(plain); !reflect.DeepEqual(got, want) {
		t.Errorf("plain: %q", got)
	}
}

func TestClientGoMapsNamesToResources(t *testing.T) {
	c := client(t)
	groups, err := restmapper.GetAPIGroupResources(c)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for name, want := range map[string]string{"configmaps": "ConfigMap", "configmap": "ConfigMap", "namespaces": "Namespace"} {
		kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: name})
		if err != nil || kind.Kind != want || kind.Version != "v1" {
			t.Errorf("%s is a %v, %v", name, kind, err)
		}
	}
}

func FuzzAccept(f *testing.F) {
	for _, accept := range []string{"", "*/*" + form, aggregatedV2 + "," + asJSON, aggregatedV1 + ";q=0.1", ";;,=", "a/b;q="} {
		f.Add(accept)
	}
	f.Fuzz(func(t *testing.T, header string) {
		w := ask(t, http.MethodGet, "/api", accept(header))
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
		}
	})
}
