package authn_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server/authn"
)

// issuer is an OpenID Connect issuer.
type issuer struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	keys     map[string]crypto.Signer // those it shows, by id; guarded by mu
	claimsAs string                   // the issuer that it says it is, if not its URL; guarded by mu

	down      atomic.Bool
	keysAsked atomic.Int32
}

var rsaKeys = sync.OnceValue(func() []*rsa.PrivateKey {
	var keys []*rsa.PrivateKey
	for range 2 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{t: t, keys: map[string]crypto.Signer{"first": rsaKeys()[0]}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("/keys", i.showKeys)
	i.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.down.Load() {
			http.Error(w, "out of order", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	i.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	i.StartTLS()
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	name := i.URL
	if i.claimsAs != "" {
		name = i.claimsAs
	}
	i.write(w, map[string]any{"issuer": name, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}})
}

func (i *issuer) showKeys(w http.ResponseWriter, _ *http.Request) {
	i.keysAsked.Add(1)
	i.mu.Lock()
	defer i.mu.Unlock()
	var set jose.JSONWebKeySet
	for id, key := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"})
	}
	i.write(w, set)
}

func (i *issuer) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

// show replaces the keys that the issuer shows.
func (i *issuer) show(id string, key crypto.Signer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = map[string]crypto.Signer{id: key}
}

func (i *issuer) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.Certificate())
	return pool
}

