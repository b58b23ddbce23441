package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/types"
)

// impersonate lets a user act as another one whom the request's headers name, where
// they may impersonate all of it. From there on the request is the other's.
func (s *Server) impersonate(next http.Handler) http.Handler {
	if s.options.Authorizer == nil {
		return next // there is nothing by which it could be judged
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wanted, err := impersonated(r.Header)
		if wanted == nil && err == nil {
			next.ServeHTTP(w, r)
			return
		}
		info := infoOf(r)
		if err == nil {
			err = s.permitAll(impersonations(info.attributes.User, wanted))
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		info.impersonator = info.attributes.User
		info.attributes.User = inGroups(wanted)
		info.entry.Impersonating(info.attributes.User)
		next.ServeHTTP(w, r)
	})
}

func (s *Server) permitAll(all []authorizer.AttributesRecord) error {
	for i := range all {
		if err := s.permit(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// impersonatePrefix begins the names of all headers that speak of another user.
const impersonatePrefix = "Impersonate-"

// impersonated is the user whom the headers name, nil if they name none. What is
// not understood is refused: to pass over a header would be to act with the rights
// of the sender, or of whom a proxy in between did not see.
func impersonated(h http.Header) (*user.DefaultInfo, error) {
	var wanted *user.DefaultInfo
	for name, values := range h {
		if !strings.HasPrefix(name, impersonatePrefix) {
			continue
		}
		if wanted == nil {
			wanted = &user.DefaultInfo{}
		}
		extra, isExtra := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		switch {
		case name == authenticationv1.ImpersonateGroupHeader:
			wanted.Groups = append(wanted.Groups, values...)
		case isExtra:
			if wanted.Extra == nil {
				wanted.Extra = map[string][]string{}
			}
			key := extraKey(extra)
			wanted.Extra[key] = append(wanted.Extra[key], values...)
		case name != authenticationv1.ImpersonateUserHeader && name != authenticationv1.ImpersonateUIDHeader:
			return nil, types.BadRequest(fmt.Sprintf("header %s is not known", name))
		case name == authenticationv1.ImpersonateUIDHeader && slices.Contains(values, ""):
			return nil, types.BadRequest(fmt.Sprintf("header %s is empty", name))
		case len(values) != 1:
			return nil, types.BadRequest(fmt.Sprintf("header %s is given %d times", name, len(values)))
		case name == authenticationv1.ImpersonateUserHeader:
			wanted.Name = values[0]
		default:
			wanted.UID = values[0]
		}
	}
	if wanted != nil && wanted.Name == "" {
		return nil, types.BadRequest(fmt.Sprintf("requested %#v without impersonating a user name", wanted))
	}
	if wanted != nil {
		if err := authn.CheckNames(wanted); err != nil {
			return nil, types.BadRequest(fmt.Sprintf("the headers %s… name nobody who could be: %v", impersonatePrefix, err))
		}
	}
	return wanted, nil
}

// extraKey is the key that the name of a header ends in.
func extraKey(escaped string) string {
	escaped = strings.ToLower(escaped)
	if key, err := url.PathUnescape(escaped); err == nil {
		return key
	}
	return escaped
}

// impersonations are what must be allowed to act as a user, in Kubernetes' order.
func impersonations(who user.Info, wanted *user.DefaultInfo) (all []authorizer.AttributesRecord) {
	need := func(group, resource, name string) *authorizer.AttributesRecord {
		all = append(all, authorizer.AttributesRecord{User: who, Verb: "impersonate", APIGroup: group, APIVersion: "v1",
			Resource: resource, Name: name, ResourceRequest: true})
		return &all[len(all)-1]
	}
	if namespace, name, err := serviceaccount.SplitUsername(wanted.Name); err == nil {
		need("", "serviceaccounts", name).Namespace = namespace
	} else {
		need("", "users", wanted.Name)
	}
	if wanted.UID != "" {
		need(authenticationv1.GroupName, "uids", wanted.UID)
	}
	for _, group := range wanted.Groups {
		need("", "groups", group)
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			need(authenticationv1.GroupName, "userextras", value).Subresource = key
		}
	}
	return all
}

// inGroups adds the groups that a user has without being put into them.
func inGroups(u *user.DefaultInfo) *user.DefaultInfo {
	if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil && len(u.Groups) == 0 {
		u.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	switch {
	case slices.Contains(u.Groups, user.AllUnauthenticated):
	case u.Name == user.Anonymous:
		u.Groups = append(u.Groups, user.AllUnauthenticated)
	case !slices.Contains(u.Groups, user.AllAuthenticated):
		u.Groups = append(u.Groups, user.AllAuthenticated)
	}
	return u
}
