package openapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openapiv3 "github.com/google/gnostic-models/openapiv3"
	gproto "google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientopenapi "k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/util/proto/validation"

	"example.com/cmctl/pkg/types"
)

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refuse answers as the server does, with the error's Status.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	var status *types.StatusError
	if !errors.As(err, &status) {
		http.Error(w, "not a StatusError: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", types.MediaJSON)
	w.WriteHeader(int(status.ErrStatus.Code))
	_ = json.NewEncoder(w).Encode(status.ErrStatus)
}

func ask(t *testing.T, method, target string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Header = header
	w := httptest.NewRecorder()
	Handler(refuse).ServeHTTP(w, r)
	return w
}

func TestAcceptChoosesTheRepresentation(t *testing.T) {
	tests := map[string]struct {
		path, accept string
		code         int
		contentType  string
	}{
		"v2, nothing asked":            {pathV2, "", 200, types.MediaJSON},
		"v2 for kubectl":               {pathV2, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", 200, mediaV2Protobuf},
		"v2 protobuf, newer spelling":  {pathV2, mediaV2Protobuf, 200, mediaV2Protobuf},
		"v2, anything":                 {pathV2, "text/html, */*;q=0.1", 200, types.MediaJSON},
		"v2 as v3":                     {pathV2, mediaV3Protobuf, 406, types.MediaJSON},
		"v2 as YAML":                   {pathV2, "application/yaml", 406, types.MediaJSON},
		"v2, the preferred":            {pathV2, mediaV2Protobuf + ";q=0.5, application/json", 200, types.MediaJSON},
		"v2, refused":                  {pathV2, "application/json;q=0", 406, types.MediaJSON},
		"v3":                           {"/openapi/v3/api/v1", "application/json", 200, types.MediaJSON},
		"v3 protobuf, older spelling":  {"/openapi/v3/api/v1", clientopenapi.ContentTypeOpenAPIV3PB, 200, mediaV3Protobuf},
		"v3 protobuf, newer spelling":  {"/openapi/v3/version", mediaV3Protobuf, 200, mediaV3Protobuf},
		"the index":                    {pathV3, "application/json, */*", 200, types.MediaJSON},
		"the index is JSON only":       {pathV3, mediaV3Protobuf, 406, types.MediaJSON},
		"a group that is not":          {"/openapi/v3/apis/apps/v1", "", 404, types.MediaJSON},
		"a path that is not":           {"/openapi/v4", "", 404, types.MediaJSON},
		"a document that is not, hash": {"/openapi/v3/apis/apps/v1?hash=1", "", 404, types.MediaJSON},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := ask(t, http.MethodGet, test.path, http.Header{"Accept": {test.accept}})
			if got := w.Header().Get("Content-Type"); w.Code != test.code || got != test.contentType {
				t.Errorf("%d %s, not %d %s", w.Code, got, test.code, test.contentType)
			}
			if test.code != http.StatusOK {
				status := decode(t, w.Body.String()).(map[string]any)
				if status["kind"] != "Status" || status["code"] != float64(test.code) {
					t.Errorf("the body is %v", status)
				}
			}
		})
	}
}

func TestDocumentsAreRead(t *testing.T) {
	if w := ask(t, http.MethodHead, pathV2, nil); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
	if w := ask(t, http.MethodPost, pathV3, nil); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestAKnownETagIsNotModified(t *testing.T) {
	for _, path := range []string{pathV2, pathV3, "/openapi/v3/api/v1"} {
		etag := ask(t, http.MethodGet, path, nil).Header().Get("ETag")
		w := ask(t, http.MethodGet, path, http.Header{"If-None-Match": {etag}})
		if etag == "" || w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%s with ETag %s: %d with %d bytes", path, etag, w.Code, w.Body.Len())
		}
		if w := ask(t, http.MethodGet, path, http.Header{"If-None-Match": {`"another"`}}); w.Code != http.StatusOK {
			t.Errorf("%s with another ETag: %d", path, w.Code)
		}
	}
}

