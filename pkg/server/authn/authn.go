// Package authn finds out who sends a request.
package authn

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Authenticator knows the users of one kind of credentials. It may be used by any
// number of goroutines.
type Authenticator interface {
	// Authenticate says whose credentials a request carries: nil and no error where
	// it carries none of this kind. An error refuses the request, with 401; its text
	// is for the log, and holds no secret.
	Authenticate(*http.Request) (user.Info, error)
}

// Anonymous is who sends no credentials, as in Kubernetes.
var Anonymous user.Info = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
