package types_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// valid is a ConfigMap with nothing wrong, to be changed by a test.
func valid(change func(*types.ConfigMap)) *types.ConfigMap {
	cm := &types.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "flags", Namespace: "default", UID: "u1", ResourceVersion: "1"},
		Data:       map[string]string{"mode": "blue"},
	}
	if change != nil {
		change(cm)
	}
	return cm
}

func set[T any](v T) *T { return &v }

func TestValidateConfigMap(t *testing.T) {
	mib := strings.Repeat("x", types.MaxDataBytes)
	for _, c := range []struct {
		name   string
		change func(*types.ConfigMap)
		want   []string // field: reason of each error, in order
	}{
		{"valid", nil, nil},
		{"empty data", func(cm *types.ConfigMap) { cm.Data = nil }, nil},
		{"no name", func(cm *types.ConfigMap) { cm.Name = "" }, []string{"metadata.name: FieldValueRequired"}},
		{"name of 253", func(cm *types.ConfigMap) { cm.Name = strings.Repeat("n", 253) }, nil},
		{"name of 254", func(cm *types.ConfigMap) { cm.Name = strings.Repeat("n", 254) }, []string{"metadata.name: FieldValueInvalid"}},
		{"name with slash", func(cm *types.ConfigMap) { cm.Name = "a/b" }, []string{"metadata.name: FieldValueInvalid"}},
		{"name climbing up", func(cm *types.ConfigMap) { cm.Name = "../b" }, []string{"metadata.name: FieldValueInvalid"}},
		{"bad namespace", func(cm *types.ConfigMap) { cm.Namespace = "A" }, []string{"metadata.namespace: FieldValueInvalid"}},
		{"key with space", func(cm *types.ConfigMap) { cm.Data["a b"] = "" }, []string{"data[a b]: FieldValueInvalid"}},
		{"key of 254", func(cm *types.ConfigMap) { cm.Data = map[string]string{strings.Repeat("k", 254): ""} },
			[]string{"data[" + strings.Repeat("k", 254) + "]: FieldValueInvalid"}},
		{"binary key", func(cm *types.ConfigMap) { cm.BinaryData = map[string][]byte{"..": nil} }, []string{"binaryData[..]: FieldValueInvalid"}},
		{"several keys, in order", func(cm *types.ConfigMap) { cm.Data = map[string]string{"c c": "", "a a": "", "b b": ""} },
			[]string{"data[a a]: FieldValueInvalid", "data[b b]: FieldValueInvalid", "data[c c]: FieldValueInvalid"}},
		{"key in both", func(cm *types.ConfigMap) { cm.BinaryData = map[string][]byte{"mode": nil} }, []string{"data[mode]: FieldValueInvalid"}},
		{"1 MiB", func(cm *types.ConfigMap) { cm.Data = map[string]string{"k": mib} }, nil},
		{"1 MiB + 1 over both", func(cm *types.ConfigMap) {
			cm.Data = map[string]string{"k": mib}
			cm.BinaryData = map[string][]byte{"b": {1}}
		}, []string{"[]: FieldValueTooLong"}},
		{"label", func(cm *types.ConfigMap) { cm.Labels = map[string]string{"k": "a b"} }, []string{"metadata.labels: FieldValueInvalid"}},
		{"annotations over 256 KiB", func(cm *types.ConfigMap) {
			cm.Annotations = map[string]string{"note": strings.Repeat("x", 256<<10)}
		}, []string{"metadata.annotations: FieldValueTooLong"}},
		{"owner reference", func(cm *types.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p"}}
		}, []string{"metadata.ownerReferences[0].uid: FieldValueRequired"}},
		{"finalizer", func(cm *types.ConfigMap) { cm.Finalizers = []string{"example.com/a b"} }, []string{"metadata.finalizers: FieldValueInvalid"}},
		{"finalizer without a domain", func(cm *types.ConfigMap) { cm.Finalizers = []string{"example.com/a", "b"} }, []string{"metadata.finalizers[1]: FieldValueInvalid"}},
		{"standard finalizers", func(cm *types.ConfigMap) { cm.Finalizers = []string{"foregroundDeletion", "kubernetes"} }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range types.ValidateConfigMap(valid(c.change)) {
				got = append(got, e.Field+": "+string(e.Type))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	immutable := func(cm *types.ConfigMap) { cm.Immutable = set(true) }
	now := metav1.Now()
	for _, c := range []struct {
		name     string
		old, new func(*types.ConfigMap)
		want     []string
	}{
		{"data may change", nil, func(cm *types.ConfigMap) { cm.Data["mode"] = "green" }, nil},
		{"may become immutable", nil, func(cm *types.ConfigMap) { immutable(cm); cm.Data["mode"] = "green" }, nil},
		{"immutable data", immutable, func(cm *types.ConfigMap) { immutable(cm); cm.Data["mode"] = "green" }, []string{"data: FieldValueForbidden"}},
		{"immutable binary data", immutable, func(cm *types.ConfigMap) { immutable(cm); cm.BinaryData = map[string][]byte{"b": nil} },
			[]string{"binaryData: FieldValueForbidden"}},
		{"immutable, and a map where none was", immutable, func(cm *types.ConfigMap) { immutable(cm); cm.BinaryData = map[string][]byte{} },
			[]string{"binaryData: FieldValueForbidden"}},
		{"immutable unset", immutable, nil, []string{"immutable: FieldValueForbidden"}},
		{"immutable unset and data", immutable, func(cm *types.ConfigMap) { cm.Data = nil },
			[]string{"immutable: FieldValueForbidden", "data: FieldValueForbidden"}},
		{"immutable metadata", immutable, func(cm *types.ConfigMap) { immutable(cm); cm.Labels = map[string]string{"a": "b"} }, nil},
		{"other uid", nil, func(cm *types.ConfigMap) { cm.UID = "u2" }, []string{"metadata.uid: FieldValueInvalid"}},
		{"deletion mark", nil, func(cm *types.ConfigMap) { cm.DeletionTimestamp = &now }, []string{"metadata.deletionTimestamp: FieldValueInvalid"}},
		{"a base for names that fits nowhere", nil, func(cm *types.ConfigMap) { cm.GenerateName = "a/b" },
			[]string{"metadata.generateName: FieldValueInvalid", "metadata.generateName: FieldValueInvalid"}},
		{"finalizers, and then data", immutable, func(cm *types.ConfigMap) { cm.Finalizers = []string{"a b"}; cm.Data = map[string]string{"a b": ""} },
			[]string{"metadata.finalizers: FieldValueInvalid", "metadata.finalizers[0]: FieldValueInvalid", "immutable: FieldValueForbidden",
				"data: FieldValueForbidden", "data[a b]: FieldValueInvalid"}},
		{"a wrong label is told once", nil, func(cm *types.ConfigMap) { cm.Labels = map[string]string{"k": "a b"} }, []string{"metadata.labels: FieldValueInvalid"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range types.ValidateUpdate(valid(c.new), valid(c.old)) {
				got = append(got, e.Field+": "+string(e.Type))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzName holds that our rule is apimachinery's, and that no name can leave
// its place in a path or a key.
func FuzzName(f *testing.F) {
	for _, seed := range []string{"flags", "a.b-c", "", ".", "..", "a/b", "../a", "a\x00b", "A", "é", strings.Repeat("n", 254)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		cm := valid(func(cm *types.ConfigMap) { cm.Name = name })
		accepted := len(types.ValidateName(name)) == 0
		if got := len(types.ValidateConfigMap(cm)) == 0; got != accepted {
			t.Fatalf("name %q: ValidateConfigMap accepts: %v, ValidateName accepts: %v", name, got, accepted)
		}
		if accepted && (name == "" || len(name) > 253 || strings.ContainsAny(name, "/\\\x00 %") || strings.Contains(name, "..") || name[0] == '.') {
			t.Fatalf("name %q got through", name)
		}
	})
}

// FuzzKey holds the same for the keys of data, which programs use as file
// names.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{"mode", ".hidden", "a..b", "", ".", "..", "..data", "a/b", "a b", "é", strings.Repeat("k", 254)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		cm := valid(func(cm *types.ConfigMap) { cm.Data = map[string]string{key: ""} })
		accepted := len(types.ValidateKey(key)) == 0
		if got := len(types.ValidateConfigMap(cm)) == 0; got != accepted {
			t.Fatalf("key %q: ValidateConfigMap accepts: %v, ValidateKey accepts: %v", key, got, accepted)
		}
		if accepted && (key == "" || key == "." || len(key) > 253 || strings.HasPrefix(key, "..") || strings.ContainsAny(key, "/\\\x00 ")) {
			t.Fatalf("key %q got through", key)
		}
	})
}