// index reads where the documents are, by group and version.
func index(t *testing.T) map[string]string {
	t.Helper()
	var body struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(ask(t, http.MethodGet, pathV3, nil).Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	urls := map[string]string{}
	for name, at := range body.Paths {
		urls[name] = at.ServerRelativeURL
	}
	return urls
}

func TestTheIndexLeadsToDocumentsThatMayBeKept(t *testing.T) {
	urls := index(t)
	names := []string{"api", "api/v1", "apis", "apis/authentication.k8s.io", "apis/authentication.k8s.io/v1",
		"apis/authorization.k8s.io", "apis/authorization.k8s.io/v1", "version"}
	for _, name := range names {
		w := ask(t, http.MethodGet, urls[name], nil)
		h := w.Header()
		if w.Code != http.StatusOK || h.Get("Cache-Control") != "public, immutable" || h.Get("Expires") == "" || h.Get("Vary") != "Accept" {
			t.Errorf("%s at %s: %d %v", name, urls[name], w.Code, h)
		}
	}
	if len(urls) != len(names) {
		t.Errorf("the index is %v", urls)
	}
}

func TestAnOutdatedHashIsRedirected(t *testing.T) {
	w := ask(t, http.MethodGet, "/openapi/v3/api/v1?hash=outdated", nil)
	if to, want := w.Header().Get("Location"), index(t)["api/v1"]; w.Code != http.StatusMovedPermanently || to != want {
		t.Errorf("%d to %s, not to %s", w.Code, to, want)
	}
	h := ask(t, http.MethodGet, "/openapi/v3/api/v1", nil).Header()
	if h.Get("Cache-Control") != "no-cache, private" || h.Get("Expires") != "" {
		t.Errorf("without a hash: %v", h)
	}
}

// client is client-go's own, of a server that serves nothing but the documents.
func client(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	mux := http.NewServeMux()
	for _, path := range Paths {
		mux.Handle(path, Handler(refuse))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// As kubectl before 1.27 does for explain and apply.
func TestClientGoValidatesAgainstV2(t *testing.T) {
	document, err := client(t).OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		t.Fatal(err)
	}
	model := models.LookupModel(core + "ConfigMap")
	tests := map[string]struct {
		object  map[string]any
		problem string
	}{
		"as it should be": {map[string]any{"data": map[string]any{"k": "v"}, "immutable": true}, ""},
		"a list":          {map[string]any{"data": []any{"v"}}, "invalid type for io.k8s.api.core.v1.ConfigMap.data"},
		"a misspelling":   {map[string]any{"datta": map[string]any{}}, `unknown field "datta" in io.k8s.api.core.v1.ConfigMap`},
		"metadata": {map[string]any{"metadata": map[string]any{"nam": "a"}},
			`unknown field "nam" in io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			errs := validation.ValidateModel(test.object, model, "ConfigMap")
			if test.problem == "" && len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
			if test.problem != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), test.problem)) {
				t.Errorf("found %v, not %s", errs, test.problem)
			}
		})
	}
}

// kubectl leaves the check of fields to servers whose PATCH takes this parameter.
func TestClientGoFindsFieldValidationInV3(t *testing.T) {
	document, err := openapi3.NewRoot(client(t).OpenAPIV3()).GVSpec(schema.GroupVersion{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/namespaces/{namespace}/configmaps/{name}", "/api/v1/namespaces/{name}"} {
		patch := document.Paths.Paths[path].Patch
		found := map[string]bool{}
		for _, p := range patch.Parameters {
			found[p.Name] = p.In == "query"
		}
		if !found["fieldValidation"] || !found["dryRun"] || !found["force"] {
			t.Errorf("PATCH %s takes %v", path, found)
		}
		if !patch.RequestBody.Required {
			t.Errorf("PATCH %s needs no body", path)
		}
	}
}

func TestClientGoMakesTypesOfV3(t *testing.T) {
	if _, err := clientopenapi.NewTypeConverter(client(t).OpenAPIV3(), false); err != nil {
		t.Error(err)
	}
}

func TestV3ProtobufIsReadable(t *testing.T) {
	paths, err := client(t).OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range paths {
		body, err := at.Schema(clientopenapi.ContentTypeOpenAPIV3PB)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var document openapiv3.Document
		if err := gproto.Unmarshal(body, &document); err != nil || len(document.GetPaths().GetPath()) == 0 {
			t.Errorf("%s has the paths %v, %v", name, document.GetPaths(), err)
		}
	}
}

func TestEachDocumentHasTheSchemasThatItRefersTo(t *testing.T) {
	for name, url := range index(t) {
		body := ask(t, http.MethodGet, url, nil).Body
		var document struct {
			Components struct {
				Schemas map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(body.Bytes(), &document); err != nil {
			t.Fatal(err)
		}
		used := map[string]bool{}
		for _, match := range reference.FindAllStringSubmatch(body.String(), -1) {
			used[match[1]] = true
			if document.Components.Schemas[match[1]] == nil {
				t.Errorf("%s refers to %s, which it has not", name, match[1])
			}
		}
		for schema := range document.Components.Schemas {
			if !used[schema] {
				t.Errorf("%s has %s, to which nothing refers", name, schema)
			}
		}
	}
}

func TestV2HasNoDefaultsAndV3Has(t *testing.T) {
	v2, v3 := ask(t, http.MethodGet, pathV2, nil).Body.String(), ask(t, http.MethodGet, "/openapi/v3/api/v1", nil).Body.String()
	if strings.Contains(v2, `"default":`) || !strings.Contains(v3, `"default":{}`) {
		t.Error("defaults are for v3 alone")
	}
}

func FuzzAccept(f *testing.F) {
	for _, accept := range []string{"", "*/*", "application/json;q=0.5," + mediaV2Protobuf, clientopenapi.ContentTypeOpenAPIV3PB, ";;,=", "a/b;q="} {
		f.Add(accept)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		all, err := documents()
		if err != nil {
			t.Fatal(err)
		}
		for path, d := range all {
			if media, err := d.choose(accept); err == nil && len(d.bodies[media]) == 0 {
				t.Errorf("%s has nothing as %q", path, media)
			}
		}
	})
}
