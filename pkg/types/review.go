package types

import (
	"cmp"
	"fmt"
	"reflect"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Review is a question to the server, asked by creating an object that is answered
// and not stored. Reviews are shared and never change.
type Review struct {
	Group      string
	Plural     string // in paths
	Singular   string
	Kind       string
	Namespaced bool

	object reflect.Type // of the struct
}

// SelfSubjectReviews ask who the caller is.
var SelfSubjectReviews = &Review{
	Group: authenticationv1.GroupName, Plural: "selfsubjectreviews", Singular: "selfsubjectreview", Kind: "SelfSubjectReview",
	object: reflect.TypeFor[authenticationv1.SelfSubjectReview](),
}

// SelfSubjectAccessReviews ask whether the caller may do something.
var SelfSubjectAccessReviews = &Review{
	Group: authorizationv1.GroupName, Plural: "selfsubjectaccessreviews", Singular: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview",
	object: reflect.TypeFor[authorizationv1.SelfSubjectAccessReview](),
}

// SelfSubjectRulesReviews ask what the caller may do in a namespace.
var SelfSubjectRulesReviews = &Review{
	Group: authorizationv1.GroupName, Plural: "selfsubjectrulesreviews", Singular: "selfsubjectrulesreview", Kind: "SelfSubjectRulesReview",
	object: reflect.TypeFor[authorizationv1.SelfSubjectRulesReview](),
}

// SubjectAccessReviews ask whether somebody may do something.
var SubjectAccessReviews = &Review{
	Group: authorizationv1.GroupName, Plural: "subjectaccessreviews", Singular: "subjectaccessreview", Kind: "SubjectAccessReview",
	object: reflect.TypeFor[authorizationv1.SubjectAccessReview](),
}

// Reviews are all there are, sorted by group and name.
var Reviews = []*Review{SelfSubjectReviews, SelfSubjectAccessReviews, SelfSubjectRulesReviews, SubjectAccessReviews}

// GroupVersion is the version of the review's group that is served.
func (r *Review) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: APIVersion}
}

// New is an empty question with its type set.
func (r *Review) New() runtime.Object {
	o := reflect.New(r.object).Interface().(runtime.Object)
	o.GetObjectKind().SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind))
	return o
}

// Decode reads a question as Resource.Decode reads an object.
func (r *Review) Decode(body []byte, mediaType string) (question runtime.Object, problems []string, err error) {
	question = r.New()
	problems, err = decode(body, mediaType, question, r.Kind, r.checkType)
	if err != nil {
		return nil, nil, err
	}
	question.GetObjectKind().SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind))
	return question, problems, nil
}

// checkType refuses bodies that say that they are something else.
func (r *Review) checkType(t typeMeta) error {
	wanted := r.GroupVersion().String()
	if (t.Kind == "" || t.Kind == r.Kind) && (t.APIVersion == "" || t.APIVersion == wanted) {
		return nil
	}
	return BadRequest(unhandled(cmp.Or(t.Kind, r.Kind), cmp.Or(t.APIVersion, wanted), r.Kind,
		fmt.Sprintf("this path takes kind %s of apiVersion %s only", r.Kind, wanted)))
}
