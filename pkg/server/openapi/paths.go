package openapi

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/types"
)

// The tags of operations, after which generated clients name their classes.
const (
	coreTag   = "core"
	coreV1Tag = "core_v1"
)

// newSwagger is the OpenAPI v2 document of the whole API.
func newSwagger() *spec.Swagger {
	s := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes ConfigMaps", Version: "unversioned"}},
		Paths:       &spec.Paths{Paths: map[string]spec.PathItem{}},
		Definitions: spec.Definitions{},
	}}
	for name, schema := range Definitions() {
		s.Definitions[name] = *schema
	}
	for name, schema := range historyDefinitions() {
		s.Definitions[name] = *schema
	}
	p := s.Paths.Paths
	p["/api/"] = info(coreTag, "getCoreAPIVersions", "get available API versions", metav1.APIVersions{}, objectTypes)
	p["/apis/"] = info("apis", "getAPIVersions", "get available API groups", metav1.APIGroupList{}, objectTypes)
	p["/api/v1/"] = info(coreV1Tag, "getCoreV1APIResources", "get available resources", metav1.APIResourceList{}, objectTypes)
	p["/version/"] = info("version", "getCodeVersion", "get the version of this server", version.Info{}, textTypes)
	for _, r := range types.Resources {
		newResource(r).addPaths(p)
	}
	for _, r := range types.Reviews {
		addReview(p, r)
	}
	return s
}

// info is a path that tells about the server.
func info(tag, id, does string, answer named, produces []string) spec.PathItem {
	return item(nil, operations{http.MethodGet: {
		id: id, does: does, tag: tag, produces: produces, answers: map[int]string{http.StatusOK: answer.OpenAPIModelName()},
	}})
}

// operations are those of one path, by method.
type operations map[string]operation

func item(shared []spec.Parameter, all operations) spec.PathItem {
	p := spec.PathItem{PathItemProps: spec.PathItemProps{Parameters: shared}}
	slots := map[string]**spec.Operation{
		http.MethodGet: &p.Get, http.MethodPost: &p.Post, http.MethodPut: &p.Put, http.MethodPatch: &p.Patch, http.MethodDelete: &p.Delete,
	}
	for method, o := range all {
		*slots[method] = o.spec()
	}
	return p
}

// resource is a resource with what its operations have in common.
type resource struct {
	*types.Resource
	model, listModel string           // the names of the definitions
	subject          string           // of the ids of its operations
	collection       string           // the path
	shared           []spec.Parameter // by all operations on one path
}

func newResource(r *types.Resource) resource {
	res := resource{
		Resource:   r,
		model:      r.New().(named).OpenAPIModelName(),
		listModel:  r.NewList().(named).OpenAPIModelName(),
		subject:    r.Kind,
		collection: "/" + r.Plural,
		shared:     []spec.Parameter{pretty()},
	}
	if r.Namespaced {
		res.subject = "Namespaced" + r.Kind
		res.collection = "/namespaces/{namespace}/" + r.Plural
		res.shared = byName(append(res.shared, parameter("path", "namespace", "string", "the namespace of the objects")))
	}
	return res
}

func (r resource) addPaths(p map[string]spec.PathItem) {
	const root, watched = "/api/v1", "/api/v1/watch"
	object := r.collection + "/{name}"
	withName := byName(append([]spec.Parameter{parameter("path", "name", "string", "the name of the "+r.Kind)}, r.shared...))

	p[root+r.collection] = item(r.shared, r.collectionOperations())
	p[root+object] = item(withName, r.objectOperations())
	p[watched+r.collection] = item(r.shared, operations{http.MethodGet: r.watch("watchCoreV1"+r.subject+"List", "watchlist")})
	p[watched+object] = item(withName, operations{http.MethodGet: r.watch("watchCoreV1"+r.subject, "watch")})
	if r.Namespaced {
		everywhere := []spec.Parameter{pretty()}
		p[root+"/"+r.Plural] = item(everywhere, operations{http.MethodGet: r.list("listCoreV1" + r.Kind + "ForAllNamespaces")})
		p[watched+"/"+r.Plural] = item(everywhere, operations{
			http.MethodGet: r.watch("watchCoreV1"+r.Kind+"ListForAllNamespaces", "watchlist"),
		})
	}
	if r.Resource == types.ConfigMaps {
		p[root+object+"/history"] = item(withName, operations{http.MethodGet: r.history()})
	}
}

