// Package authn finds out who sends a request: by a client certificate, a bearer
// token of a file or of an OpenID Connect issuer, or, on a unix socket, by what the
// kernel says of its other end.
//
//	who := authn.New(authn.Methods{Certificates: authn.NewCertificates(pool), Anonymous: true})
//	server.New(server.Options{Store: st, Authenticator: who})
//
// What other programs claim about a request in its headers is never believed.
package authn

import (
	"context"
	"errors"
	"net/http"
	"slices"

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

// TokenIssuer knows the users of one kind of bearer tokens. It may be used by any
// number of goroutines.
type TokenIssuer interface {
	// Token says whose token it is: nil and no error where it is none of this kind.
	// The text of an error is for the log, and holds no secret.
	Token(ctx context.Context, token string) (*user.DefaultInfo, error)
}

// Methods are the ways to find out who sends a request, in the order in which they
// are asked. Those that are nil are not used.
type Methods struct {
	Certificates *Certificates
	Tokens       []TokenIssuer
	Peers        *Peers
	// Anonymous lets requests through that carry no credentials, as Anonymous's.
	Anonymous bool
}

// New makes an Authenticator of several methods. As in Kubernetes, the first that
// knows its user wins. Credentials that are known to none refuse the request: who
// sends bad ones is never taken for anonymous.
func New(m Methods) Authenticator { return m }

// The errors of requests without credentials that could be of use.
var (
	errUnknownToken = errors.New("the bearer token is unknown")
	errNobody       = errors.New("it carries no credentials, and --anonymous-auth=false refuses these")
)

// Authenticate implements Authenticator.
func (m Methods) Authenticate(r *http.Request) (user.Info, error) {
	token, err := bearerToken(r.Header)
	if err != nil {
		return nil, err
	}
	who, certErr := m.byCertificate(r)
	if who != nil {
		return authenticated(who), nil
	}
	who, tokenErr := m.byToken(r.Context(), token)
	if who != nil {
		return authenticated(who), nil
	}
	if err := errors.Join(certErr, tokenErr); err != nil {
		return nil, err
	}
	if m.Peers != nil {
		if who = m.Peers.of(r.Context()); who != nil {
			return authenticated(who), nil
		}
	}
	if !m.Anonymous {
		return nil, errNobody
	}
	return nil, nil
}

func (m Methods) byCertificate(r *http.Request) (*user.DefaultInfo, error) {
	if m.Certificates == nil {
		return nil, nil
	}
	return m.Certificates.of(r.TLS)
}

func (m Methods) byToken(ctx context.Context, token string) (*user.DefaultInfo, error) {
	if token == "" {
		return nil, nil
	}
	var errs []error
	for _, issuer := range m.Tokens {
		who, err := issuer.Token(ctx, token)
		if who != nil {
			return who, nil
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return nil, errUnknownToken
}

// authenticated adds the group of all who are known, but for users who are
// expressly not, as in Kubernetes.
func authenticated(u *user.DefaultInfo) user.Info {
	if u.Name == user.Anonymous || slices.Contains(u.Groups, user.AllUnauthenticated) || slices.Contains(u.Groups, user.AllAuthenticated) {
		return u
	}
	known := *u
	known.Groups = append(slices.Clone(u.Groups), user.AllAuthenticated)
	return &known
}
