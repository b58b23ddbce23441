package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// ErrNoAccessControl says that a server has no API to ask about access, as one
// has that tells no callers apart and allows everything.
var ErrNoAccessControl = errors.New("the server has no access control")

// Access is something to do with ConfigMaps.
type Access struct {
	Verb        string // the API's: get, list, update, or * for all
	Subresource string // history, or empty for the ConfigMaps themselves
	Name        string // empty for any
	Namespace   string // empty for all
}

// AccessAnswer is what a server says of it.
type AccessAnswer struct {
	Allowed bool
	Reason  string // may be empty
}

// AccessRule allows verbs on ConfigMaps or subresources of theirs.
type AccessRule struct {
	Resources []string // configmaps, configmaps/history, */history, or * for all
	Verbs     []string
	Names     []string // empty for all
}

// CanI asks whether the caller may do that. ErrNoAccessControl means that nobody
// is refused anything.
func (c *Client) CanI(ctx context.Context, what Access) (AccessAnswer, error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: what.Namespace, Verb: what.Verb, Resource: types.ConfigMaps.Plural, Subresource: what.Subresource, Name: what.Name, Version: "v1",
		}},
	}
	err := c.review(ctx, authorizationv1.GroupName, "selfsubjectaccessreviews", "what you may do", &review)
	return AccessAnswer{Allowed: review.Status.Allowed, Reason: review.Status.Reason}, err
}

// AccessRules are all that the caller may do with ConfigMaps in a namespace.
// They are complete only if the server says so. ErrNoAccessControl means that
// nobody is refused anything.
func (c *Client) AccessRules(ctx context.Context, namespace string) (rules []AccessRule, complete bool, err error) {
	review := authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectRulesReview"},
		Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	if err := c.review(ctx, authorizationv1.GroupName, "selfsubjectrulesreviews", "what you may do", &review); err != nil {
		return nil, false, err
	}
	for _, r := range review.Status.ResourceRules {
		concerned := ofConfigMaps(r.Resources)
		if len(concerned) > 0 && (slices.Contains(r.APIGroups, "") || slices.Contains(r.APIGroups, "*")) {
			rules = append(rules, AccessRule{Resources: concerned, Verbs: r.Verbs, Names: r.ResourceNames})
		}
	}
	return rules, !review.Status.Incomplete, nil
}

// ofConfigMaps are those of a rule's resources that are, or include, ConfigMaps or a
// subresource of theirs.
func ofConfigMaps(resources []string) []string {
	var concerned []string
	for _, resource := range resources {
		of, _, _ := strings.Cut(resource, "/")
		if of == types.ConfigMaps.Plural || of == "*" {
			concerned = append(concerned, resource)
		}
	}
	return concerned
}

// User is whom a server takes a caller for.
type User struct {
	Username string   `json:"username"`
	UID      string   `json:"uid,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

// WhoAmI asks whom the server takes the caller for. ErrNoAccessControl means that
// it tells no callers apart.
func (c *Client) WhoAmI(ctx context.Context) (User, error) {
	review := authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"},
	}
	err := c.review(ctx, authenticationv1.GroupName, "selfsubjectreviews", "who you are", &review)
	u := review.Status.UserInfo
	return User{Username: u.Username, UID: u.UID, Groups: u.Groups}, err
}

// review asks a question by a POST that stores nothing, and reads the answer
// into it.
func (c *Client) review(ctx context.Context, group, resource, about string, question any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	k := call{method: http.MethodPost, path: []string{"apis", group, "v1", resource}, body: body, asks: true, object: about, limit: objectLimit}
	a, err := c.do(ctx, k)
	if absent := c.lacks(ctx, group, err); absent != nil {
		return absent
	}
	if json.Unmarshal(a.body, question) != nil {
		return c.notTheObject(k, a)
	}
	return nil
}

// lacks is ErrNoAccessControl if a failure means that the server does not have
// the group, which its own list of groups must confirm: the 404 alone may come
// from a proxy.
func (c *Client) lacks(ctx context.Context, group string, failed error) error {
	var u *UnexpectedError
	if failed == nil || !errors.As(failed, &u) || u.Code != http.StatusNotFound {
		return failed
	}
	groups, err := c.groups(ctx)
	var absent *UnexpectedError
	if err != nil && !(errors.As(err, &absent) && absent.Code == http.StatusNotFound) {
		return err // says more than the 404: the server is out of reach, or overloaded
	}
	if err != nil || slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == group }) {
		return failed
	}
	return ErrNoAccessControl
}
