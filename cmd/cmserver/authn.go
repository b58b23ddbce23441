package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/server/reload"
)

// authnConfig are the settings of how it is found out who sends a request. They are
// kube-apiserver's.
type authnConfig struct {
	ClientCAFile       string   `mapstructure:"client-ca-file"`
	TokenAuthFile      string   `mapstructure:"token-auth-file"`
	AnonymousAuth      bool     `mapstructure:"anonymous-auth"`
	OIDCIssuerURL      string   `mapstructure:"oidc-issuer-url"`
	OIDCClientID       string   `mapstructure:"oidc-client-id"`
	OIDCUsernameClaim  string   `mapstructure:"oidc-username-claim"`
	OIDCUsernamePrefix string   `mapstructure:"oidc-username-prefix"`
	OIDCGroupsClaim    string   `mapstructure:"oidc-groups-claim"`
	OIDCGroupsPrefix   string   `mapstructure:"oidc-groups-prefix"`
	OIDCRequiredClaims []string `mapstructure:"oidc-required-claim"`
	OIDCCAFile         string   `mapstructure:"oidc-ca-file"`
	OIDCSigningAlgs    []string `mapstructure:"oidc-signing-algs"`
}

// What tokens of an issuer are like, if nothing else is said.
const defaultUsernameClaim = "sub"

func defaultSigningAlgs() []string { return []string{"RS256"} }

func addAuthnFlags(f *pflag.FlagSet) {
	f.String("client-ca-file", "", "PEM `FILE` of the authorities whose client certificates are taken: CN is the user, O the groups")
	f.String("token-auth-file", "", "CSV `FILE` of bearer tokens: token,user,uid,\"group1,group2\"; see 'cmserver token'")
	f.Bool("anonymous-auth", true, "let requests without credentials in, as system:anonymous; bad credentials are refused in any case")
	f.String("oidc-issuer-url", "", "`URL` of the OpenID Connect issuer whose tokens are taken")
	f.String("oidc-client-id", "", "`ID` that tokens of the issuer must be for")
	f.String("oidc-username-claim", defaultUsernameClaim, "`CLAIM` of a token that is the user")
	f.String("oidc-username-prefix", "", "`TEXT` before the users of the issuer; '-' for none (default: the issuer's URL and #, unless the claim is email)")
	f.String("oidc-groups-claim", "", "`CLAIM` of a token that is the groups")
	f.String("oidc-groups-prefix", "", "`TEXT` before the groups of the issuer")
	f.StringArray("oidc-required-claim", nil, "`CLAIM=VALUE` that tokens must have; may be repeated")
	f.String("oidc-ca-file", "", "PEM `FILE` of the authorities of the issuer's own certificate (default: the system's)")
	f.StringSlice("oidc-signing-algs", defaultSigningAlgs(), "`ALGORITHMS` with which tokens may be signed")
}

// authenticates tells whether somebody is asked who they are.
func (c authnConfig) authenticates() bool {
	return c.ClientCAFile != "" || c.TokenAuthFile != "" || c.OIDCIssuerURL != ""
}

// asks tells whether users are told apart. On unix sockets the kernel tells who
// connects: there it takes no more than rules for them, or that others are refused.
func (c config) asks() bool {
	return c.authenticates() || c.onSocket() && (c.RBACDir != "" || !c.AnonymousAuth)
}

func (c config) validateAuthn() error {
	if !c.AnonymousAuth && !c.asks() {
		return errors.New("--anonymous-auth=false lets nobody in: add " + authFlags + ", by which users are known, or --listen unix:///PATH")
	}
	if c.ClientCAFile != "" && !c.encrypts() && c.onTCP() {
		return errors.New("--client-ca-file is of no use without TLS, by which clients show their certificates: add " + tlsFlags)
	}
	if c.OIDCIssuerURL == "" {
		return c.oidcUnused()
	}
	required, err := c.requiredClaims()
	o := c.oidcOptions()
	o.RequiredClaims = required
	return errors.Join(err, o.Validate())
}

// oidcUnused refuses settings of an issuer that is not named.
func (c authnConfig) oidcUnused() error {
	for flag, given := range map[string]bool{
		"oidc-client-id": c.OIDCClientID != "", "oidc-username-prefix": c.OIDCUsernamePrefix != "", "oidc-groups-claim": c.OIDCGroupsClaim != "",
		"oidc-username-claim": c.OIDCUsernameClaim != defaultUsernameClaim, "oidc-signing-algs": !slices.Equal(c.OIDCSigningAlgs, defaultSigningAlgs()),
		"oidc-groups-prefix": c.OIDCGroupsPrefix != "", "oidc-required-claim": len(c.OIDCRequiredClaims) > 0, "oidc-ca-file": c.OIDCCAFile != "",
	} {
		if given {
			return fmt.Errorf("--%s is given, and no issuer: add --oidc-issuer-url and --oidc-client-id", flag)
		}
	}
	return nil
}

