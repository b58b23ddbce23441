package openapi

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/types"
)

// addReview adds the path of a review, and those that tell of its group.
func addReview(p map[string]spec.PathItem, r *types.Review) {
	short, _, _ := strings.Cut(r.Group, ".")
	title := strings.ToUpper(short[:1]) + short[1:]
	group, version := "/apis/"+r.Group+"/", "/apis/"+r.GroupVersion().String()+"/"
	tag := short + "_" + types.APIVersion

	p[group] = info(short, "get"+title+"APIGroup", "get information of a group", metav1.APIGroup{}, objectTypes)
	p[version] = info(tag, "get"+title+"V1APIResources", "get available resources", metav1.APIResourceList{}, objectTypes)

	path, subject, shared := version+r.Plural, r.Kind, []spec.Parameter{pretty()}
	if r.Namespaced {
		path, subject = version+"namespaces/{namespace}/"+r.Plural, "Namespaced"+r.Kind
		shared = byName(append(shared, parameter("path", "namespace", "string", "the namespace that is asked about")))
	}
	model := r.New().(named).OpenAPIModelName()
	p[path] = item(shared, operations{http.MethodPost: {
		id: "create" + title + "V1" + subject, does: "create a " + r.Kind, tag: tag, action: "post", group: r.Group, kind: r.Kind,
		query: fields(metav1.CreateOptions{}), takes: &body{model: model, consumes: anyType}, produces: objectTypes,
		answers: map[int]string{http.StatusCreated: model},
	}})
}
