package render_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/types"
)

// Whatever an object holds, a client gets it back in every form.
func FuzzObjectsSurviveEveryForm(f *testing.F) {
	f.Add("a", "k", "v", []byte{0, 1}, "note", true)
	f.Add("a.b", "data", `{"data":{"x":"\\\"}"}}`, []byte(nil), `"}{\`, false)
	f.Add("x", "", "line\nline\r\n\t\u2028 \u0085 \x7f", []byte("text"), "<&>", true)
	f.Add("y", "binaryData", "\\", []byte{0xff}, "", true)
	f.Fuzz(func(t *testing.T, name, key, value string, binary []byte, note string, stamped bool) {
		for _, text := range []string{name, key, value, note} {
			if !utf8.ValidString(text) {
				return // refused before it is stored
			}
		}
		if name == "" {
			return
		}
		cm := &types.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{note: value, "name": note}, Labels: map[string]string{"k": key}},
			Data:       map[string]string{key: value, "other": note},
		}
		if binary != nil {
			cm.BinaryData = map[string][]byte{"b" + key: binary}
		}
		if stamped {
			cm.CreationTimestamp = created
		}
		stored := item(t, types.ConfigMaps, cm, "7")
		want := typed(cm, types.ConfigMaps, "7").(*types.ConfigMap)
		checkObjects(t, stored, want)
		checkPartial(t, stored, want)
		checkRow(t, stored, want)
	})
}

func checkObjects(t *testing.T, stored render.Item, want *types.ConfigMap) {
	t.Helper()
	r := newRenderer()
	for _, accept := range []string{"application/json", "application/json;pretty=1", "application/yaml", protobuf} {
		body := must(t)(r.Object(form(t, accept, render.Object, nil), stored))
		if got := decode(t, body); asJSON(t, got) != asJSON(t, want) {
			t.Errorf("%s: got %s\nwant %s", accept, asJSON(t, got), asJSON(t, want))
		}
		body = must(t)(r.List(form(t, accept, render.Collection, nil), render.List{Resource: types.ConfigMaps, Version: "9", Items: []render.Item{stored, stored}}))
		bare := *want
		bare.TypeMeta = metav1.TypeMeta{}
		if got := decode(t, body).(*types.ConfigMapList); len(got.Items) != 2 || asJSON(t, got.Items[1]) != asJSON(t, bare) {
			t.Errorf("list in %s: got %s\nwant %s", accept, asJSON(t, got.Items), asJSON(t, bare))
		}
	}
	for _, accept := range []string{"application/json", protobuf} {
		s := stream(t, r, accept, types.ConfigMaps, nil)
		events := receive(t, scheme.Codecs, accept, must(t)(s.Event(nil, watch.Added, stored)))
		if len(events) != 1 || asJSON(t, events[0].Object) != asJSON(t, want) {
			t.Errorf("event in %s: got %v", accept, events)
		}
	}
}

func checkPartial(t *testing.T, stored render.Item, want *types.ConfigMap) {
	t.Helper()
	partial := meta.AsPartialObjectMetadata(want)
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	for _, accept := range []string{acceptPartial, acceptPartialProtobuf} {
		body := must(t)(newRenderer().Object(form(t, accept, render.Object, nil), stored))
		if got := decodeWith(t, metaCodecs, body); asJSON(t, got) != asJSON(t, partial) {
			t.Errorf("%s: got %s\nwant %s", accept, asJSON(t, got), asJSON(t, partial))
		}
	}
}

func checkRow(t *testing.T, stored render.Item, want *types.ConfigMap) {
	t.Helper()
	var table metav1.Table
	body := must(t)(newRenderer().Object(form(t, acceptTable, render.Object, nil), stored))
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	age := "<unknown>"
	if !want.CreationTimestamp.IsZero() {
		age = "3m"
	}
	cells := []any{want.Name, len(want.Data) + len(want.BinaryData), age}
	if len(table.Rows) != 1 || asJSON(t, table.Rows[0].Cells) != asJSON(t, cells) {
		t.Errorf("got rows %s, want cells %s", asJSON(t, table.Rows), asJSON(t, cells))
	}
}
