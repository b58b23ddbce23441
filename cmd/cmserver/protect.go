package main

import (
	"context"
	"crypto/x509"
	"log/slog"
	"sync"

	"example.com/cmctl/cmd/cmserver/internal/serving"
	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/server/authz"
	"example.com/cmctl/pkg/server/quota"
	"example.com/cmctl/pkg/server/reload"
)

// protection keeps the server's data from those whom it is not for: how connections
// are encrypted, who sends a request, what they may do and how much they may store, and
// what keeps all of that up to date. Its zero value protects nothing.
type protection struct {
	tls           *serving.TLS                         // nil: not encrypted
	authenticator authn.Authenticator                  // nil: nobody is known
	authorizer    authz.Authorizer                     // nil: everybody may do everything
	clientCAs     func() *x509.CertPool                // whose certificates a client may present; nil: none
	quotas        func(namespace string) []quota.Quota // what namespaces may hold; nil: anything
	concerns      []server.Concern
	upkeep        []func(context.Context) // each runs until its context ends
}

// protect reads the files that the settings name. An error is one of settings.
func (c config) protect(log *slog.Logger) (*protection, error) {
	p := &protection{}
	if err := p.addUsers(c, log); err != nil {
		return nil, err
	}
	if err := p.addRules(c, log); err != nil {
		return nil, err
	}
	if err := p.addQuotas(c.limitsConfig, log); err != nil {
		return nil, err
	}
	return p, p.addTLS(c.listenConfig, log)
}

// applyTo makes a server obey.
func (p *protection) applyTo(o *server.Options) {
	o.Authenticator, o.Authorizer, o.Quotas = p.authenticator, p.authorizer, p.quotas
	o.Concerns = append(o.Concerns, p.concerns...)
}

// start keeps it up to date until ctx ends or stop is called, which waits.
func (p *protection) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, run := range p.upkeep {
		running.Go(func() { run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// keep keeps a value that was made from files up to date, and lets probes tell when
// that fails.
func keep[T any](p *protection, name string, v *reload.Value[T]) {
	p.concerns = append(p.concerns, server.Concern{Name: name, Look: v.Err})
	p.upkeep = append(p.upkeep, v.Run)
}
