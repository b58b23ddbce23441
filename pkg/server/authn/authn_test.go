package authn_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server/authn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// goodToken is jane's.
const goodToken = "0123456789abcdefghijklmnop"

// methods are all ways but OpenID Connect.
func methods(t *testing.T, pool *x509.CertPool) authn.Methods {
	t.Helper()
	tokens, _, err := authn.ParseTokens(strings.NewReader(goodToken + `,jane,u-1,"devs,ops"` + "\nanonymous-token-of-nobody,system:anonymous,,system:unauthenticated\n"))
	if err != nil {
		t.Fatal(err)
	}
	return authn.Methods{
		Certificates: authn.NewCertificates(func() *x509.CertPool { return pool }),
		Tokens:       []authn.TokenIssuer{tokens}, Peers: authn.NewPeers(), Anonymous: true,
	}
}

// call is a request with those Authorization headers.
func call(t *testing.T, authorization ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range authorization {
		r.Header.Add("Authorization", value)
	}
	return r
}

// The header is taken in one form only, and a request with bad credentials is never
// anonymous.
func TestTheAuthorizationHeader(t *testing.T) {
	who := authn.New(methods(t, x509.NewCertPool()))
	for name, test := range map[string]struct {
		headers []string
		user    string // empty: refused; "-": nobody
	}{
		"none":                       {nil, "-"},
		"a good token":               {[]string{"Bearer " + goodToken}, "jane"},
		"another case":               {[]string{"bEARER " + goodToken}, "jane"},
		"a wrong token":              {[]string{"Bearer " + goodToken + "q"}, ""},
		"a shorter token":            {[]string{"Bearer " + goodToken[:20]}, ""},
		"the token in upper case":    {[]string{"Bearer " + strings.ToUpper(goodToken)}, ""},
		"an empty header":            {[]string{""}, ""},
		"an empty token":             {[]string{"Bearer "}, ""},
		"no token":                   {[]string{"Bearer"}, ""},
		"two spaces":                 {[]string{"Bearer  " + goodToken}, ""},
		"a tab":                      {[]string{"Bearer\t" + goodToken}, ""},
		"more after it":              {[]string{"Bearer " + goodToken + " x"}, ""},
		"two in one":                 {[]string{"Bearer " + goodToken + ",Bearer " + goodToken}, ""},
		"two headers":                {[]string{"Bearer " + goodToken, "Bearer " + goodToken}, ""},
		"two, one empty":             {[]string{"", "Bearer " + goodToken}, ""},
		"basic":                      {[]string{"Basic amFuZTp4"}, ""},
		"without a scheme":           {[]string{goodToken}, ""},
		"control characters":         {[]string{"Bearer " + goodToken + "\x00"}, ""},
		"a digest as token":          {[]string{"Bearer sha256:5f0c"}, ""},
		"a token of system:nobody's": {[]string{"Bearer anonymous-token-of-nobody"}, "system:anonymous"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := who.Authenticate(call(t, test.headers...))
			switch {
			case test.user == "" && (err == nil || got != nil):
				t.Errorf("it is %v", got)
			case test.user == "-" && (err != nil || got != nil):
				t.Errorf("it is %v, %v", got, err)
			case len(test.user) > 1 && (err != nil || got == nil || got.GetName() != test.user):
				t.Errorf("it is %v, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), goodToken[:10]) {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
}

// Front proxies, query parameters and web sockets name users elsewhere. They are not
// believed here.
func TestWhatIsNotBelieved(t *testing.T) {
	who := authn.New(methods(t, x509.NewCertPool()))
	r := call(t)
	for _, header := range []string{"X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Scopes", "X-Remote-Uid", "X-Forwarded-User", "X-Forwarded-For",
		"X-Forwarded-Client-Cert", "X-Client-Cert", "X-Ssl-Client-Cert", "Forwarded", "Remote-User", "Proxy-Authorization", "Cookie"} {
		r.Header.Set(header, "Bearer "+goodToken)
	}
	r.Header.Set("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3A")
	r.URL.RawQuery = "access_token=" + goodToken + "&token=" + goodToken + "&authorization=Bearer%20" + goodToken
	if got, err := who.Authenticate(r); got != nil || err != nil {
		t.Errorf("it is %v, %v", got, err)
	}
	m := methods(t, x509.NewCertPool())
	m.Anonymous = false
	if got, err := authn.New(m).Authenticate(r); got != nil || err == nil {
		t.Errorf("with --anonymous-auth=false it is %v", got)
	}
}

// A token where only certificates are known is one that nobody knows.
func TestATokenWithoutAnyWayToKnowIt(t *testing.T) {
	m := methods(t, x509.NewCertPool())
	m.Tokens = nil
	if got, err := authn.New(m).Authenticate(call(t, "Bearer "+goodToken)); err == nil {
		t.Errorf("it is %v", got)
	}
}

// The first method that knows its user wins, and everyone who is known is in
// system:authenticated, once.
func TestTheOrderOfMethods(t *testing.T) {
	ca := newAuthority(t, "ca")
	who := authn.New(methods(t, ca.pool()))
	client := ca.issue(t, template("cert", "team"))
	bad := newAuthority(t, "other").issue(t, template("cert", "team"))
	peer := authn.WithPeer(context.Background(), authn.Peer{UID: 4242, GID: 4243, PID: 1})
	for name, test := range map[string]struct {
		certificate *x509.Certificate
		token       string
		peer        bool
		want        string // empty: refused
		groups      []string
	}{
		"a certificate":                            {client, "", false, "cert", []string{"team"}},
		"a token":                                  {nil, goodToken, false, "jane", []string{"devs", "ops"}},
		"a peer":                                   {nil, "", true, "unix:4242", []string{"unix:4243"}},
		"all":                                      {client, goodToken, true, "cert", []string{"team"}},
		"a good certificate and a bad token":       {client, "wrong", false, "cert", []string{"team"}},
		"a bad certificate and a good token":       {bad, goodToken, false, "jane", []string{"devs", "ops"}},
		"a token and a peer":                       {nil, goodToken, true, "jane", []string{"devs", "ops"}},
		"a bad certificate":                        {bad, "", false, "", nil},
		"a bad certificate and a peer":             {bad, "", true, "", nil},
		"a bad token and a peer":                   {nil, "wrong", true, "", nil},
		"a bad certificate, a bad token, and peer": {bad, "wrong", true, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var header []string
			if test.token != "" {
				header = []string{"Bearer " + test.token}
			}
			r := call(t, header...)
			if test.peer {
				r = r.WithContext(peer)
			}
			if test.certificate != nil {
				r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{test.certificate}}
			}
			got, err := who.Authenticate(r)
			if (err != nil) != (test.want == "") {
				t.Fatalf("it is %v, %v", got, err)
			}
			if err != nil {
				return
			}
			if got.GetName() != test.want || !slices.Equal(got.GetGroups(), append(test.groups, user.AllAuthenticated)) {
				t.Errorf("it is %s in %q", got.GetName(), got.GetGroups())
			}
		})
	}
}

func TestWhoIsExpresslyNotAuthenticatedIsNot(t *testing.T) {
	got, err := authn.New(methods(t, x509.NewCertPool())).Authenticate(call(t, "Bearer anonymous-token-of-nobody"))
	if err != nil || !slices.Equal(got.GetGroups(), []string{user.AllUnauthenticated}) {
		t.Errorf("it is %v, %v", got, err)
	}
}

func BenchmarkToken(b *testing.B) {
	tokens, _, err := authn.ParseTokens(strings.NewReader(goodToken + `,jane,u-1,"devs,ops"`))
	if err != nil {
		b.Fatal(err)
	}
	who := authn.New(authn.Methods{Tokens: []authn.TokenIssuer{tokens}})
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+goodToken)
	b.ReportAllocs()
	for b.Loop() {
		if u, err := who.Authenticate(r); u == nil || err != nil {
			b.Fatal(err)
		}
	}
}
