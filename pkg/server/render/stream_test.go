package render_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/types"
)

func stream(t testing.TB, r *render.Renderer, accept string, resource *types.Resource, query url.Values) *render.Stream {
	t.Helper()
	s, err := r.Stream(form(t, accept, render.Collection, query), resource)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// must fails the test if an event can't be written.
func must(t testing.TB) func([]byte, error) []byte {
	return func(body []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
}

func TestEventsAreLinesOfJSON(t *testing.T) {
	cm := item(t, types.ConfigMaps, &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", CreationTimestamp: created}, Data: map[string]string{"k": "v"}}, "7")
	ns := item(t, types.Namespaces, &types.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", CreationTimestamp: created}}, "7")
	const (
		metadata = `"metadata":{"name":"a","uid":"u","resourceVersion":"7","creationTimestamp":"2026-03-01T12:00:00Z"}`
		partial  = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`
		end      = `"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}`
		table    = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":`
	)
	for _, c := range []struct {
		name, accept, include string
		resource              *types.Resource
		item                  render.Item
		want                  string
	}{
		{"ConfigMap", "", "", types.ConfigMaps, cm,
			`{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1",` + metadata + `,"data":{"k":"v"}}}
{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"8"}}}
{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1",` + end + `}}
`},
		{"Namespace", "application/json;stream=watch", "", types.Namespaces, ns,
			`{"type":"MODIFIED","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"7","creationTimestamp":"2026-03-01T12:00:00Z"},"spec":{},"status":{}}}
{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"resourceVersion":"8"},"spec":{},"status":{}}}
{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1",` + end + `,"spec":{},"status":{}}}
`},
		{"metadata", acceptPartial, "", types.ConfigMaps, cm,
			`{"type":"MODIFIED","object":` + partial + metadata + `}}
{"type":"BOOKMARK","object":` + partial + `"metadata":{"resourceVersion":"8"}}}
{"type":"BOOKMARK","object":` + partial + end + `}}
`},
		{"table", acceptTable, "", types.ConfigMaps, cm,
			`{"type":"MODIFIED","object":` + table + `"7"},"columnDefinitions":` + configMapColumns + `,"rows":[{"cells":["a",1,"3m"],"object":` + partial + metadata + `}}]}}
{"type":"BOOKMARK","object":` + table + `"8"},"columnDefinitions":null,"rows":[{"cells":["",0,"<unknown>"],"object":` + partial + `"metadata":{"resourceVersion":"8"}}}]}}
{"type":"BOOKMARK","object":` + table + `"9"},"columnDefinitions":null,"rows":[{"cells":["",0,"<unknown>"],"object":` + partial + end + `}}]}}
`},
		{"table alone", acceptTable, "None", types.Namespaces, ns,
			`{"type":"MODIFIED","object":` + table + `"7"},"columnDefinitions":` + namespaceColumns + `,"rows":[{"cells":["n","","3m"],"object":null}]}}
{"type":"BOOKMARK","object":` + table + `"8"},"columnDefinitions":null,"rows":[{"cells":["","","<unknown>"],"object":null}]}}
{"type":"BOOKMARK","object":` + table + `"9"},"columnDefinitions":null,"rows":[{"cells":["","","<unknown>"],"object":` + partial + end + `}}]}}
`},
		{"table with objects", acceptTable, "Object", types.ConfigMaps, cm,
			`{"type":"MODIFIED","object":` + table + `"7"},"columnDefinitions":` + configMapColumns + `,"rows":[{"cells":["a",1,"3m"],"object":{"kind":"ConfigMap","apiVersion":"v1",` + metadata + `,"data":{"k":"v"}}}]}}
{"type":"BOOKMARK","object":` + table + `"8"},"columnDefinitions":null,"rows":[{"cells":["",0,"<unknown>"],"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"8"}}}]}}
{"type":"BOOKMARK","object":` + table + `"9"},"columnDefinitions":null,"rows":[{"cells":["",0,"<unknown>"],"object":{"kind":"ConfigMap","apiVersion":"v1",` + end + `}}]}}
`},
	} {
		s := stream(t, newRenderer(), c.accept, c.resource, url.Values{"includeObject": {c.include}})
		got := must(t)(s.Event(nil, watch.Modified, c.item))
		got = must(t)(s.Bookmark(got, "8"))
		got = must(t)(s.InitialEventsEnd(got, "9"))
		if string(got) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestAnErrorEventIsAStatusInEveryForm(t *testing.T) {
	const want = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
		`"message":"too old resource version: 1 (9)","reason":"Expired","code":410}}` + "\n"
	expired := types.Expired("too old resource version: 1 (9)").ErrStatus
	for _, accept := range []string{"", acceptTable, acceptPartial} {
		s := stream(t, newRenderer(), accept, types.ConfigMaps, nil)
		if got := must(t)(s.Error(nil, &expired)); string(got) != want {
			t.Errorf("Accept %q: got %s", accept, got)
		}
	}
}

func TestStreamsAreOfferedInJSONAndProtobuf(t *testing.T) {
	for accept, want := range map[string]string{
		"":                               "application/json",
		"application/json;stream=watch":  "application/json",
		protobuf:                         protobuf + ";stream=watch",
		protobuf + ";stream=watch":       protobuf + ";stream=watch",
		protobuf + ";stream=watch, */*":  protobuf + ";stream=watch",
		acceptTable:                      "application/json",
		acceptPartialProtobuf:            protobuf + ";stream=watch",
		"application/json;pretty=1, */*": "application/json",
	} {
		if got := stream(t, newRenderer(), accept, types.ConfigMaps, nil).ContentType(); got != want {
			t.Errorf("Accept %q: got %q, want %q", accept, got, want)
		}
	}
	const inYAML = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	for _, c := range []struct {
		accept, include string
		code            int32
		message         string
	}{
		{"application/yaml", "", 406, inYAML},
		{"application/yaml;as=Table;v=v1;g=meta.k8s.io", "", 406, inYAML},
		{acceptPartialList, "", 406, "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"},
		{acceptTable, "Bogus", 400, `Unable to convert to Table as requested: includeObject: Invalid value: "Bogus": must be 'Metadata', 'Object', 'None', or empty`},
	} {
		f := form(t, c.accept, render.Collection, url.Values{"includeObject": {c.include}})
		_, err := newRenderer().Stream(f, types.ConfigMaps)
		if status := refusal(t, err); status.Code != c.code || status.Message != c.message {
			t.Errorf("Accept %q: got %d %q", c.accept, status.Code, status.Message)
		}
	}
}

func TestStreamsAreNeverIndented(t *testing.T) {
	f, err := render.Negotiate(http.Header{"User-Agent": {"curl/8"}}, nil, render.Collection)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newRenderer().Stream(f, types.ConfigMaps)
	if err != nil {
		t.Fatal(err)
	}
	if got := must(t)(s.Bookmark(nil, "8")); bytes.Count(got, []byte("\n")) != 1 {
		t.Errorf("got %s", got)
	}
}

// The stream is read with the decoder of client-go's informers.
func TestInformersReadEveryEvent(t *testing.T) {
	cm := sampleConfigMap()
	expired := types.Expired("too old").ErrStatus
	partial := &metav1.PartialObjectMetadata{ObjectMeta: typed(cm, types.ConfigMaps, "7").(*types.ConfigMap).ObjectMeta}
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	for _, c := range []struct {
		accept string
		codecs serializer.CodecFactory
		want   runtime.Object
	}{
		{"application/json", scheme.Codecs, typed(cm, types.ConfigMaps, "7")},
		{protobuf, scheme.Codecs, typed(cm, types.ConfigMaps, "7")},
		{acceptPartial, metaCodecs, partial},
		{acceptPartialProtobuf, metaCodecs, partial},
	} {
		s := stream(t, newRenderer(), c.accept, types.ConfigMaps, nil)
		var body []byte
		for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			body = must(t)(s.Event(body, event, item(t, types.ConfigMaps, cm, "7")))
		}
		body = must(t)(s.Bookmark(body, "8"))
		body = must(t)(s.InitialEventsEnd(body, "9"))
		events := receive(t, c.codecs, c.accept, body)
		for i, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			if events[i].Type != event || asJSON(t, events[i].Object) != asJSON(t, c.want) {
				t.Errorf("%s: got %s %s\nwant %s %s", c.accept, events[i].Type, asJSON(t, events[i].Object), event, asJSON(t, c.want))
			}
		}
		for i, version := range []string{"8", "9"} {
			mark := events[3+i]
			meta, ok := mark.Object.(metav1.Object)
			end := version == "9"
			if !ok || mark.Type != watch.Bookmark || meta.GetResourceVersion() != version || (meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true") != end {
				t.Errorf("%s: bookmark %s: got %s %s", c.accept, version, mark.Type, asJSON(t, mark.Object))
			}
		}
		if c.accept == acceptPartial || c.accept == acceptPartialProtobuf {
			continue // these codecs know no Status
		}
		failed := receive(t, c.codecs, c.accept, must(t)(s.Error(nil, &expired)))
		if failed[0].Type != watch.Error || asJSON(t, failed[0].Object) != asJSON(t, &expired) {
			t.Errorf("%s: got %s %s", c.accept, failed[0].Type, asJSON(t, failed[0].Object))
		}
	}
}

// receive decodes a whole stream.
func receive(t testing.TB, codecs serializer.CodecFactory, accept string, body []byte) []watch.Event {
	t.Helper()
	media := "application/json"
	if strings.HasPrefix(accept, protobuf) {
		media = protobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
	frames := info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(bytes.NewReader(body)))
	// The types of the events themselves are in client-go's scheme alone.
	own, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	decoder := restwatch.NewDecoder(streaming.NewDecoder(frames, own.StreamSerializer.Serializer), codecs.UniversalDeserializer())
	defer decoder.Close()
	var events []watch.Event
	for {
		event, object, err := decoder.Decode()
		if err == io.EOF {
			return events
		}
		if err != nil {
			t.Fatalf("decode event %d: %v", len(events), err)
		}
		events = append(events, watch.Event{Type: event, Object: object})
	}
}

// However many share them, events are those that each stream would write itself.
func TestSharedEventsAreNotMixedUp(t *testing.T) {
	r := newRenderer()
	one := item(t, types.ConfigMaps, &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}, Data: map[string]string{"k": "1"}}, "7")
	old := item(t, types.ConfigMaps, &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}, Data: map[string]string{"k": "2"}}, "7")
	for range 2 { // made, then found
		for _, accept := range []string{"", acceptPartial, types.MediaProtobuf, types.MediaProtobuf + acceptPartial[len(types.MediaJSON):], acceptTable} {
			for _, event := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
				for _, it := range []render.Item{one, old, {Encoded: one.Encoded, Version: "8"}} {
					s := stream(t, r, accept, types.ConfigMaps, nil)
					want := must(t)(stream(t, r, accept, types.ConfigMaps, nil).Event(nil, event, it))
					if got := must(t)(s.Shared(event, it)); !bytes.Equal(got, want) {
						t.Errorf("Accept %q: %s of version %s is\n%q, want\n%q", accept, event, it.Version, got, want)
					}
				}
			}
		}
	}
}
