package openapi

import (
	"net/http"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/types"
)

// operation is what one method does on one path.
type operation struct {
	id     string // by which generated clients name their functions
	does   string
	tag    string // operations of one tag become one class of generated clients
	action string // Kubernetes' word for the verb, empty where there is no object
	group  string // of the object
	kind   string // of the object

	query    []spec.Parameter
	takes    *body // nil: no body
	produces []string
	answers  map[int]string // the type of the body, by status code
}

// body is what a request carries.
type body struct {
	model    string // the name of its definition
	consumes []string
	optional bool
}

var (
	// objectTypes are what objects are written as.
	objectTypes = types.MediaTypes
	// streamTypes are what lists are written as, or watch events.
	streamTypes = append(types.MediaTypes[:len(types.MediaTypes):len(types.MediaTypes)],
		types.MediaJSON+";stream=watch", types.MediaProtobuf+";stream=watch")
	// textTypes are what has no protobuf form is written as.
	textTypes = []string{types.MediaJSON, types.MediaYAML}
	// anyType stands for all types that an object may be written as.
	anyType = []string{"*/*"}
)

// spec is the operation as OpenAPI v2 has it.
func (o operation) spec() *spec.Operation {
	op := &spec.Operation{OperationProps: spec.OperationProps{
		ID:          o.id,
		Description: o.does,
		Tags:        []string{o.tag},
		Produces:    o.produces,
		Consumes:    anyType,
		Parameters:  o.query,
		Responses:   &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{}}},
	}}
	if o.takes != nil {
		op.Consumes = o.takes.consumes
		op.Parameters = append([]spec.Parameter{{ParamProps: spec.ParamProps{
			In: "body", Name: "body", Required: !o.takes.optional, Schema: spec.RefSchema(DefinitionPrefix + o.takes.model),
		}}}, o.query...)
	}
	for code, model := range o.answers {
		op.Responses.StatusCodeResponses[code] = spec.Response{ResponseProps: spec.ResponseProps{
			Description: http.StatusText(code),
			Schema:      spec.RefSchema(DefinitionPrefix + model),
		}}
	}
	if o.action != "" {
		op.AddExtension("x-kubernetes-action", o.action)
		op.AddExtension("x-kubernetes-group-version-kind", groupVersionKind(o.group, o.kind))
	}
	return op
}

func groupVersionKind(group, kind string) map[string]any {
	return map[string]any{"group": group, "version": types.APIVersion, "kind": kind}
}
