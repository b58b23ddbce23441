package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/types"
)

// DefinitionPrefix begins every reference from one definition to another.
const DefinitionPrefix = "#/definitions/"

// Definitions are the OpenAPI v2 schemas of all types that the API reads or
// answers, by their names in Kubernetes' own document, such as
// io.k8s.api.core.v1.ConfigMap. They have the defaults that Kubernetes keeps
// for v3 and leaves out of v2. Every call makes new ones, which the caller may
// change.
func Definitions() map[string]*spec.Schema {
	d := definitions{}
	for _, root := range roots {
		d.add(reflect.TypeOf(root))
	}
	for _, r := range types.Reviews {
		d.add(reflect.TypeOf(r.New()).Elem())
	}
	return d
}

// roots are the types from which all others are reached.
var roots = []named{
	corev1.ConfigMap{}, corev1.ConfigMapList{},
	corev1.Namespace{}, corev1.NamespaceList{},
	metav1.DeleteOptions{}, metav1.Patch{}, metav1.Status{}, metav1.WatchEvent{},
	metav1.APIVersions{}, metav1.APIGroupList{}, metav1.APIResourceList{}, version.Info{},
}

// named is a type with a definition of its own.
type named interface {
	// OpenAPIModelName is the name of its definition.
	OpenAPIModelName() string
}

// documented is a type that carries its descriptions by JSON name, its own
// under "".
type documented interface {
	SwaggerDoc() map[string]string
}

// opaque are the types whose JSON doesn't follow from their Go fields.
var opaque = map[reflect.Type]spec.SchemaProps{
	reflect.TypeFor[metav1.Time](): {
		Type: spec.StringOrArray{"string"}, Format: "date-time",
		Description: "A point in time, in the form of RFC 3339 and with whole seconds.",
	},
	reflect.TypeFor[metav1.FieldsV1]():      {Type: spec.StringOrArray{"object"}},
	reflect.TypeFor[metav1.Patch]():         {Type: spec.StringOrArray{"object"}},
	reflect.TypeFor[runtime.RawExtension](): {Type: spec.StringOrArray{"object"}, Description: "Any object, of a kind that it names itself."},
}

// undocumented are the descriptions of types that don't carry them.
var undocumented = map[reflect.Type]map[string]string{
	reflect.TypeFor[version.Info](): {"": "Info contains versioning information."},
	reflect.TypeFor[metav1.WatchEvent](): {
		"":       "Event represents a single event to a watched resource.",
		"object": "The new state of an added or modified object, the last state of a deleted one, or the Status of an error.",
	},
}

// phases are the values of the one field with a closed set of them, and phasesText
// is how Kubernetes' generator adds them to its description.
var (
	phases     = []any{string(corev1.NamespaceActive), string(corev1.NamespaceTerminating)}
	phasesText = "\n\nPossible enum values:\n" +
		" - `\"Active\"` means the namespace is available for use in the system\n" +
		" - `\"Terminating\"` means the namespace is undergoing graceful termination"
)

// mergedLists are the lists that writers own item by item; the key is what
// tells the items of a map apart. All other lists have one owner.
var mergedLists = map[string]struct{ kind, key string }{
	"ObjectMeta.finalizers":      {kind: "set"},
	"ObjectMeta.ownerReferences": {kind: "map", key: "uid"},
	"NamespaceStatus.conditions": {kind: "map", key: "type"},
}

// plainLists have no list type in Kubernetes.
var plainLists = map[string]bool{"ConfigMapList.items": true, "NamespaceList.items": true, "APIResource.verbs": true}

// definitions are those found so far, by name.
type definitions map[string]*spec.Schema