func (c authnConfig) requiredClaims() (map[string]string, error) {
	required := map[string]string{}
	for _, pair := range c.OIDCRequiredClaims {
		claim, value, ok := strings.Cut(pair, "=")
		if _, twice := required[claim]; !ok || claim == "" || twice {
			return nil, fmt.Errorf("--oidc-required-claim %q: must be CLAIM=VALUE, once for each claim", pair)
		}
		required[claim] = value
	}
	return required, nil
}

func (c authnConfig) oidcOptions() authn.OIDCOptions {
	return authn.OIDCOptions{
		IssuerURL: c.OIDCIssuerURL, ClientID: c.OIDCClientID,
		UsernameClaim: c.OIDCUsernameClaim, UsernamePrefix: c.OIDCUsernamePrefix,
		GroupsClaim: c.OIDCGroupsClaim, GroupsPrefix: c.OIDCGroupsPrefix, SigningAlgs: c.OIDCSigningAlgs,
	}
}

// addUsers adds how it is found out who sends a request. An error is one of settings.
func (p *protection) addUsers(c config, log *slog.Logger) error {
	if !c.asks() {
		if c.onSocket() {
			p.authenticator = authn.Names{Peers: authn.NewPeers()}
		}
		return nil
	}
	m := authn.Methods{Peers: authn.NewPeers(), Anonymous: c.AnonymousAuth}
	if err := errors.Join(p.addCertificates(&m, c.authnConfig, log), p.addTokens(&m, c.authnConfig, log), p.addOIDC(&m, c.authnConfig, log)); err != nil {
		return err
	}
	p.authenticator = authn.New(m)
	return nil
}

func (p *protection) addCertificates(m *authn.Methods, c authnConfig, log *slog.Logger) error {
	if c.ClientCAFile == "" {
		return nil
	}
	pool, err := loadPool("client-ca-file", c.ClientCAFile, authn.ParseAuthorities, log)
	if err != nil {
		return err
	}
	keep(p, "client-ca-file", pool)
	p.clientCAs = pool.Get
	m.Certificates = authn.NewCertificates(pool.Get)
	return nil
}

func (p *protection) addTokens(m *authn.Methods, c authnConfig, log *slog.Logger) error {
	if c.TokenAuthFile == "" {
		return nil
	}
	tokens, err := reload.New("token-auth-file", []string{c.TokenAuthFile}, log, func() (*authn.Tokens, error) {
		return readTokens(c.TokenAuthFile, log)
	})
	if err != nil {
		return fmt.Errorf("--token-auth-file: %w", err)
	}
	keep(p, "token-auth-file", tokens)
	m.Tokens = append(m.Tokens, authn.CurrentTokens(tokens.Get))
	return nil
}

func (p *protection) addOIDC(m *authn.Methods, c authnConfig, log *slog.Logger) error {
	if c.OIDCIssuerURL == "" {
		return nil
	}
	o := c.oidcOptions()
	o.Logger = log
	var err error
	if o.RequiredClaims, err = c.requiredClaims(); err != nil {
		return err
	}
	if c.OIDCCAFile != "" {
		pool, err := loadPool("oidc-ca-file", c.OIDCCAFile, authn.ParseRoots, log)
		if err != nil {
			return err
		}
		keep(p, "oidc-ca-file", pool)
		o.Roots = pool.Get
	}
	issuer := authn.NewOIDC(o)
	p.concerns = append(p.concerns, server.Concern{Name: "oidc-issuer", Look: issuer.Err})
	p.upkeep = append(p.upkeep, issuer.Run)
	m.Tokens = append(m.Tokens, issuer)
	return nil
}

func loadPool(flag, path string, parse func([]byte) (*x509.CertPool, error), log *slog.Logger) (*reload.Value[*x509.CertPool], error) {
	v, err := reload.New(flag, []string{path}, log, func() (*x509.CertPool, error) {
		content, err := reload.ReadFile(path)
		if err != nil {
			return nil, err
		}
		pool, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return pool, nil
	})
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return v, nil
}

func readTokens(path string, log *slog.Logger) (*authn.Tokens, error) {
	file, err := reload.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it was only read
	tokens, warnings, err := authn.ParseTokens(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if info, err := file.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		warnings = append(warnings, fmt.Sprintf("its mode is %04o, and others may read or change it: chmod 600 %s", info.Mode().Perm(), path))
	}
	for _, w := range warnings {
		log.Warn("token-auth-file: "+w, "file", path)
	}
	return tokens, nil
}
