package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// idTokens is an OpenID Connect issuer, and makes its tokens.
type idTokens struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey
}

func startIssuer(t *testing.T) *idTokens {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &idTokens{t: t, key: key}
	documents := map[string]func() any{
		"/.well-known/openid-configuration": func() any { return map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"} },
		"/keys": func() any {
			return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "it", Algorithm: "RS256", Use: "sig"}}}
		},
	}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document()) // a client that is gone can't be told so
	}))
	t.Cleanup(i.Close)
	return i
}

// certificate is a file with the issuer's own certificate.
func (i *idTokens) certificate() string {
	i.t.Helper()
	path := filepath.Join(i.t.TempDir(), "issuer.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return path
}

func (i *idTokens) token(expires time.Time) string {
	i.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "it"))
	if err != nil {
		i.t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{"iss": i.URL, "aud": "cmserver", "sub": "jane", "groups": []string{"devs"}, "exp": expires.Unix()})
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

func TestTokensOfAnIssuer(t *testing.T) {
	needKubectl(t)
	i := startIssuer(t)
	s := startSecured(t, "--oidc-issuer-url", i.URL, "--oidc-client-id", "cmserver", "--oidc-ca-file", i.certificate(),
		"--oidc-username-prefix", "oidc:", "--oidc-groups-claim", "groups", "--oidc-groups-prefix", "oidc:")
	jane := s.kubeconfig("token: " + i.token(time.Now().Add(time.Hour)))
	s.eventually("the issuer is found", func() bool { return s.run("cmctl", jane, "auth", "whoami").code == 0 })
	s.says(s.run("kubectl", jane, "auth", "whoami"), 0, "oidc:jane", "[oidc:devs system:authenticated]")
	s.says(s.run("kubectl", jane, "create", "configmap", "flags", "--from-literal=mode=blue"), 0)
	s.says(s.run("cmctl", jane, "history", "flags"), 0, "oidc:jane")
	expired := s.kubeconfig("token: " + i.token(time.Now().Add(-time.Minute)))
	s.says(s.run("kubectl", expired, "get", "configmaps"), 1, "You must be logged in to the server")
	s.says(s.run("cmctl", expired, "get", "flags"), 6, "does not accept the credentials")
}