func (r resource) collectionOperations() operations {
	all := operations{
		http.MethodGet: r.list("listCoreV1" + r.subject),
		http.MethodPost: r.operation(operation{
			id: "createCoreV1" + r.subject, does: "create a " + r.Kind, action: "post",
			query: fields(metav1.CreateOptions{}), takes: &body{model: r.model, consumes: anyType},
			answers: map[int]string{http.StatusCreated: r.model},
		}),
	}
	if r.Namespaced {
		all[http.MethodDelete] = r.operation(operation{
			id: "deleteCoreV1Collection" + r.subject, does: "delete the selected objects of kind " + r.Kind, action: "deletecollection",
			query: massDeletion(), takes: deleteOptions(), answers: map[int]string{http.StatusOK: r.listModel},
		})
	}
	return all
}

func (r resource) objectOperations() operations {
	return operations{
		http.MethodGet: r.operation(operation{
			id: "readCoreV1" + r.subject, does: "read a " + r.Kind, action: "get",
			answers: map[int]string{http.StatusOK: r.model},
		}),
		http.MethodPut: r.operation(operation{
			id: "replaceCoreV1" + r.subject, does: "replace a " + r.Kind, action: "put",
			query: fields(metav1.UpdateOptions{}), takes: &body{model: r.model, consumes: anyType},
			answers: map[int]string{http.StatusOK: r.model},
		}),
		http.MethodPatch: r.operation(operation{
			id: "patchCoreV1" + r.subject, does: "change parts of a " + r.Kind + ", or apply it", action: "patch",
			query: fields(metav1.PatchOptions{}), takes: &body{model: metav1.Patch{}.OpenAPIModelName(), consumes: []string{
				string(ktypes.JSONPatchType), string(ktypes.MergePatchType), string(ktypes.StrategicMergePatchType), string(ktypes.ApplyYAMLPatchType),
			}},
			answers: map[int]string{http.StatusOK: r.model, http.StatusCreated: r.model},
		}),
		http.MethodDelete: r.operation(operation{
			id: "deleteCoreV1" + r.subject, does: "delete a " + r.Kind, action: "delete",
			query: deletion(), takes: deleteOptions(), answers: map[int]string{http.StatusOK: metav1.Status{}.OpenAPIModelName()},
		}),
	}
}

// operation fills in what the operations of a resource have in common.
func (r resource) operation(o operation) operation {
	o.tag = coreV1Tag
	if o.kind == "" {
		o.kind = r.Kind
	}
	if o.produces == nil {
		o.produces = objectTypes
	}
	return o
}

func (r resource) list(id string) operation {
	return r.operation(operation{
		id: id, does: "list or watch objects of kind " + r.Kind, action: "list",
		query: selection(), produces: streamTypes, answers: map[int]string{http.StatusOK: r.listModel},
	})
}

func (r resource) watch(id, action string) operation {
	return r.operation(operation{
		id: id, does: "watch objects of kind " + r.Kind + "; deprecated in favour of a list with watch=true", action: action,
		query: selection(), produces: streamTypes, answers: map[int]string{http.StatusOK: metav1.WatchEvent{}.OpenAPIModelName()},
	})
}

func (r resource) history() operation {
	return r.operation(operation{
		id:     "readCoreV1" + r.subject + "History",
		does:   "read where each kept version of a " + r.Kind + " came from, newest first, or one version of it",
		action: "get", kind: types.HistoryKind, produces: textTypes,
		query: []spec.Parameter{parameter("query", "resourceVersion", "string",
			"The version to read. The answer is then the "+r.Kind+" as it was in that version.")},
		answers: map[int]string{http.StatusOK: historyModel},
	})
}

func deleteOptions() *body {
	return &body{model: metav1.DeleteOptions{}.OpenAPIModelName(), consumes: anyType, optional: true}
}
