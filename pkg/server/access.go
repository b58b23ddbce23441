package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/server/authz"
	"example.com/cmctl/pkg/types"
)

// authenticate finds out who sends a request. Without an Authenticator nobody is
// asked: nobody is told from anybody, or, where rules hold, everybody is anonymous.
// Where none hold, whoever is not known has no name, and acting as another means nothing.
func (s *Server) authenticate(next http.Handler) http.Handler {
	if s.openToAll() {
		return next
	}
	asked := s.options.Authenticator
	ruled := s.options.Authorizer != nil
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := infoOf(r)
		var who user.Info
		if ruled {
			who = authn.Anonymous
		}
		if asked != nil {
			found, err := asked.Authenticate(r)
			if err != nil {
				s.logRefused(r, err)
				hangUp(w, r)
				s.refuse(w, r, types.Unauthorized())
				return
			}
			if found != nil {
				who = found
			} else if ruled {
				hangUp(w, r)
			}
		}
		// Nobody after this needs them, and what is not there is not logged.
		r.Header.Del("Authorization")
		info.attributes.User = who
		next.ServeHTTP(w, r)
	})
}

// hangUp keeps those whom nobody knows from holding on to a connection that carries
// many requests at once, as Kubernetes does.
func hangUp(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		w.Header().Set("Connection", "close")
	}
}

// openToAll tells that nobody is asked, and that there are no rules.
func (s *Server) openToAll() bool {
	return s.options.Authenticator == nil && s.options.Authorizer == nil
}

// authorize lets through what its sender may do.
func (s *Server) authorize(next http.Handler) http.Handler {
	if s.options.Authorizer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := infoOf(r)
		allowed, reason := s.options.Authorizer.Authorize(&info.attributes)
		info.entry.Decided(allowed, reason)
		if !allowed {
			s.refuse(w, r, authz.Forbidden(&info.attributes, reason))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// permit is the refusal of what may not be done. Without an Authorizer everyone may
// do everything.
func (s *Server) permit(a *authorizer.AttributesRecord) error {
	if s.options.Authorizer == nil {
		return nil
	}
	if allowed, reason := s.options.Authorizer.Authorize(a); !allowed {
		return authz.Forbidden(a, reason)
	}
	return nil
}

// permitCreate is the refusal of a request of another verb that comes to creating
// the object which it names.
func (s *Server) permitCreate(r *request) error {
	a := r.info.attributes
	a.Verb = "create"
	if !r.resource.Namespaced {
		a.Namespace = "" // a namespace that is not there yet holds no rights
	}
	return s.permit(&a)
}

// mayMakeNamespace tells whether who sends a request may create namespaces.
func (s *Server) mayMakeNamespace(r *request) bool {
	return s.permit(&authorizer.AttributesRecord{
		User: r.info.attributes.User, Verb: "create", APIVersion: types.APIVersion,
		Resource: types.Namespaces.Plural, ResourceRequest: true,
	}) == nil
}

// userName is who sends a request; empty where nobody was asked.
func (i *requestInfo) userName() string {
	if i.attributes.User == nil {
		return ""
	}
	return i.attributes.User.GetName()
}