// add defines a type and all that it refers to, and gives its name.
func (d definitions) add(t reflect.Type) string {
	name := reflect.Zero(t).Interface().(named).OpenAPIModelName()
	if d[name] != nil {
		return name
	}
	s := &spec.Schema{}
	d[name] = s // before its fields: a type may refer to itself
	doc := descriptions(t)
	if props, ok := opaque[t]; ok {
		s.SchemaProps = props
		s.Type = slices.Clone(props.Type)
	} else {
		s.Type = spec.StringOrArray{"object"}
		s.Properties = map[string]spec.Schema{}
		d.fields(s, t, doc)
	}
	if s.Description == "" {
		s.Description = doc[""]
	}
	if isObject(t) {
		s.AddExtension("x-kubernetes-group-version-kind", []any{
			groupVersionKind(groupOf(t), t.Name()),
		})
	}
	if t == reflect.TypeFor[metav1.OwnerReference]() {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
	return name
}

// isObject says whether a body of this type names its kind, which a WatchEvent
// has in Kubernetes' document only.
func isObject(t reflect.Type) bool {
	_, ok := t.FieldByName("TypeMeta")
	return ok || t == reflect.TypeFor[metav1.WatchEvent]()
}

// groupOf is the group of what a body of this type says that it is.
func groupOf(t reflect.Type) string {
	for _, r := range types.Reviews {
		if reflect.TypeOf(r.New()).Elem() == t {
			return r.Group
		}
	}
	return corev1.GroupName
}

func descriptions(t reflect.Type) map[string]string {
	if doc, ok := undocumented[t]; ok {
		return doc
	}
	if d, ok := reflect.Zero(t).Interface().(documented); ok {
		return d.SwaggerDoc()
	}
	return nil
}

// fields adds the properties that the fields of t are in JSON.
func (d definitions) fields(s *spec.Schema, t reflect.Type, doc map[string]string) {
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case len(f.Index) > 1: // belongs to an embedded type, handled with that
			continue
		case name == "" && f.Anonymous:
			d.fields(s, f.Type, descriptions(f.Type))
			continue
		}
		optional := strings.Contains(options, "omitempty")
		s.Properties[name] = d.property(t.Name()+"."+name, f, doc[name], optional)
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
}

// property is the schema of a field, whose path is the name of its struct and
// its own.
func (d definitions) property(path string, f reflect.StructField, description string, optional bool) spec.Schema {
	p := d.value(f.Type)
	p.Description = description
	if f.Type == reflect.TypeFor[corev1.NamespacePhase]() {
		p.Enum = slices.Clone(phases)
		p.Description += phasesText
	}
	if optional && f.Type.Kind() != reflect.Struct {
		p.Default = nil
	}
	if f.Type.Kind() == reflect.Slice && !plainLists[path] {
		addListType(&p, path)
	}
	if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
		p.AddExtension("x-kubernetes-patch-strategy", strategy)
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		p.AddExtension("x-kubernetes-patch-merge-key", key)
	}
	return p
}

func addListType(p *spec.Schema, path string) {
	list, ok := mergedLists[path]
	if !ok {
		list.kind = "atomic"
	}
	p.AddExtension("x-kubernetes-list-type", list.kind)
	if list.key != "" {
		p.AddExtension("x-kubernetes-list-map-keys", []any{list.key})
	}
}

// value is the schema of a value that is always there, such as an item of a
// list, with the default that stands for a null.
func (d definitions) value(t reflect.Type) spec.Schema {
	var s spec.Schema
	switch t.Kind() {
	case reflect.Pointer:
		return d.value(t.Elem())
	case reflect.Struct:
		s.Ref = spec.MustCreateRef(DefinitionPrefix + d.add(t))
		if _, ok := opaque[t]; !ok {
			s.Default = map[string]any{}
		}
	case reflect.Map:
		values := d.value(t.Elem())
		s.Type = spec.StringOrArray{"object"}
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.Typed("string", "byte")
			return s
		}
		items := d.value(t.Elem())
		s.Type = spec.StringOrArray{"array"}
		s.Items = &spec.SchemaOrArray{Schema: &items}
	case reflect.String:
		s.Typed("string", "").WithDefault("")
	case reflect.Bool:
		s.Typed("boolean", "").WithDefault(false)
	case reflect.Int32, reflect.Int64:
		s.Typed("integer", t.Kind().String()).WithDefault(0)
	default:
		// A served type with such a field fails the tests of this package.
		panic(fmt.Sprintf("no OpenAPI schema for Go type %s", t))
	}
	return s
}
