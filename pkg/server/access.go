package server

import (
	"net/http"

	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/server/authz"
	"example.com/cmctl/pkg/types"
)

// authenticate finds out who sends a request. Without an Authenticator nobody is
// asked.
func (s *Server) authenticate(next http.Handler) http.Handler {
	if s.options.Authenticator == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := infoOf(r)
		who, err := s.options.Authenticator.Authenticate(r)
		if err != nil {
			s.log.Warn("credentials were refused", "id", info.id, "err", err)
			s.refuse(w, r, types.Unauthorized())
			return
		}
		if who == nil {
			who = authn.Anonymous
		}
		info.attributes.User = who
		next.ServeHTTP(w, r)
	})
}

// authorize lets through what its sender may do. Without an Authorizer everyone
// may do everything.
func (s *Server) authorize(next http.Handler) http.Handler {
	if s.options.Authorizer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := infoOf(r)
		if allowed, reason := s.options.Authorizer.Authorize(info.attributes); !allowed {
			s.refuse(w, r, authz.Forbidden(info.attributes, reason))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// userName is who sends a request; empty where nobody was asked.
func (i *requestInfo) userName() string {
	if i.attributes.User == nil {
		return ""
	}
	return i.attributes.User.GetName()
}
