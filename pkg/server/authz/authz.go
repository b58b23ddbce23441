// Package authz decides who may do what.
package authz

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/types"
)

// Authorizer decides about requests. It may be used by any number of goroutines.
type Authorizer interface {
	// Authorize tells whether a request is allowed. reason says by which rule, or,
	// where it is not, may say what is wrong with the rules; it never tells whether
	// an object exists.
	Authorize(authorizer.Attributes) (allowed bool, reason string)
	// RulesFor are all rules that a user has in a namespace, those for everywhere
	// included. An error says that there may be more.
	RulesFor(u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, error)
}

// Forbidden says in Kubernetes' words that something is not allowed. reason is
// Authorize's.
func Forbidden(a authorizer.Attributes, reason string) error {
	why := plain.Replace(denied(a))
	if reason != "" {
		why += ": " + reason
	}
	return types.AccessForbidden(schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}, a.GetName(), why)
}

// plain keeps a message from being taken for HTML, as Kubernetes does.
var plain = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// denied is who may not do what, and where.
func denied(a authorizer.Attributes) string {
	who := ""
	if u := a.GetUser(); u != nil {
		who = u.GetName()
	}
	if !a.IsResourceRequest() {
		return fmt.Sprintf("User %q cannot %s path %q", who, a.GetVerb(), a.GetPath())
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	where := "at the cluster scope"
	if a.GetNamespace() != "" {
		where = fmt.Sprintf("in the namespace %q", a.GetNamespace())
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", who, a.GetVerb(), resource, a.GetAPIGroup(), where)
}
