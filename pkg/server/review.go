package server

import (
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/types"
)

// serveReviews serves the questions that are asked by creating an object, and are
// answered without storing one.
func (s *Server) serveReviews(mux *http.ServeMux) {
	s.handleReview(mux, types.SelfSubjectReviews, s.selfSubjectReview)
	s.handleReview(mux, types.SelfSubjectAccessReviews, s.reviewOwnAccess)
	s.handleReview(mux, types.SelfSubjectRulesReviews, s.reviewOwnRules)
	s.handleReview(mux, types.SubjectAccessReviews, s.reviewAccess)
}

func (s *Server) handleReview(mux *http.ServeMux, review *types.Review, ask verb) {
	path := "/apis/" + review.GroupVersion().String()
	if review.Namespaced {
		path += "/namespaces/{namespace}"
	}
	to := route{group: review.Group, resource: review.Plural}
	s.handle(mux, path+"/"+review.Plural, to, s.serve(nil, verbs{http.MethodPost: ask}))
}

// question reads the body of a review, and warns about or refuses the fields that
// it does not know, as the client asked.
func (s *Server) question(r *request, review *types.Review) (runtime.Object, error) {
	o, err := s.writeOptions(r, "CreateOptions", "create")
	if err != nil {
		return nil, err
	}
	body, mediaType, err := s.body(r)
	if err != nil {
		return nil, err
	}
	question, problems, err := review.Decode(body, mediaType)
	if err != nil {
		return nil, err
	}
	r.auditSent(question)
	return question, r.tell(o.fieldValidation, review.Kind, problems)
}

// reviewAnswer is a question with its answer in it.
func reviewAnswer(answered runtime.Object) (answer, error) {
	a, err := documentAnswer(answered)
	a.code = http.StatusCreated
	return a, err
}

// selfSubjectReview tells callers who they are. Whatever the question holds, the
// answer is about them.
func (s *Server) selfSubjectReview(r *request) (answer, error) {
	if _, err := s.question(r, types.SelfSubjectReviews); err != nil {
		return answer{}, err
	}
	who := r.info.attributes.User
	if who == nil {
		who = authn.Anonymous // nobody is asked
	}
	review := types.SelfSubjectReviews.New().(*authenticationv1.SelfSubjectReview)
	review.CreationTimestamp = metav1.NewTime(s.clock())
	review.Status.UserInfo = authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	for key, values := range who.GetExtra() {
		if review.Status.UserInfo.Extra == nil {
			review.Status.UserInfo.Extra = map[string]authenticationv1.ExtraValue{}
		}
		review.Status.UserInfo.Extra[key] = values
	}
	return reviewAnswer(review)
}
