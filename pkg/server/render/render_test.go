package render_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/types"
)

func TestObjectsInEachForm(t *testing.T) {
	cm := &types.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u1", CreationTimestamp: created},
		Data:       map[string]string{"k": "v", "l": ""}, BinaryData: map[string][]byte{"b": {0, 1, 2}},
	}
	const (
		metadata = `"metadata":{"name":"a","namespace":"ns","uid":"u1","resourceVersion":"7","creationTimestamp":"2026-03-01T12:00:00Z"}`
		object   = `{"kind":"ConfigMap","apiVersion":"v1",` + metadata + `,"data":{"k":"v","l":""},"binaryData":{"b":"AAEC"}}`
		partial  = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + metadata + `}`
	)
	for _, c := range []struct{ name, accept, include, want string }{
		{"JSON", "application/json", "", object + "\n"},
		{"YAML", "application/yaml", "", "apiVersion: v1\nbinaryData:\n  b: AAEC\ndata:\n  k: v\n  l: \"\"\nkind: ConfigMap\nmetadata:\n" +
			"  creationTimestamp: \"2026-03-01T12:00:00Z\"\n  name: a\n  namespace: ns\n  resourceVersion: \"7\"\n  uid: u1\n"},
		{"metadata", acceptPartial, "", partial + "\n"},
		{"metadata v1beta1", strings.ReplaceAll(acceptPartial, "v=v1", "v=v1beta1"), "",
			strings.ReplaceAll(partial, "meta.k8s.io/v1", "meta.k8s.io/v1beta1") + "\n"},
		{"metadata in YAML", "application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "", "apiVersion: meta.k8s.io/v1\nkind: PartialObjectMetadata\n" +
			"metadata:\n  creationTimestamp: \"2026-03-01T12:00:00Z\"\n  name: a\n  namespace: ns\n  resourceVersion: \"7\"\n  uid: u1\n"},
		{"table", acceptTable, "", oneRow("v1", configMapColumns, `{"cells":["a",3,"3m"],"object":`+partial+`}`)},
		{"table v1beta1", strings.ReplaceAll(acceptTable, "v=v1", "v=v1beta1"), "",
			oneRow("v1beta1", configMapColumns, `{"cells":["a",3,"3m"],"object":`+strings.ReplaceAll(partial, "meta.k8s.io/v1", "meta.k8s.io/v1beta1")+`}`)},
		{"table with metadata", acceptTable, "Metadata", oneRow("v1", configMapColumns, `{"cells":["a",3,"3m"],"object":`+partial+`}`)},
		{"table with objects", acceptTable, "Object", oneRow("v1", configMapColumns, `{"cells":["a",3,"3m"],"object":`+object+`}`)},
		{"table alone", acceptTable, "None", oneRow("v1", configMapColumns, `{"cells":["a",3,"3m"],"object":null}`)},
	} {
		f := form(t, c.accept, render.Object, url.Values{"includeObject": {c.include}})
		got, err := newRenderer().Object(f, item(t, types.ConfigMaps, cm, "7"))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// The texts are those of Kubernetes' API documentation.
const (
	nameColumn = `{"name":"Name","type":"string","format":"name","description":"Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names","priority":0}`
	ageColumn  = `{"name":"Age","type":"string","format":"","description":"CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata","priority":0}`

	configMapColumns = `[` + nameColumn + `,{"name":"Data","type":"string","format":"","description":"Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.","priority":0},` + ageColumn + `]`
	namespaceColumns = `[` + nameColumn + `,{"name":"Status","type":"string","format":"","description":"The status of the namespace","priority":0},` + ageColumn + `]`
)

func oneRow(version, columns, row string) string {
	return `{"kind":"Table","apiVersion":"meta.k8s.io/` + version + `","metadata":{"resourceVersion":"7"},"columnDefinitions":` + columns + `,"rows":[` + row + "]}\n"
}

func TestTablesOfNamespacesShowTheirPhase(t *testing.T) {
	terminating := sampleNamespace()
	terminating.Status.Phase = "Terminating"
	unborn := sampleNamespace()
	unborn.CreationTimestamp = metav1.Time{}
	for _, c := range []struct {
		ns    *types.Namespace
		cells string
	}{
		{sampleNamespace(), `["ns","Active","3m"]`},
		{terminating, `["ns","Terminating","3m"]`},
		{unborn, `["ns","Active","<unknown>"]`},
	} {
		f := form(t, acceptTable, render.Object, url.Values{"includeObject": {"None"}})
		got, err := newRenderer().Object(f, item(t, types.Namespaces, c.ns, "7"))
		if want := oneRow("v1", namespaceColumns, `{"cells":`+c.cells+`,"object":null}`); err != nil || string(got) != want {
			t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
		}
	}
}

func TestListsInEachForm(t *testing.T) {
	bare := func(name string) *types.ConfigMap {
		return &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: created}}
	}
	page := render.List{Resource: types.ConfigMaps, Version: "9", Continue: "abc", Remaining: 4,
		Items: []render.Item{item(t, types.ConfigMaps, bare("a"), "7"), item(t, types.ConfigMaps, bare("b"), "8")}}
	empty := render.List{Resource: types.ConfigMaps, Version: "9"}
	const listMeta = `"metadata":{"resourceVersion":"9","continue":"abc","remainingItemCount":4}`
	const a, b = `"metadata":{"name":"a","namespace":"ns","resourceVersion":"7","creationTimestamp":"2026-03-01T12:00:00Z"}`, `"metadata":{"name":"b","namespace":"ns","resourceVersion":"8","creationTimestamp":"2026-03-01T12:00:00Z"}`
	const partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`
	for _, c := range []struct {
		name, accept string
		list         render.List
		want         string
	}{
		{"JSON", "", page, `{"kind":"ConfigMapList","apiVersion":"v1",` + listMeta + `,"items":[{` + a + `},{` + b + `}]}` + "\n"},
		{"empty JSON", "", empty, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}` + "\n"},
		{"empty YAML", "application/yaml", empty, "apiVersion: v1\nitems: []\nkind: ConfigMapList\nmetadata:\n  resourceVersion: \"9\"\n"},
		{"metadata", acceptPartialList, page, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` + listMeta +
			`,"items":[` + partial + a + `},` + partial + b + `}]}` + "\n"},
		{"table", acceptTable, page, `{"kind":"Table","apiVersion":"meta.k8s.io/v1",` + listMeta + `,"columnDefinitions":` + configMapColumns +
			`,"rows":[{"cells":["a",0,"3m"],"object":` + partial + a + `}},{"cells":["b",0,"3m"],"object":` + partial + b + "}}]}\n"},
		{"empty table", acceptTable, empty, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"columnDefinitions":` +
			configMapColumns + `,"rows":[]}` + "\n"},
	} {
		got, err := newRenderer().List(form(t, c.accept, render.Collection, nil), c.list)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// Kubernetes leaves this one list nil.
func TestAnEmptyListOfMetadataHasNullItems(t *testing.T) {
	info, _ := runtime.SerializerInfoForMediaType(metainternal.Codecs.SupportedMediaTypes(), "application/json")
	encoder := metainternal.Codecs.EncoderForVersion(info.Serializer, metav1.SchemeGroupVersion)
	want, err := runtime.Encode(encoder, &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := newRenderer().List(form(t, acceptPartialList, render.Collection, nil), render.List{Resource: types.ConfigMaps, Version: "9"})
	if err != nil || string(got) != string(want) {
		t.Errorf("got %v %s, Kubernetes has %s", err, got, want)
	}
}

func TestADryRunCreateHasNoVersion(t *testing.T) {
	cm := &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for accept, want := range map[string]string{
		"":            `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`,
		acceptPartial: `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`,
		acceptTable: `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":` + configMapColumns +
			`,"rows":[{"cells":["a",0,"<unknown>"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}}]}`,
	} {
		got, err := newRenderer().Object(form(t, accept, render.Object, nil), item(t, types.ConfigMaps, cm, ""))
		if err != nil || string(got) != want+"\n" {
			t.Errorf("Accept %q: got %v\n%s\nwant\n%s", accept, err, got, want)
		}
	}
	body, err := newRenderer().Object(form(t, protobuf, render.Object, nil), item(t, types.ConfigMaps, cm, ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := decode(t, body).(*types.ConfigMap).ResourceVersion; got != "" {
		t.Errorf("in protobuf it has version %q", got)
	}
}

func TestStatusesAreNeverChangedToAnotherKind(t *testing.T) {
	status := types.ConfigMaps.Deleted("a", "u1")
	for _, accept := range []string{"application/json", "application/yaml", protobuf, acceptTable, acceptPartial, acceptPartialProtobuf} {
		body, err := newRenderer().Status(form(t, accept, render.Object, nil), status)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, body); asJSON(t, got) != asJSON(t, status) {
			t.Errorf("Accept %q: got %+v", accept, got)
		}
	}
}

func TestAStatusHasItsTypeEvenIfTheErrorHasNone(t *testing.T) {
	for _, accept := range []string{"", protobuf} {
		body, err := newRenderer().Status(form(t, accept, render.Object, nil), &types.Status{Status: "Failure", Code: 500})
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, body).(*types.Status); got.Kind != "Status" || got.APIVersion != "v1" || got.Code != 500 {
			t.Errorf("Accept %q: got %+v", accept, got)
		}
	}
}

func TestDocumentsCanBeProtobuf(t *testing.T) {
	doc := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"}
	for _, accept := range []string{"application/json", "application/yaml", protobuf} {
		body, err := newRenderer().Document(form(t, accept, render.Document, nil), doc)
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, body); asJSON(t, got) != asJSON(t, doc) {
			t.Errorf("Accept %q: got %+v", accept, got)
		}
	}
}

func TestWhatIsNoKubernetesObjectHasNoProtobuf(t *testing.T) {
	_, err := newRenderer().Document(form(t, protobuf, render.Document, nil), map[string]string{"a": "b"})
	if status := refusal(t, err); status.Code != 406 {
		t.Errorf("got %+v", status)
	}
}

func TestProtobufIsByteForByteWhatKubernetesWrites(t *testing.T) {
	judge := protobufserializer.NewSerializer(nil, nil)
	cm, ns := sampleConfigMap(), sampleNamespace()
	remaining := int64(2)
	listMeta := metav1.ListMeta{ResourceVersion: "9", Continue: "abc", RemainingItemCount: &remaining}
	list := func(r *types.Resource, o types.Object) render.List {
		return render.List{Resource: r, Version: "9", Continue: "abc", Remaining: 2, Items: []render.Item{item(t, r, o, "7")}}
	}
	partial := &metav1.PartialObjectMetadata{ObjectMeta: typed(cm, types.ConfigMaps, "7").(*types.ConfigMap).ObjectMeta}
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))

	for _, c := range []struct {
		name   string
		render func(*render.Renderer) ([]byte, error)
		want   runtime.Object
	}{
		{"ConfigMap", func(r *render.Renderer) ([]byte, error) {
			return r.Object(form(t, protobuf, render.Object, nil), item(t, types.ConfigMaps, cm, "7"))
		}, typed(cm, types.ConfigMaps, "7")},
		{"Namespace", func(r *render.Renderer) ([]byte, error) {
			return r.Object(form(t, protobuf, render.Object, nil), item(t, types.Namespaces, ns, "7"))
		}, typed(ns, types.Namespaces, "7")},
		{"ConfigMapList", func(r *render.Renderer) ([]byte, error) {
			return r.List(form(t, protobuf, render.Collection, nil), list(types.ConfigMaps, cm))
		}, &types.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: listMeta,
			Items: []types.ConfigMap{*typed(cm, types.ConfigMaps, "7").(*types.ConfigMap)}}},
		{"PartialObjectMetadata", func(r *render.Renderer) ([]byte, error) {
			return r.Object(form(t, acceptPartialProtobuf, render.Object, nil), item(t, types.ConfigMaps, cm, "7"))
		}, partial},
		{"PartialObjectMetadataList", func(r *render.Renderer) ([]byte, error) {
			return r.List(form(t, acceptPartialListProtobuf, render.Collection, nil), list(types.ConfigMaps, cm))
		}, &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"},
			ListMeta: listMeta, Items: []metav1.PartialObjectMetadata{*partial}}},
		{"Status", func(r *render.Renderer) ([]byte, error) {
			return r.Status(form(t, protobuf, render.Object, nil), types.ConfigMaps.Deleted("a", "u1"))
		}, types.ConfigMaps.Deleted("a", "u1")},
	} {
		var want bytes.Buffer
		if err := judge.Encode(c.want, &want); err != nil {
			t.Fatal(err)
		}
		r := newRenderer()
		for range 2 { // the second comes from the cache
			got, err := c.render(r)
			if err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%s: got %v\n%q\nwant\n%q", c.name, err, got, want.Bytes())
			}
		}
	}
}

