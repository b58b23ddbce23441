package server

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
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
}

// routeTo is the route of a resource that is kept here.
func routeTo(res *types.Resource) route { return route{resource: res.Plural} }

// watchOf is the route of the older form of a watch.
func watchOf(res *types.Resource) route { return route{resource: res.Plural, watch: true} }

// handle is the one way by which a path gets its handler: nothing is done for a
// request before it is known who sends it, and that they may. What is judged are
// the values that the router has matched, which are those that the handler uses.
func (s *Server) handle(mux *http.ServeMux, pattern string, to route, h http.Handler) {
	h = s.authenticate(s.limit(s.authorize(h)))
	mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		infoOf(r).attributes = attributesOf(r, to)
		h.ServeHTTP(w, r)
	}))
}

// attributesOf is what a request is about, in Kubernetes' terms. Who sends it is
// not known yet.
func attributesOf(r *http.Request, to route) authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
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
	a.Verb = verbOf(r.Method, a.Name != "")
	if a.Verb == "list" || to.watch {
		pinWatch(r, to, &a)
	}
	return a
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
func pinWatch(r *http.Request, to route, a *authorizer.AttributesRecord) {
	if to.watch {
		a.Verb = "watch"
	}
	o := &internalversion.ListOptions{}
	if query, err := url.ParseQuery(r.URL.RawQuery); err == nil {
		if parsed, err := listOptions(&request{http: r, query: query}); err == nil {
			o = parsed
		} // else it is refused, whatever it is
	}
	if o.Watch {
		a.Verb = "watch"
	}
	if a.Name == "" && o.FieldSelector != nil {
		a.Name, _ = o.FieldSelector.RequiresExactMatch(fieldName)
	}
}
