package authn

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/apiserver/pkg/authentication/user"
)

// OIDCOptions say whose tokens are taken, and what is made of them. They are those
// of kube-apiserver.
type OIDCOptions struct {
	IssuerURL      string // https
	ClientID       string // must be in the token's audience
	UsernameClaim  string
	UsernamePrefix string // "-": none; empty: the issuer's URL and #, unless the claim is email
	GroupsClaim    string // empty: tokens give no groups
	GroupsPrefix   string
	RequiredClaims map[string]string // texts that must be in the token
	SigningAlgs    []string

	// Roots are the authorities of the issuer's own certificate, as they are now;
	// nil, or a nil pool: those of the system.
	Roots func() *x509.CertPool
	// Logger takes what goes wrong with the issuer.
	Logger *slog.Logger
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// SigningAlgs are the algorithms that OIDCOptions may name: those with a public key.
var SigningAlgs = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512}

// reserved begins the names that only this server and its files may give.
const reserved = "system:"

// Validate refuses options with which no token could be taken, or the wrong ones. It
// names kube-apiserver's flags.
func (o OIDCOptions) Validate() error {
	var errs []error
	if u, err := url.Parse(o.IssuerURL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, fmt.Errorf("--oidc-issuer-url %q: must be an https:// URL without user, query and fragment", o.IssuerURL))
	}
	if o.ClientID == "" {
		errs = append(errs, errors.New("--oidc-issuer-url needs --oidc-client-id, or the tokens of every program that uses the issuer would be taken"))
	}
	if o.UsernameClaim == "" {
		errs = append(errs, errors.New("--oidc-username-claim is empty: it names the claim with the user, sub for example"))
	}
	if len(o.SigningAlgs) == 0 {
		errs = append(errs, errors.New("--oidc-signing-algs is empty: it must name at least one, RS256 for example"))
	}
	for _, alg := range o.SigningAlgs {
		if !slices.Contains(SigningAlgs, alg) {
			errs = append(errs, fmt.Errorf("--oidc-signing-algs %q: must be of %s", alg, strings.Join(SigningAlgs, ", ")))
		}
	}
	for flag, prefix := range map[string]string{"username": o.usernamePrefix(), "groups": o.GroupsPrefix} {
		if strings.HasPrefix(prefix, reserved) {
			errs = append(errs, fmt.Errorf("--oidc-%s-prefix %q: names that begin with %s are for this server's own users", flag, prefix, reserved))
		}
	}
	if o.GroupsPrefix != "" && o.GroupsClaim == "" {
		errs = append(errs, errors.New("--oidc-groups-prefix needs --oidc-groups-claim, the claim with the groups"))
	}
	return errors.Join(errs...)
}

func (o OIDCOptions) usernamePrefix() string {
	switch {
	case o.UsernamePrefix == "-":
		return ""
	case o.UsernamePrefix == "" && o.UsernameClaim != "email":
		return o.IssuerURL + "#"
	}
	return o.UsernamePrefix
}

// OIDC knows users by the tokens that an OpenID Connect issuer has signed. Run must
// run; until it has found the issuer, its tokens are refused.
type OIDC struct {
	options  OIDCOptions
	fetch    *fetcher
	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil until the issuer is found
	err      atomic.Pointer[error]                // why it is not found
}

var errNotYet = errors.New("the issuer was not asked yet")

// NewOIDC makes an OIDC of options that Validate has let through.
func NewOIDC(o OIDCOptions) *OIDC {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Roots == nil {
		o.Roots = func() *x509.CertPool { return nil }
	}
	i := &OIDC{options: o, fetch: newFetcher(o.Roots, o.Clock)}
	i.err.Store(&errNotYet)
	return i
}

// Err says why tokens can't be verified; nil while they can.
func (i *OIDC) Err() error {
	if i.verifier.Load() != nil {
		return nil
	}
	return *i.err.Load()
}

// The pauses between two attempts to find the issuer.
const (
	firstPause = time.Second
	lastPause  = 15 * time.Second
)

// Run looks for the issuer until it is found, or ctx ends.
func (i *OIDC) Run(ctx context.Context) {
	for pause := firstPause; !i.find(ctx); pause = min(2*pause, lastPause) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
	<-ctx.Done()
}