func TestMetadataListsInProtobufKeepTheFieldOrderOfTheirVersion(t *testing.T) {
	list := render.List{Resource: types.ConfigMaps, Version: "9", Items: []render.Item{item(t, types.ConfigMaps, sampleConfigMap(), "7")}}
	f := form(t, strings.ReplaceAll(acceptPartialListProtobuf, "v=v1", "v=v1beta1"), render.Collection, nil)
	body, err := newRenderer().List(f, list)
	if err != nil {
		t.Fatal(err)
	}
	got := decodeWith(t, metaCodecs, body).(*metav1beta1.PartialObjectMetadataList)
	if got.APIVersion != "meta.k8s.io/v1beta1" || got.ResourceVersion != "9" || len(got.Items) != 1 || got.Items[0].Name != "a" {
		t.Errorf("got %+v", got)
	}
}

// The same uid and version don't make the same content: a dry run and an object
// that leaves a selector have other content under a version that exists.
func TestContentsOfTheSameVersionAreNotMixedUp(t *testing.T) {
	r, f := newRenderer(), form(t, protobuf, render.Object, nil)
	for _, value := range []string{"old", "new", "old"} {
		cm := sampleConfigMap()
		cm.Data = map[string]string{"k": value}
		body, err := r.Object(f, item(t, types.ConfigMaps, cm, "7"))
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(t, body).(*types.ConfigMap).Data["k"]; got != value {
			t.Errorf("got %q, want %q", got, value)
		}
	}
}
