package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// selection are the parameters of lists and watches.
func selection() []spec.Parameter { return fields(metav1.ListOptions{}, "shardSelector") }

// deletion are the parameters of the deletion of one object.
func deletion() []spec.Parameter {
	return fields(metav1.DeleteOptions{}, "ignoreStoreReadErrorWithClusterBreakingPotential")
}

// massDeletion are the parameters of the deletion of many objects, which selects
// them as a list does, but doesn't watch.
func massDeletion() []spec.Parameter {
	all := slices.DeleteFunc(selection(), func(p spec.Parameter) bool {
		return p.Name == "watch" || p.Name == "allowWatchBookmarks"
	})
	return byName(append(all, deletion()...))
}

// fields are the query parameters that the fields of an option type are, but for
// those that this server does not know. Fields with fields of their own don't fit
// into a query.
func fields(options documented, unknown ...string) []spec.Parameter {
	var all []spec.Parameter
	descriptions := options.SwaggerDoc()
	for _, f := range reflect.VisibleFields(reflect.TypeOf(options)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := queryType(f.Type)
		if kind == "" || len(f.Index) > 1 || slices.Contains(unknown, name) {
			continue
		}
		all = append(all, parameter("query", name, kind, descriptions[name]))
	}
	return byName(all)
}

// queryType is the type of a query parameter, empty where the Go type has none. A
// list is a parameter that may be repeated, as Kubernetes has it.
func queryType(t reflect.Type) string {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int64:
		return "integer"
	}
	return ""
}

func byName(all []spec.Parameter) []spec.Parameter {
	slices.SortFunc(all, func(a, b spec.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// parameter is one parameter in the path or the query. Those in the path are
// always there.
func parameter(in, name, kind, description string) spec.Parameter {
	return spec.Parameter{
		ParamProps:   spec.ParamProps{In: in, Name: name, Description: description, Required: in == "path"},
		SimpleSchema: spec.SimpleSchema{Type: kind},
	}
}

// pretty is understood on every path.
func pretty() spec.Parameter {
	return parameter("query", "pretty", "string", "If 'true', JSON is indented.")
}