// find asks the issuer where its keys are.
func (i *OIDC) find(ctx context.Context) bool {
	o := i.options
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.fetch.client), o.IssuerURL)
	if err != nil {
		err = errors.New(shortened(err.Error()))
		if before := *i.err.Swap(&err); ctx.Err() == nil && before.Error() != err.Error() {
			o.Logger.Error("the OpenID Connect issuer can't be used: its tokens are refused until it can, which is tried again and again",
				"issuer", o.IssuerURL, "err", err)
		}
		return false
	}
	i.verifier.Store(provider.Verifier(&oidc.Config{ClientID: o.ClientID, SupportedSigningAlgs: o.SigningAlgs, Now: o.Clock}))
	o.Logger.Info("the OpenID Connect issuer is known, and its tokens are taken", "issuer", o.IssuerURL)
	return true
}

// Token implements TokenIssuer.
func (i *OIDC) Token(ctx context.Context, token string) (*user.DefaultInfo, error) {
	if strings.Count(token, ".") != 2 {
		return nil, nil // none of an issuer
	}
	verifier := i.verifier.Load()
	if verifier == nil {
		return nil, fmt.Errorf("the token can't be verified, for its issuer is not known yet: %w", i.Err())
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, errors.New(shortened(err.Error()))
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return nil, errors.New("the token's claims can't be read")
	}
	who, err := i.options.user(c)
	if err != nil {
		return nil, fmt.Errorf("token of %q: %w", shortened(verified.Subject), err)
	}
	return who, nil
}

// shortened keeps what an issuer, or somebody in its name, says from filling the log.
func shortened(text string) string {
	const limit = 300
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// claims are what a token says.
type claims map[string]json.RawMessage

// user is what the options make of the claims of a token.
func (o OIDCOptions) user(c claims) (*user.DefaultInfo, error) {
	name, err := o.username(c)
	if err != nil {
		return nil, err
	}
	groups, err := o.groups(c)
	if err != nil {
		return nil, err
	}
	for claim, want := range o.RequiredClaims {
		if got, err := c.text(claim); err != nil || got != want {
			return nil, fmt.Errorf("its claim %q is not the one that --oidc-required-claim demands", claim)
		}
	}
	who := &user.DefaultInfo{Name: name, Groups: groups}
	if id, err := c.text("jti"); err == nil && id != "" {
		who.Extra = map[string][]string{user.CredentialIDKey: {"JTI=" + id}}
	}
	return who, nil
}

func (o OIDCOptions) username(c claims) (string, error) {
	name, err := c.text(o.UsernameClaim)
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", fmt.Errorf("its claim %q is empty", o.UsernameClaim)
	}
	if verified, ok := c["email_verified"]; ok && o.UsernameClaim == "email" && string(verified) != "true" {
		return "", errors.New("its e-mail address is not verified")
	}
	return unreserved(o.usernamePrefix() + name)
}

func (o OIDCOptions) groups(c claims) ([]string, error) {
	if o.GroupsClaim == "" {
		return nil, nil
	}
	raw, ok := c[o.GroupsClaim]
	if !ok {
		return nil, o.groupsElsewhere(c)
	}
	var groups []string
	if text, err := c.text(o.GroupsClaim); err == nil {
		groups = []string{text}
	} else if err := json.Unmarshal(raw, &groups); err != nil {
		return nil, fmt.Errorf("its claim %q is neither a text nor a list of texts", o.GroupsClaim)
	}
	groups = slices.DeleteFunc(groups, func(group string) bool { return group == "" })
	for i, group := range groups {
		var err error
		if groups[i], err = unreserved(o.GroupsPrefix + group); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// groupsElsewhere refuses a token whose groups would have to be asked for at another
// address, as some issuers have it for users with many.
func (o OIDCOptions) groupsElsewhere(c claims) error {
	var names map[string]json.RawMessage
	if raw, ok := c["_claim_names"]; ok && json.Unmarshal(raw, &names) == nil && names[o.GroupsClaim] != nil {
		return fmt.Errorf("its claim %q is kept elsewhere (a distributed claim), which is not read here", o.GroupsClaim)
	}
	return nil
}

// unreserved refuses a name that would have more rights than an issuer can give.
func unreserved(name string) (string, error) {
	if strings.HasPrefix(name, reserved) {
		return "", fmt.Errorf("it gives the name %q, and names that begin with %s are for this server's own users: set a prefix", shortened(name), reserved)
	}
	return name, nil
}

// text is a claim that must be there, and a text.
func (c claims) text(name string) (string, error) {
	raw, ok := c[name]
	if !ok {
		return "", fmt.Errorf("it has no claim %q", name)
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return "", fmt.Errorf("its claim %q is not a text", name)
	}
	return *text, nil
}
