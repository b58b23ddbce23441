package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	core = "io.k8s.api.core.v1."
	meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
)

// shape is the JSON of a schema without its descriptions.
func shape(t *testing.T, s *spec.Schema) any {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return withoutDescriptions(decode(t, string(data)))
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func withoutDescriptions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for _, value := range v {
			withoutDescriptions(value)
		}
	case []any:
		for _, value := range v {
			withoutDescriptions(value)
		}
	}
	return v
}

func TestDefinitionsHaveTheShapeOfKubernetes(t *testing.T) {
	const str = `{"type": "string"}`
	tests := map[string]string{
		core + "ConfigMap": `{"type": "object", "properties": {
			"apiVersion": ` + str + `, "kind": ` + str + `,
			"metadata": {"$ref": "#/definitions/` + meta + `ObjectMeta", "default": {}},
			"immutable": {"type": "boolean"},
			"data": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
			"binaryData": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}},
			"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}]}`,
		core + "ConfigMapList": `{"type": "object", "required": ["items"], "properties": {
			"apiVersion": ` + str + `, "kind": ` + str + `,
			"metadata": {"$ref": "#/definitions/` + meta + `ListMeta", "default": {}},
			"items": {"type": "array", "items": {"$ref": "#/definitions/` + core + `ConfigMap", "default": {}}}},
			"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMapList"}]}`,
		core + "NamespaceSpec": `{"type": "object", "properties": {"finalizers":
			{"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "atomic"}}}`,
		core + "NamespaceStatus": `{"type": "object", "properties": {
			"phase": {"type": "string", "enum": ["Active", "Terminating"]},
			"conditions": {"type": "array", "items": {"$ref": "#/definitions/` + core + `NamespaceCondition", "default": {}},
				"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
				"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "type"}}}`,
		meta + "OwnerReference": `{"type": "object", "required": ["apiVersion", "kind", "name", "uid"], "properties": {
			"apiVersion": {"type": "string", "default": ""}, "kind": {"type": "string", "default": ""},
			"name": {"type": "string", "default": ""}, "uid": {"type": "string", "default": ""},
			"controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}},
			"x-kubernetes-map-type": "atomic"}`,
		meta + "Preconditions": `{"type": "object", "properties": {"uid": ` + str + `, "resourceVersion": ` + str + `}}`,
		meta + "WatchEvent": `{"type": "object", "required": ["type", "object"], "properties": {
			"type": {"type": "string", "default": ""},
			"object": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.runtime.RawExtension"}},
			"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "WatchEvent"}]}`,
		"io.k8s.api.authentication.v1.SelfSubjectReview": `{"type": "object", "properties": {
			"apiVersion": ` + str + `, "kind": ` + str + `,
			"metadata": {"$ref": "#/definitions/` + meta + `ObjectMeta", "default": {}},
			"status": {"$ref": "#/definitions/io.k8s.api.authentication.v1.SelfSubjectReviewStatus", "default": {}}},
			"x-kubernetes-group-version-kind": [{"group": "authentication.k8s.io", "version": "v1", "kind": "SelfSubjectReview"}]}`,
		"io.k8s.api.authentication.v1.UserInfo": `{"type": "object", "properties": {
			"username": ` + str + `, "uid": ` + str + `,
			"groups": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "atomic"},
			"extra": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string", "default": ""}}}}}`,
		meta + "Time":     `{"type": "string", "format": "date-time"}`,
		meta + "FieldsV1": `{"type": "object"}`,
		meta + "Patch":    `{"type": "object"}`,
	}
	definitions := Definitions()
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			if definitions[name] == nil {
				t.Fatal("there is no such definition")
			}
			if got := shape(t, definitions[name]); !reflect.DeepEqual(got, decode(t, want)) {
				out, _ := json.Marshal(got)
				t.Errorf("the definition is\n%s", out)
			}
		})
	}
}

func TestListsOfMetadataSayHowTheyMerge(t *testing.T) {
	properties := Definitions()[meta+"ObjectMeta"].Properties
	tests := map[string]spec.Extensions{
		"finalizers": {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
		"ownerReferences": {
			"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"uid"},
			"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
		},
		"managedFields": {"x-kubernetes-list-type": "atomic"},
		"labels":        nil,
	}
	for field, want := range tests {
		if got := properties[field].Extensions; !reflect.DeepEqual(got, want) {
			t.Errorf("metadata.%s has extensions %v, not %v", field, got, want)
		}
	}
}

func TestNumbersHaveFormats(t *testing.T) {
	definitions := Definitions()
	for field, want := range map[string]string{
		"ObjectMeta.generation": "int64", "ListMeta.remainingItemCount": "int64", "Status.code": "int32",
	} {
		name, property, _ := strings.Cut(field, ".")
		if got := definitions[meta+name].Properties[property]; !got.Type.Contains("integer") || got.Format != want {
			t.Errorf("%s is a %v of format %q, not an integer of format %q", field, got.Type, got.Format, want)
		}
	}
}

func TestEveryReferenceLeadsToADefinition(t *testing.T) {
	definitions := Definitions()
	for name, s := range definitions {
		for property, p := range s.Properties {
			for _, ref := range []string{p.Ref.String(), itemRef(p)} {
				if ref != "" && definitions[strings.TrimPrefix(ref, DefinitionPrefix)] == nil {
					t.Errorf("%s of %s refers to %s, which isn't there", property, name, ref)
				}
			}
		}
	}
}

func itemRef(s spec.Schema) string {
	if s.Items == nil {
		return ""
	}
	return s.Items.Schema.Ref.String()
}

func TestWhatAReaderOfExplainSeesIsDescribed(t *testing.T) {
	definitions := Definitions()
	for _, name := range []string{
		core + "ConfigMap", core + "Namespace", core + "NamespaceSpec", core + "NamespaceStatus",
		core + "NamespaceCondition", meta + "ObjectMeta", meta + "OwnerReference", meta + "ManagedFieldsEntry",
	} {
		if definitions[name].Description == "" {
			t.Errorf("%s has no description", name)
		}
		for property, p := range definitions[name].Properties {
			if p.Description == "" {
				t.Errorf("%s of %s has no description", property, name)
			}
		}
	}
}

func TestDefinitionsServeForServerSideApply(t *testing.T) {
	if _, err := managedfields.NewTypeConverter(Definitions(), false); err != nil {
		t.Fatal(err)
	}
}

func TestChangingOneSetOfDefinitionsLeavesTheNextAlone(t *testing.T) {
	first := Definitions()
	first[meta+"Time"].Type[0] = "number"
	first[core+"NamespaceStatus"].Properties["phase"].Enum[0] = "Gone"
	second := Definitions()
	if got := second[meta+"Time"].Type[0]; got != "string" {
		t.Errorf("Time is now a %s", got)
	}
	if got := second[core+"NamespaceStatus"].Properties["phase"].Enum[0]; got != "Active" {
		t.Errorf("the first phase is now %v", got)
	}
}
