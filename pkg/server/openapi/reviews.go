package openapi

import (
	"net/http"
	"reflect"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/cmctl/pkg/types"
)

// questions are the types of one group of which nothing is kept: they are created,
// and answered.
type questions struct {
	group string
	word  string // for the group, in the ids of operations
	types []named
}

// allQuestions are those of all groups.
var allQuestions = []questions{{
	group: authorizationv1.GroupName, word: "Authorization",
	types: []named{authorizationv1.SelfSubjectAccessReview{}, authorizationv1.SelfSubjectRulesReview{}, authorizationv1.SubjectAccessReview{}},
}}

// groupOf is the group of a type that is an object.
func groupOf(t reflect.Type) string {
	for _, q := range allQuestions {
		if reflect.TypeOf(q.types[0]).PkgPath() == t.PkgPath() {
			return q.group
		}
	}
	return ""
}

// reviewDefinitions are the schemas of all questions.
func reviewDefinitions() map[string]*spec.Schema {
	d := definitions{}
	for _, q := range allQuestions {
		for _, t := range q.types {
			d.add(reflect.TypeOf(t))
		}
	}
	return d
}

// addPaths adds the paths of a group.
func (q questions) addPaths(p map[string]spec.PathItem) {
	root, tag := "/apis/"+q.group+"/", strings.ToLower(q.word)
	p[root] = info(tag, "get"+q.word+"APIGroup", "get information of a group", metav1.APIGroup{}, objectTypes)
	p[root+"v1/"] = info(tag+"_v1", "get"+q.word+"V1APIResources", "get available resources", metav1.APIResourceList{}, objectTypes)
	for _, t := range q.types {
		kind, model := reflect.TypeOf(t).Name(), t.OpenAPIModelName()
		p[root+"v1/"+strings.ToLower(kind)+"s"] = item([]spec.Parameter{pretty()}, operations{http.MethodPost: {
			id: "create" + q.word + "V1" + kind, does: "create a " + kind, tag: tag + "_v1", action: "post", group: q.group, kind: kind,
			query: fields(metav1.CreateOptions{}), takes: &body{model: model, consumes: anyType}, produces: types.MediaTypes,
			answers: map[int]string{http.StatusCreated: model},
		}})
	}
}
