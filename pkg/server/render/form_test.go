package render_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/types"
)

func TestNegotiateTakesTheFirstClauseThatCanBeMet(t *testing.T) {
	jsonLike, yaml := form(t, "application/json", render.Collection, nil), form(t, "application/yaml", render.Collection, nil)
	binary, table := form(t, protobuf, render.Collection, nil), form(t, acceptTable, render.Collection, nil)
	partial := form(t, acceptPartial, render.Collection, nil)
	for accept, want := range map[string]render.Form{
		"":    jsonLike,
		"*/*": jsonLike,
		"application/yaml;q=0.5, application/json":                      jsonLike,
		"application/json;q=0.1, application/yaml":                      yaml,
		"application/xml, application/json":                             jsonLike,
		"application/*, application/yaml;q=0.5":                         yaml, // what is named goes before a pattern
		"application/json;charset=utf-8":                                jsonLike,
		"application/json;stream=watch":                                 jsonLike,
		"application/json;sv=v1":                                        jsonLike,
		"application/json;sv=v2, application/yaml":                      yaml,
		"application/yaml;stream=watch, application/json;q=0.1":         jsonLike,
		"application/cbor, application/json":                            jsonLike,
		protobuf + ",application/json":                                  binary,
		acceptTable + ",application/json":                               table,
		acceptPartial + ",application/json":                             partial,
		"application/json;as=Table;v=v9;g=meta.k8s.io,application/json": jsonLike,
		"application/json;as=Table;v=v1;g=other,application/json":       jsonLike,
		"application/json;as=Pod;v=v1;g=meta.k8s.io,application/json":   jsonLike,
		// There is no table in protobuf.
		protobuf + ";as=Table;v=v1;g=meta.k8s.io,application/json": jsonLike,
		"*/*;as=Table;v=v1;g=meta.k8s.io":                          table,
	} {
		if got := form(t, accept, render.Collection, nil); got != want {
			t.Errorf("Accept %q: got %+v, want %+v", accept, got, want)
		}
	}
}

func TestContentTypeHasNoParameters(t *testing.T) {
	for accept, want := range map[string]string{
		"":                              "application/json",
		"application/json;charset=utf8": "application/json",
		"application/yaml":              "application/yaml",
		protobuf:                        protobuf,
		acceptTable:                     "application/json",
		acceptPartialProtobuf:           protobuf,
	} {
		if got := form(t, accept, render.Object, nil).ContentType(); got != want {
			t.Errorf("Accept %q: content type %q, want %q", accept, got, want)
		}
	}
}

func TestNegotiateRefusesWhatIsNotOffered(t *testing.T) {
	const (
		three  = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
		five   = three + ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
		router = "406: Not Acceptable\n\nAvailable representations: "
		params = "only the following media types are accepted: "
	)
	for _, c := range []struct {
		accept  string
		at      render.Endpoint
		message string
		details bool
	}{
		{"application/xml", render.Object, router + three, true},
		{"application/xml", render.Collection, router + five, true},
		{"application/xml", render.Document, router + three, true},
		{"application/*", render.Object, router + three, true},
		{"application/cbor", render.Object, router + three, true},
		{"Application/JSON", render.Object, router + three, true},
		{"application/json;as=Table;v=v9;g=meta.k8s.io", render.Object, params + three, false},
		{"application/json;as=Table;v=v9;g=meta.k8s.io", render.Collection, params + three, false},
		{"application/json;as=Pod;v=v1;g=meta.k8s.io", render.Object, params + three, false},
		{"application/json;as=Table", render.Object, params + three, false},
		{"application/json;v=v1", render.Object, params + three, false},
		{"application/json;stream=list", render.Object, params + three, false},
		{"application/yaml;stream=watch", render.Collection, params + three, false},
		{protobuf + ";as=Table;v=v1;g=meta.k8s.io", render.Object, params + three, false},
		{acceptTable, render.Document, params + three, false},
	} {
		_, err := render.Negotiate(http.Header{"Accept": {c.accept}}, nil, c.at)
		status := refusal(t, err)
		if status.Code != 406 || status.Reason != "NotAcceptable" || status.Message != c.message || (status.Details != nil) != c.details {
			t.Errorf("Accept %q at %d: got %+v, want message %q", c.accept, c.at, status, c.message)
		}
	}
}

