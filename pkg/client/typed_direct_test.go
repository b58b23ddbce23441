package client

import (
	"reflect"
	"testing"

	"example.com/cmctl/pkg/types"
)

// Without JSON a document becomes the same ConfigMap as through it.
func FuzzDirect(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}, "annotations": {"e": "f<\u2028"}}}`,
		`{"data": {"a": "b", "c": ""}, "immutable": true}`, `{"immutable": false}`, `{"data": {}}`, `{"metadata": {"labels": {}}}`,
		`{"data": null}`, `{"metadata": null}`, `{"data": {"a": 1}}`, `{"kind": 1}`, `{"Data": {}}`, `{"metadata": {"uid": "u"}}`, `{"immutable": "true"}`, `{"metadata": []}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := types.ParseDocument(text)
		if err != nil {
			return
		}
		got, ok := direct(d)
		if !ok {
			return
		}
		if want, err := throughJSON(d); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nbecame %#v\nthrough JSON %#v, %v", text, got, want, err)
		}
	})
}

func TestMostManifestsAreReadWithoutJSON(t *testing.T) {
	d := types.NewDocument("team-a", "app")
	d.Set(types.Field{Section: "data", Key: "mode"}, "fast")
	d.Set(types.Field{Section: "metadata.labels", Key: "tier"}, "web")
	if _, ok := direct(d); !ok {
		t.Error("it was not")
	}
	d.SetMeta("uid", "u")
	if _, ok := direct(d); ok {
		t.Error("a uid was read without JSON")
	}
}