// says are the claims of a good token, changed.
func (i *issuer) says(changes map[string]any) map[string]any {
	c := map[string]any{"iss": i.URL, "aud": "cmserver", "sub": "jane", "jti": "id-1",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for claim, value := range changes {
		if value == nil {
			delete(c, claim)
			continue
		}
		c[claim] = value
	}
	return c
}

// signed makes a token.
func signed(t testing.TB, alg jose.SignatureAlgorithm, kid string, key any, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (i *issuer) token(changes map[string]any) string {
	i.t.Helper()
	return signed(i.t, jose.RS256, "first", rsaKeys()[0], i.says(changes))
}

func (i *issuer) options() authn.OIDCOptions {
	return authn.OIDCOptions{IssuerURL: i.URL, ClientID: "cmserver", UsernameClaim: "sub", SigningAlgs: []string{"RS256"}, Roots: i.roots}
}

// run makes an OIDC that runs until the test ends.
func run(t testing.TB, o authn.OIDCOptions) *authn.OIDC {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	oidc := authn.NewOIDC(o)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { oidc.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return oidc
}

// ready is run, once the issuer is found.
func ready(t testing.TB, o authn.OIDCOptions) *authn.OIDC {
	t.Helper()
	oidc := run(t, o)
	eventually(t, "the issuer is found", func() bool { return oidc.Err() == nil })
	return oidc
}

// eventually waits for what happens in its own time.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to pass that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTokensOfAnIssuer(t *testing.T) {
	i := newIssuer(t)
	oidc := ready(t, i.options())
	rsaPublic, err := x509.MarshalPKIXPublicKey(rsaKeys()[0].Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsaPublic})
	good := i.token(nil)
	part := func(token string, n int) string { return strings.Split(token, ".")[n] }
	none := "eyJhbGciOiJub25lIn0"
	ago, later := time.Now().Add(-time.Minute).Unix(), time.Now().Add(10*time.Minute).Unix()
	for name, test := range map[string]struct{ token, refused string }{
		"a good one":                 {good, ""},
		"for several programs":       {i.token(map[string]any{"aud": []string{"other", "cmserver"}}), ""},
		"without a key's name":       {signed(t, jose.RS256, "", rsaKeys()[0], i.says(nil)), ""},
		"expired":                    {i.token(map[string]any{"exp": ago}), "expired"},
		"that never expires":         {i.token(map[string]any{"exp": nil}), "expired"},
		"not yet valid":              {i.token(map[string]any{"nbf": later}), "nbf"},
		"for another program":        {i.token(map[string]any{"aud": "other"}), "audience"},
		"for no program":             {i.token(map[string]any{"aud": nil}), "audience"},
		"of another issuer":          {i.token(map[string]any{"iss": "https://other.example"}), "different provider"},
		"without an issuer":          {i.token(map[string]any{"iss": nil}), "different provider"},
		"without a user":             {i.token(map[string]any{"sub": nil}), `no claim "sub"`},
		"of a user that is empty":    {i.token(map[string]any{"sub": ""}), "is empty"},
		"of a user that is a number": {i.token(map[string]any{"sub": 5}), "unmarshal"},
		"with an unknown key":        {signed(t, jose.RS256, "unknown", rsaKeys()[0], i.says(nil)), "verify"},
		"with another's key":         {signed(t, jose.RS256, "first", rsaKeys()[1], i.says(nil)), "verify"},
		"unsigned":                   {none + "." + part(good, 1) + ".", "malformed"},
		"unsigned, with a signature": {none + "." + part(good, 1) + "." + part(good, 2), "malformed"},
		"signed with the public key": {signed(t, jose.HS256, "first", publicPEM, i.says(nil)), "malformed"},
		"in another algorithm":       {signed(t, jose.PS256, "first", rsaKeys()[0], i.says(nil)), "malformed"},
		"with changed claims":        {part(good, 0) + "." + part(i.token(map[string]any{"sub": "joe"}), 1) + "." + part(good, 2), "verify"},
		"cut":                        {good[:len(good)-8], "verify"},
		"rubbish":                    {"abcd.abcd.abcd", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := oidc.Token(t.Context(), test.token)
			if test.refused == "" {
				if err != nil || got.Name != i.URL+"#jane" || len(got.Groups) != 0 || !slices.Equal(got.Extra[user.CredentialIDKey], []string{"JTI=id-1"}) {
					t.Errorf("it is %v, %v", got, err)
				}
				return
			}
			if got != nil || err == nil {
				t.Fatalf("it is %v", got)
			}
			if strings.Contains(err.Error(), part(test.token, 2)) && part(test.token, 2) != "" {
				t.Errorf("the error tells the token: %v", err)
			}
			if !strings.Contains(err.Error(), test.refused) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if got, err := oidc.Token(t.Context(), "no-token-of-an-issuer"); got != nil || err != nil {
		t.Errorf("another kind of token is %v, %v", got, err)
	}
}

func TestNamesThatTokensGive(t *testing.T) {
	i := newIssuer(t)
	type changes = map[string]any
	for name, test := range map[string]struct {
		options func(*authn.OIDCOptions)
		claims  changes
		user    string // empty: refused
		groups  []string
		refused string
	}{
		"the issuer before the user":     {func(*authn.OIDCOptions) {}, nil, i.URL + "#jane", nil, ""},
		"a prefix of one's own":          {func(o *authn.OIDCOptions) { o.UsernamePrefix = "oidc:" }, nil, "oidc:jane", nil, ""},
		"no prefix":                      {func(o *authn.OIDCOptions) { o.UsernamePrefix = "-" }, nil, "jane", nil, ""},
		"another claim":                  {func(o *authn.OIDCOptions) { o.UsernameClaim = "name" }, changes{"name": "Jane"}, i.URL + "#Jane", nil, ""},
		"another claim, empty":           {func(o *authn.OIDCOptions) { o.UsernameClaim = "name" }, changes{"name": ""}, "", nil, "is empty"},
		"another claim, null":            {func(o *authn.OIDCOptions) { o.UsernameClaim = "name" }, changes{"name": json.RawMessage("null")}, "", nil, "not a text"},
		"another claim, no text":         {func(o *authn.OIDCOptions) { o.UsernameClaim = "name" }, changes{"name": []string{"a"}}, "", nil, "not a text"},
		"e-mail":                         {func(o *authn.OIDCOptions) { o.UsernameClaim = "email" }, changes{"email": "j@x"}, "j@x", nil, ""},
		"e-mail, verified":               {func(o *authn.OIDCOptions) { o.UsernameClaim = "email" }, changes{"email": "j@x", "email_verified": true}, "j@x", nil, ""},
		"e-mail, not verified":           {func(o *authn.OIDCOptions) { o.UsernameClaim = "email" }, changes{"email": "j@x", "email_verified": false}, "", nil, "not verified"},
		"e-mail, verified as text":       {func(o *authn.OIDCOptions) { o.UsernameClaim = "email" }, changes{"email": "j@x", "email_verified": "true"}, "", nil, "not verified"},
		"e-mail with a prefix":           {func(o *authn.OIDCOptions) { o.UsernameClaim, o.UsernamePrefix = "email", "o:" }, changes{"email": "j@x"}, "o:j@x", nil, ""},
		"e-mail beside the user":         {func(*authn.OIDCOptions) {}, changes{"email_verified": false}, i.URL + "#jane", nil, ""},
		"a user of the server's own":     {func(o *authn.OIDCOptions) { o.UsernamePrefix = "-" }, changes{"sub": "system:admin"}, "", nil, "system:"},
		"a user put together":            {func(o *authn.OIDCOptions) { o.UsernamePrefix = "sys" }, changes{"sub": "tem:admin"}, "", nil, "system:"},
		"groups that nobody asked for":   {func(*authn.OIDCOptions) {}, changes{"groups": []string{"devs"}}, i.URL + "#jane", nil, ""},
		"groups":                         {func(o *authn.OIDCOptions) { o.GroupsClaim = "groups" }, changes{"groups": []string{"devs", "ops"}}, i.URL + "#jane", []string{"devs", "ops"}, ""},
		"a group":                        {func(o *authn.OIDCOptions) { o.GroupsClaim = "role" }, changes{"role": "devs"}, i.URL + "#jane", []string{"devs"}, ""},
		"groups with a prefix":           {func(o *authn.OIDCOptions) { o.GroupsClaim, o.GroupsPrefix = "groups", "oidc:" }, changes{"groups": []string{"devs", "system:masters"}}, i.URL + "#jane", []string{"oidc:devs", "oidc:system:masters"}, ""},
		"no groups":                      {func(o *authn.OIDCOptions) { o.GroupsClaim = "groups" }, nil, i.URL + "#jane", nil, ""},
		"an empty group":                 {func(o *authn.OIDCOptions) { o.GroupsClaim, o.GroupsPrefix = "groups", "oidc:" }, changes{"groups": []string{"", "a"}}, i.URL + "#jane", []string{"oidc:a"}, ""},
		"groups of the server's own":     {func(o *authn.OIDCOptions) { o.GroupsClaim = "groups" }, changes{"groups": []string{"devs", "system:masters"}}, "", nil, "system:"},
		"groups that are numbers":        {func(o *authn.OIDCOptions) { o.GroupsClaim = "groups" }, changes{"groups": []int{1}}, "", nil, "neither a text"},
		"groups that are kept elsewhere": {func(o *authn.OIDCOptions) { o.GroupsClaim = "groups" }, changes{"_claim_names": changes{"groups": "src"}, "_claim_sources": changes{"src": changes{"endpoint": "https://x"}}}, "", nil, "distributed"},
		"a demanded claim":               {func(o *authn.OIDCOptions) { o.RequiredClaims = map[string]string{"hd": "x"} }, changes{"hd": "x"}, i.URL + "#jane", nil, ""},
		"another value of it":            {func(o *authn.OIDCOptions) { o.RequiredClaims = map[string]string{"hd": "x"} }, changes{"hd": "y"}, "", nil, `"hd"`},
		"without it":                     {func(o *authn.OIDCOptions) { o.RequiredClaims = map[string]string{"hd": ""} }, nil, "", nil, `"hd"`},
		"a list of it":                   {func(o *authn.OIDCOptions) { o.RequiredClaims = map[string]string{"hd": "x"} }, changes{"hd": []string{"x"}}, "", nil, `"hd"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := i.options()
			test.options(&o)
			got, err := ready(t, o).Token(t.Context(), i.token(test.claims))
			if test.user == "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("it is %v, %v", got, err)
				}
				return
			}
			if err != nil || got.Name != test.user || !slices.Equal(got.Groups, test.groups) {
				t.Errorf("it is %v, %v", got, err)
			}
		})
	}
}

func TestOtherAlgorithms(t *testing.T) {
	i := newIssuer(t)
	key := newKey(t)
	i.show("ec", key)
	o := i.options()
	o.SigningAlgs = []string{"RS256", "ES256"}
	if got, err := ready(t, o).Token(t.Context(), signed(t, jose.ES256, "ec", key, i.says(nil))); err != nil {
		t.Errorf("it is %v, %v", got, err)
	}
}

// A new key is learned from the first token that has it, and an old one is forgotten
// with that. Tokens with keys that nobody has make the issuer no work.
func TestKeysThatChange(t *testing.T) {
	i := newIssuer(t)
	var clock atomic.Int64 // seconds since the test began
	begin := time.Now()
	o := i.options()
	o.Clock = func() time.Time { return begin.Add(time.Duration(clock.Load()) * time.Second) }
	oidc := ready(t, o)
	first := i.token(nil)
	second := signed(t, jose.RS256, "second", rsaKeys()[1], i.says(nil))
	// What go-oidc has fetched is in force a moment after the one who asked has it.
	is := func(token string, good bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("the token is taken: %v", good), func() bool {
			_, err := oidc.Token(t.Context(), token)
			return (err == nil) == good
		})
	}
	is(first, true)
	is(second, false)
	clock.Store(10)
	i.show("second", rsaKeys()[1])
	is(first, true)
	is(second, true)
	is(first, false)

	asked := i.keysAsked.Load()
	for n := range 50 {
		is(signed(t, jose.RS256, fmt.Sprint("k", n), rsaKeys()[0], i.says(nil)), false)
	}
	is(second, true)
	if more := i.keysAsked.Load() - asked; more != 0 {
		t.Errorf("the issuer was asked %d more times for its keys", more)
	}
	clock.Store(20)
	i.down.Store(true)
	is(first, false)
	is(second, true) // its key is known
	i.down.Store(false)
	i.show("first", rsaKeys()[0])
	clock.Store(30)
	is(first, true)
}

// An issuer that is down at the start is found by itself once it is up, and the log
// tells of both.
func TestAnIssuerThatIsDown(t *testing.T) {
	i := newIssuer(t)
	i.down.Store(true)
	var log syncBuffer
	o := i.options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	oidc := run(t, o)
	eventually(t, "the log tells of it", func() bool { return strings.Contains(log.String(), "502") })
	got, err := oidc.Token(t.Context(), i.token(nil))
	if got != nil || err == nil || !strings.Contains(err.Error(), "not known yet") {
		t.Errorf("it is %v, %v", got, err)
	}
	if err := oidc.Err(); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("its state is %v", err)
	}
	i.down.Store(false)
	eventually(t, "the issuer is found", func() bool { return oidc.Err() == nil })
	if got, err := oidc.Token(t.Context(), i.token(nil)); err != nil {
		t.Errorf("it is %v, %v", got, err)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("the log tells %d times that it is down:\n%s", n, log.String())
	}
}

func TestAnIssuerThatCannotBeTrusted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*issuer, *authn.OIDCOptions)
		says   string
	}{
		"a certificate of nobody":  {func(_ *issuer, o *authn.OIDCOptions) { o.Roots = x509.NewCertPool }, "certificate"},
		"another issuer's address": {func(i *issuer, _ *authn.OIDCOptions) { i.claimsAs = "https://other.example" }, "did not match"},
		"no issuer at all":         {func(_ *issuer, o *authn.OIDCOptions) { o.IssuerURL += "/nowhere" }, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			o := i.options()
			test.change(i, &o)
			oidc := run(t, o)
			eventually(t, "it says why", func() bool { err := oidc.Err(); return err != nil && strings.Contains(err.Error(), test.says) })
			if got, err := oidc.Token(t.Context(), i.token(nil)); got != nil || err == nil {
				t.Errorf("it is %v", got)
			}
		})
	}
}

// Where an issuer redirects to plain HTTP, nobody follows.
func TestAnIssuerIsAskedByHTTPSAlone(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked by http") }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	oidc := run(t, authn.OIDCOptions{IssuerURL: secure.URL, ClientID: "x", UsernameClaim: "sub", SigningAlgs: []string{"RS256"},
		Roots: func() *x509.CertPool { return pool }})
	eventually(t, "it says why", func() bool { return strings.Contains(oidc.Err().Error(), "https only") })
}

func TestOptionsThatAreRefused(t *testing.T) {
	sound := authn.OIDCOptions{IssuerURL: "https://issuer.example", ClientID: "cmserver", UsernameClaim: "sub", SigningAlgs: []string{"RS256"}}
	if err := sound.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*authn.OIDCOptions)
		says   string
	}{
		"http":                       {func(o *authn.OIDCOptions) { o.IssuerURL = "http://issuer.example" }, "--oidc-issuer-url"},
		"no host":                    {func(o *authn.OIDCOptions) { o.IssuerURL = "https:///x" }, "--oidc-issuer-url"},
		"a password":                 {func(o *authn.OIDCOptions) { o.IssuerURL = "https://a:b@issuer.example" }, "without user"},
		"a query":                    {func(o *authn.OIDCOptions) { o.IssuerURL = "https://issuer.example?x=1" }, "query"},
		"no client":                  {func(o *authn.OIDCOptions) { o.ClientID = "" }, "--oidc-client-id"},
		"no user":                    {func(o *authn.OIDCOptions) { o.UsernameClaim = "" }, "--oidc-username-claim"},
		"no algorithm":               {func(o *authn.OIDCOptions) { o.SigningAlgs = nil }, "--oidc-signing-algs"},
		"an algorithm with a secret": {func(o *authn.OIDCOptions) { o.SigningAlgs = []string{"RS256", "HS256"} }, `"HS256"`},
		"no signature":               {func(o *authn.OIDCOptions) { o.SigningAlgs = []string{"none"} }, `"none"`},
		"reserved users":             {func(o *authn.OIDCOptions) { o.UsernamePrefix = "system:x:" }, "--oidc-username-prefix"},
		"reserved groups":            {func(o *authn.OIDCOptions) { o.GroupsClaim, o.GroupsPrefix = "groups", "system:" }, "--oidc-groups-prefix"},
		"a prefix of no groups":      {func(o *authn.OIDCOptions) { o.GroupsPrefix = "x:" }, "--oidc-groups-claim"},
	} {
		t.Run(name, func(t *testing.T) {
			o := sound
			test.change(&o)
			if err := o.Validate(); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

var _ io.Writer = (*syncBuffer)(nil)

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
