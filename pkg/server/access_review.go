package server

import (
	"reflect"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/server/authz"
	"example.com/cmctl/pkg/types"
)

// reviewOwnAccess answers whether who asks may do something.
func (s *Server) reviewOwnAccess(r *request) (answer, error) {
	asked, err := s.question(r, types.SelfSubjectAccessReviews)
	if err != nil {
		return answer{}, err
	}
	review := asked.(*authorizationv1.SelfSubjectAccessReview)
	errs := append(checkReviewMeta(review.ObjectMeta), checkQuestion(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)...)
	if len(errs) > 0 {
		return answer{}, types.InvalidReview(authorizationv1.GroupName, review.Kind, errs)
	}
	review.Status = s.judge(questioned(r.info.attributes.User, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes))
	return reviewAnswer(review)
}

// reviewAccess answers whether somebody else may do something.
func (s *Server) reviewAccess(r *request) (answer, error) {
	asked, err := s.question(r, types.SubjectAccessReviews)
	if err != nil {
		return answer{}, err
	}
	review := asked.(*authorizationv1.SubjectAccessReview)
	spec := review.Spec
	errs := append(checkReviewMeta(review.ObjectMeta), checkQuestion(spec.ResourceAttributes, spec.NonResourceAttributes)...)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), "", "at least one of user or group must be specified"))
	}
	if len(errs) > 0 {
		return answer{}, types.InvalidReview(authorizationv1.GroupName, review.Kind, errs)
	}
	who := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		who.Extra[key] = values
	}
	review.Status = s.judge(questioned(who, spec.ResourceAttributes, spec.NonResourceAttributes))
	return reviewAnswer(review)
}

// reviewOwnRules answers what who asks may do in a namespace.
func (s *Server) reviewOwnRules(r *request) (answer, error) {
	asked, err := s.question(r, types.SelfSubjectRulesReviews)
	if err != nil {
		return answer{}, err
	}
	review := asked.(*authorizationv1.SelfSubjectRulesReview)
	namespace := review.Spec.Namespace
	if namespace == "" {
		return answer{}, types.BadRequest("no namespace on request")
	}
	resources, paths := authz.Everything()
	if s.options.Authorizer != nil {
		resources, paths, err = s.options.Authorizer.RulesFor(r.info.attributes.User, namespace)
	}
	// Kubernetes' answer does not repeat the question either.
	review = &authorizationv1.SelfSubjectRulesReview{TypeMeta: review.TypeMeta}
	review.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    make([]authorizationv1.ResourceRule, len(resources)),
		NonResourceRules: make([]authorizationv1.NonResourceRule, len(paths)),
	}
	for i, rule := range resources {
		review.Status.ResourceRules[i] = authorizationv1.ResourceRule{Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(),
			Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames()}
	}
	for i, rule := range paths {
		review.Status.NonResourceRules[i] = authorizationv1.NonResourceRule{Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs()}
	}
	if err != nil {
		review.Status.EvaluationError = err.Error()
	}
	return reviewAnswer(review)
}

// checkReviewMeta refuses metadata: a question has no name.
func checkReviewMeta(m metav1.ObjectMeta) field.ErrorList {
	m.ManagedFields = nil
	if reflect.DeepEqual(m, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), m.Name, "must be empty")}
}

// checkQuestion refuses what asks for nothing, or for two things.
func checkQuestion(resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	if (resource == nil) != (path == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), path, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

// questioned is what a question is about. Selectors give nobody a right here, so
// they don't count.
func questioned(who user.Info, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) *authorizer.AttributesRecord {
	if path != nil {
		return &authorizer.AttributesRecord{User: who, Path: path.Path, Verb: path.Verb}
	}
	return &authorizer.AttributesRecord{
		User: who, Verb: resource.Verb, Namespace: resource.Namespace, APIGroup: resource.Group, APIVersion: resource.Version,
		Resource: resource.Resource, Subresource: resource.Subresource, Name: resource.Name, ResourceRequest: true,
	}
}

// judge answers a question as authorize answers a request.
func (s *Server) judge(a *authorizer.AttributesRecord) authorizationv1.SubjectAccessReviewStatus {
	if s.options.Authorizer == nil {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true,
			Reason: "the server has no access control: it allows every request that reaches it"}
	}
	allowed, reason := s.options.Authorizer.Authorize(a)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: reason}
}
