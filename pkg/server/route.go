package server

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/types"
)

// route is what a path leads to, as rules of access name it. Its zero value is a
// path that is no resource's.
type route struct {
	group       string
	resource    string
	subresource string
	watch       bool // nothing but watches, by path
	nowhere     bool // the path may still look like that of a resource
}

// routeTo is the route of a resource that is kept here.
func routeTo(res *types.Resource) route { return route{resource: res.Plural} }

// watchOf is the route of the older form of a watch.
func watchOf(res *types.Resource) route { return route{resource: res.Plural, watch: true} }

// handle is the one way by which a path gets its handler: nothing is done for a
// request before it is known who sends it, and that they may. What is judged are
// the values that the router has matched, which are those that the handler uses.
func (s *Server) handle(mux *http.ServeMux, pattern string, to route, h http.Handler) {
	h = s.guarded(h)
	mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		infoOf(r).attributes = attributesOf(r, to)
		h.ServeHTTP(w, r)
	}))
}

// guarded is a handler behind all that asks who sends a request, and whether they
// may. What it is about must be set.
func (s *Server) guarded(h http.Handler) http.Handler {
	return s.authenticate(s.audit(s.impersonate(s.limit(s.authorize(h)))))
}

// attributesOf is what a request is about, in Kubernetes' terms. Who sends it is
// not known yet.
func attributesOf(r *http.Request, to route) authorizer.AttributesRecord {
	if to.nowhere {
		return unrouted(r)
	}
	a := pathAttributes(r)
	if to.resource == "" {
		return a
	}
	a.ResourceRequest = true
	a.APIGroup, a.APIVersion = to.group, types.APIVersion
	a.Resource, a.Subresource = to.resource, to.subresource
	a.Namespace, a.Name = r.PathValue("namespace"), r.PathValue("name")
	if to.resource == types.Namespaces.Plural {
		a.Namespace = a.Name // a namespace is in itself
	}
	if to.watch {
		a.Verb = "watch"
		return a
	}
	judgeVerb(r, &a)
	return a
}

// pathAttributes are those of a request for a path that is no resource's.
func pathAttributes(r *http.Request) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
}

// judgeVerb finds Kubernetes' word for what is done with an object or a collection.
func judgeVerb(r *http.Request, a *authorizer.AttributesRecord) {
	a.Verb = verbOf(r.Method, a.Name != "")
	if a.Verb == "list" {
		pinWatch(r, a)
	}
}

// verbOf is Kubernetes' word for a method. Methods that no resource has, have none.
func verbOf(method string, named bool) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodGet, http.MethodHead:
		if named {
			return "get"
		}
		return "list"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return ""
}

// pinWatch tells a list from a watch, and finds the one object that it is about, as
// whoever may read that one alone selects it.
func pinWatch(r *http.Request, a *authorizer.AttributesRecord) {
	if r.URL.RawQuery == "" {
		return
	}
	query, o := r.URL.Query(), internalversion.ListOptions{}
	if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &o); err != nil {
		// It is refused, whatever it is.
		asked := query["watch"]
		o = internalversion.ListOptions{Watch: len(asked) > 0 && !slices.Contains([]string{"false", "0"}, strings.ToLower(asked[0]))}
	}
	if o.Watch {
		a.Verb = "watch"
	}
	if o.FieldSelector == nil {
		return
	}
	if name, ok := o.FieldSelector.RequiresExactMatch(fieldName); ok && len(path.IsValidPathSegmentName(name)) == 0 {
		a.Name = name
	}
}

// unrouted is what a request is about whose path leads nowhere, by the rules of
// Kubernetes for all paths: so its refusal has the same words, and only whoever
// might go there learns that there is nothing.
func unrouted(r *http.Request) authorizer.AttributesRecord {
	a := pathAttributes(r)
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		a.APIGroup, parts = parts[1], parts[2:]
	default:
		return a
	}
	a.ResourceRequest = true
	a.APIVersion, parts = parts[0], parts[1:]
	special := parts[0] == "watch" || parts[0] == "proxy"
	if special {
		if a.Verb, parts = parts[0], parts[1:]; len(parts) == 0 {
			return a
		}
	}
	if parts[0] == types.Namespaces.Plural && len(parts) > 1 {
		a.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	a.Resource = parts[0]
	if len(parts) > 1 {
		a.Name = parts[1]
	}
	if len(parts) > 2 && !special {
		a.Subresource = parts[2]
	}
	if !special {
		judgeVerb(r, &a)
	}
	return a
}