func TestFormsFitOnlyWhatTheyAreFor(t *testing.T) {
	bad := url.Values{"includeObject": {"Bogus"}}
	for _, c := range []struct {
		name    string
		check   error
		code    int32
		message string
	}{
		{"a list as PartialObjectMetadata", form(t, acceptPartial, render.Collection, nil).ForList(types.ConfigMaps), 406,
			"you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"},
		{"an object as PartialObjectMetadataList", form(t, acceptPartialList, render.Object, nil).ForObject(types.Namespaces), 406,
			"you requested PartialObjectMetadataList, but the requested object is not a list (*core.Namespace)"},
		{"a table with an unknown includeObject", form(t, acceptTable, render.Object, bad).ForObject(types.ConfigMaps), 400,
			`Unable to convert to Table as requested: includeObject: Invalid value: "Bogus": must be 'Metadata', 'Object', 'None', or empty`},
		{"a list as such a table", form(t, acceptTable, render.Collection, bad).ForList(types.ConfigMaps), 400,
			`Unable to convert to Table as requested: includeObject: Invalid value: "Bogus": must be 'Metadata', 'Object', 'None', or empty`},
	} {
		if status := refusal(t, c.check); status.Code != c.code || status.Message != c.message {
			t.Errorf("%s: got %d %q, want %d %q", c.name, status.Code, status.Message, c.code, c.message)
		}
	}
	if err := form(t, "application/json", render.Object, bad).ForObject(types.ConfigMaps); err != nil {
		t.Errorf("includeObject without a table: %v", err)
	}
}

func TestErrorsAreWrittenInWhatTheClientReads(t *testing.T) {
	for accept, want := range map[string]string{
		"":                                  "application/json",
		"application/yaml":                  "application/yaml",
		protobuf:                            protobuf,
		protobuf + ";stream=watch":          protobuf,
		"application/xml":                   "application/json",
		acceptTable:                         "application/json",
		acceptTable + ",application/yaml":   "application/yaml",
		acceptPartialProtobuf:               "application/json",
		acceptPartialProtobuf + ",*/*":      "application/json",
		protobuf + ";q=0.1,application/xml": protobuf,
	} {
		if got := render.ForError(http.Header{"Accept": {accept}}, nil).ContentType(); got != want {
			t.Errorf("Accept %q: error as %q, want %q", accept, got, want)
		}
	}
}

func TestJSONIsIndentedForPeople(t *testing.T) {
	r := newRenderer()
	status := &types.Status{Status: "Success"}
	for _, c := range []struct {
		name, accept, agent string
		query               url.Values
		pretty              bool
	}{
		{name: "a program"},
		{name: "curl", agent: "curl/8.5.0", pretty: true},
		{name: "a browser", agent: "Mozilla/5.0 (X11)", pretty: true},
		{name: "curl that asks for compact JSON", agent: "curl/8.5.0", query: url.Values{"pretty": {"false"}}},
		{name: "pretty=true", query: url.Values{"pretty": {"true"}}, pretty: true},
		{name: "pretty=1", query: url.Values{"pretty": {"1"}}, pretty: true},
		{name: "pretty=yes is no boolean", query: url.Values{"pretty": {"yes"}}},
		{name: "a parameter of the media type", accept: "application/json;pretty=1", pretty: true},
	} {
		f, err := render.Negotiate(http.Header{"Accept": {c.accept}, "User-Agent": {c.agent}}, c.query, render.Object)
		if err != nil {
			t.Fatal(err)
		}
		body, err := r.Status(f, status)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(body), "\n  \"kind\": \"Status\",\n"); got != c.pretty {
			t.Errorf("%s: got %q", c.name, body)
		}
	}
}

// refusal is the Status of an error.
func refusal(t *testing.T, err error) types.Status {
	t.Helper()
	var status *types.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("got %v, want a StatusError", err)
	}
	return status.ErrStatus
}
