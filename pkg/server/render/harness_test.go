package render_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/types"
)

// Accept headers, as clients send them.
const (
	acceptTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
	acceptPartial     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	acceptPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

	protobuf                  = "application/vnd.kubernetes.protobuf"
	acceptPartialProtobuf     = protobuf + ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	acceptPartialListProtobuf = protobuf + ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

var (
	created = metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now     = created.Add(3 * time.Minute)
)

func newRenderer() *render.Renderer {
	return render.New(1<<20, func() time.Time { return now })
}

// form is what an Accept header leads to.
func form(t testing.TB, accept string, at render.Endpoint, query url.Values) render.Form {
	t.Helper()
	f, err := render.Negotiate(http.Header{"Accept": {accept}}, query, at)
	if err != nil {
		t.Fatalf("Negotiate(%q) = %v", accept, err)
	}
	return f
}

func item(t testing.TB, r *types.Resource, o types.Object, version string) render.Item {
	t.Helper()
	e, err := r.Encode(o)
	if err != nil {
		t.Fatal(err)
	}
	return render.Item{Encoded: e, Version: version}
}

func sampleConfigMap() *types.ConfigMap {
	return &types.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Namespace: "ns", UID: "u1", CreationTimestamp: created,
			Labels:      map[string]string{"app": "x", "name": "other"},
			Annotations: map[string]string{"note": `a "quoted" }{ \ brace`},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &created,
				FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{".":{},"f:k":{}}}`),
			}},
		},
		Data:       map[string]string{"k": "v", "data": `{"data":{"x":"\\"}}`},
		BinaryData: map[string][]byte{"b": {0, 1, 2, 0xff}},
	}
}

func sampleNamespace() *types.Namespace {
	ns := types.NewNamespace("ns")
	ns.UID, ns.CreationTimestamp = "u2", created
	return ns
}

// metaCodecs know the kinds of meta.k8s.io, which client-go's scheme does not.
var metaCodecs = func() serializer.CodecFactory {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{metav1.AddMetaToScheme, metav1beta1.AddMetaToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(s)
}()

// decode reads an answer as client-go does.
func decode(t testing.TB, body []byte) runtime.Object {
	t.Helper()
	return decodeWith(t, scheme.Codecs, body)
}

func decodeWith(t testing.TB, codecs serializer.CodecFactory, body []byte) runtime.Object {
	t.Helper()
	o, _, err := codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
	return o
}

// asJSON makes objects comparable: nil and empty, and time zones, don't count.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// typed is an object as a client has it.
func typed(o types.Object, r *types.Resource, version string) types.Object {
	c := o.DeepCopyObject().(types.Object)
	c.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	c.SetResourceVersion(version)
	return c
}
