package client_test

import (
	"errors"
	"testing"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// full is a document with everything that a ConfigMap can have, and more.
const full = `{
	"apiVersion": "v1", "kind": "ConfigMap",
	"metadata": {
		"name": "flags", "namespace": "team-a", "uid": "u-1", "resourceVersion": "7",
		"generation": 9007199254740993, "creationTimestamp": "2026-01-02T03:04:05Z",
		"labels": {"tier": "web"}, "annotations": {"note": "x"}, "finalizers": ["a/b"], "novel": {"n": 1.50},
		"managedFields": [{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}, "novel": 1}]
	},
	"data": {"mode": "fast"}, "binaryData": {"logo": "AAEC"}, "novel": [1, 2.0]
}`

func parse(t *testing.T, text string) types.Document {
	t.Helper()
	d, err := types.ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestATypedEditChangesWhatItChangesAndNothingElse(t *testing.T) {
	yes := true
	data := func(key string) types.Field { return types.Field{Section: "data", Key: key} }
	for name, c := range map[string]struct {
		edit func(*types.ConfigMap)
		want map[types.Field]any
	}{
		"set a key":     {func(cm *types.ConfigMap) { cm.Data["mode"] = "slow" }, map[types.Field]any{data("mode"): "slow"}},
		"add a key":     {func(cm *types.ConfigMap) { cm.Data["new"] = "" }, map[types.Field]any{data("new"): ""}},
		"remove a key":  {func(cm *types.ConfigMap) { delete(cm.Data, "mode") }, map[types.Field]any{data("mode"): nil}},
		"drop the data": {func(cm *types.ConfigMap) { cm.Data = nil }, map[types.Field]any{data("mode"): nil}},
		"set bytes":     {func(cm *types.ConfigMap) { cm.BinaryData["logo"] = []byte{9} }, map[types.Field]any{data("logo"): types.Binary("CQ==")}},
		"turn text into bytes": {func(cm *types.ConfigMap) { delete(cm.Data, "mode"); cm.BinaryData["mode"] = []byte{9} },
			map[types.Field]any{data("mode"): types.Binary("CQ==")}},
		"set a label": {func(cm *types.ConfigMap) { cm.Labels["tier"] = "db" },
			map[types.Field]any{{Section: "metadata.labels", Key: "tier"}: "db"}},
		"remove the annotations": {func(cm *types.ConfigMap) { cm.Annotations = nil },
			map[types.Field]any{{Section: "metadata.annotations", Key: "note"}: nil}},
		"remove the finalizers": {func(cm *types.ConfigMap) { cm.Finalizers = nil },
			map[types.Field]any{{Section: "metadata", Key: "finalizers"}: nil}},
		"freeze": {func(cm *types.ConfigMap) { cm.Immutable = &yes }, map[types.Field]any{{Key: "immutable"}: true}},
	} {
		t.Run(name, func(t *testing.T) {
			fresh, want := parse(t, full), parse(t, full)
			for f, v := range c.want {
				want.Set(f, v)
			}
			got, err := client.EditConfigMap(func(cm *types.ConfigMap) error { c.edit(cm); return nil })(t.Context(), fresh)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Equal(want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if !fresh.Equal(parse(t, full)) {
				t.Error("the fresh copy was changed")
			}
		})
	}
}

func TestATypedEditThatChangesNothing(t *testing.T) {
	for name, text := range map[string]string{
		"of a full one":   full,
		"of an empty one": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"}}`,
		"with empty maps": `{"metadata":{"name":"flags","labels":{}},"data":{}}`,
		"with nulls":      `{"metadata":{"name":"flags","creationTimestamp":null},"data":null}`,
		"with odd base64": `{"metadata":{"name":"flags"},"binaryData":{"a":"AAEC\n"}}`,
	} {
		got, err := client.EditConfigMap(func(*types.ConfigMap) error { return nil })(t.Context(), parse(t, text))
		if !errors.Is(err, retry.ErrUnchanged) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestATypedEditMustNotChangeTheIdentity(t *testing.T) {
	for name, edit := range map[string]func(*types.ConfigMap){
		"name":               func(cm *types.ConfigMap) { cm.Name = "other" },
		"namespace":          func(cm *types.ConfigMap) { cm.Namespace = "other" },
		"uid":                func(cm *types.ConfigMap) { cm.UID = "other" },
		"resourceVersion":    func(cm *types.ConfigMap) { cm.ResourceVersion = "8" },
		"managedFields":      func(cm *types.ConfigMap) { cm.ManagedFields = nil },
		"together with data": func(cm *types.ConfigMap) { cm.Data["mode"] = "slow"; cm.Name = "other" },
	} {
		got, err := client.EditConfigMap(func(cm *types.ConfigMap) error { edit(cm); return nil })(t.Context(), parse(t, full))
		if err == nil || errors.Is(err, retry.ErrUnchanged) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestAFailedEditEndsWithItsError(t *testing.T) {
	broken := errors.New("broken")
	if _, err := client.EditConfigMap(func(*types.ConfigMap) error { return broken })(t.Context(), parse(t, full)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := client.EditConfigMap(func(*types.ConfigMap) error { return nil })(t.Context(),
		parse(t, `{"metadata":{"name":"flags"},"data":{"a":1}}`)); err == nil || errors.Is(err, retry.ErrUnchanged) {
		t.Errorf("a number in data: got %v", err)
	}
}

func TestDocumentsAndTypedConfigMapsConvert(t *testing.T) {
	cm, err := client.ToConfigMap(parse(t, full))
	if err != nil {
		t.Fatal(err)
	}
	if cm.Data["mode"] != "fast" || string(cm.BinaryData["logo"]) != "\x00\x01\x02" || cm.Generation != 9007199254740993 {
		t.Errorf("got %+v", cm)
	}
	bare := &types.ConfigMap{Data: map[string]string{"a": "<&>"}}
	bare.Name = "flags"
	d, err := client.FromConfigMap(bare)
	if err != nil {
		t.Fatal(err)
	}
	if want := parse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"a":"<&>"}}`); !d.Equal(want) {
		t.Errorf("got %v, want %v", d, want)
	}
}
