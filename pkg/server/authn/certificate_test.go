package authn_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server/authn"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// template is a certificate for clients, valid around the year 2000, when the clocks
// of synctest begin, and now.
func template(cn string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: cn, Organization: groups},
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func authorityTemplate(cn string) *x509.Certificate {
	c := template(cn)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtKeyUsage = true, true, x509.KeyUsageCertSign, nil
	return c
}

func newAuthority(t testing.TB, cn string) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	c := authorityTemplate(cn)
	a.certificate = c // signs itself
	a.certificate = sign(t, a, c, a.key.Public())
	return a
}

// sub makes an authority below this one.
func (a *authority) sub(t testing.TB, c *x509.Certificate) *authority {
	t.Helper()
	key := newKey(t)
	return &authority{certificate: sign(t, a, c, key.Public()), key: key}
}

func (a *authority) issue(t testing.TB, c *x509.Certificate) *x509.Certificate {
	t.Helper()
	return sign(t, a, c, newKey(t).Public())
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

func sign(t testing.TB, by *authority, c *x509.Certificate, key crypto.PublicKey) *x509.Certificate {
	t.Helper()
	c.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<60))
	raw, err := x509.CreateCertificate(rand.Reader, c, by.certificate, key, by.key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// presenting is a request over a connection on which a client presented these.
func presenting(t *testing.T, certificates ...*x509.Certificate) *http.Request {
	t.Helper()
	r := call(t)
	r.TLS = &tls.ConnectionState{PeerCertificates: certificates}
	return r
}

// change makes a certificate for jane that differs in something.
func change(f func(*x509.Certificate)) *x509.Certificate {
	c := template("jane", "ops", "devs") // in the order that certificates have
	f(c)
	return c
}

func TestCertificates(t *testing.T) {
	ca, other := newAuthority(t, "ca"), newAuthority(t, "ca")
	between := ca.sub(t, authorityTemplate("between"))
	uid := func(values ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, v := range values {
				c.Subject.ExtraNames = append(c.Subject.ExtraNames, pkix.AttributeTypeAndValue{
					Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: v})
			}
		}
	}
	self := &authority{key: newKey(t)}
	self.certificate = template("jane")
	none := func(*x509.Certificate) {}
	expired := authorityTemplate("old")
	expired.NotAfter = time.Now().Add(-time.Hour)
	old, client := ca.sub(t, expired), ca.sub(t, template("joe"))
	tests := map[string]struct {
		presented []*x509.Certificate
		refused   string // part of the error; empty: it is jane
		uid       string
	}{
		"for clients":        {[]*x509.Certificate{ca.issue(t, change(none))}, "", ""},
		"for any use":        {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.ExtKeyUsage = nil }))}, "", ""},
		"with a UID":         {[]*x509.Certificate{ca.issue(t, change(uid("u-1")))}, "", "u-1"},
		"for servers":        {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }))}, "incompatible key usage", ""},
		"expired":            {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }))}, "expired", ""},
		"not yet valid":      {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }))}, "not yet valid", ""},
		"of another CA":      {[]*x509.Certificate{other.issue(t, change(none))}, "unknown authority", ""},
		"of itself":          {[]*x509.Certificate{sign(t, self, change(none), self.key.Public())}, "unknown authority", ""},
		"without a CN":       {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.Subject.CommonName = "" }))}, "names no user", ""},
		"with a blank CN":    {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.Subject.CommonName = " " }))}, "begin or end with a space", ""},
		"with a line in it":  {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.Subject.CommonName = "ja\nne" }))}, "control characters", ""},
		"with a blank group": {[]*x509.Certificate{ca.issue(t, change(func(c *x509.Certificate) { c.Subject.Organization = []string{" "} }))}, "one of its groups", ""},
		"with two UIDs":      {[]*x509.Certificate{ca.issue(t, change(uid("u-1", "u-2")))}, "one UID", ""},
		"with an empty UID":  {[]*x509.Certificate{ca.issue(t, change(uid("")))}, "one UID", ""},
		"of an authority between, which comes along": {[]*x509.Certificate{between.issue(t, change(none)), between.certificate}, "", ""},
		"of an authority between, which is missing":  {[]*x509.Certificate{between.issue(t, change(none))}, "unknown authority", ""},
		"of an authority between that is expired":    {[]*x509.Certificate{old.issue(t, change(none)), old.certificate}, "expired", ""},
		"of a client, which is no authority":         {[]*x509.Certificate{client.issue(t, change(none)), client.certificate}, "certificate", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			who := authn.New(methods(t, ca.pool()))
			for range 2 { // the second answer comes from memory, where there is one
				got, err := who.Authenticate(presenting(t, test.presented...))
				if test.refused != "" {
					if err == nil || !strings.Contains(err.Error(), test.refused) {
						t.Errorf("it is %v, %v", got, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if got.GetName() != "jane" || got.GetUID() != test.uid || !slices.Equal(got.GetGroups(), []string{"ops", "devs", user.AllAuthenticated}) ||
					!strings.HasPrefix(strings.Join(got.GetExtra()[user.CredentialIDKey], " "), "X509SHA256=") {
					t.Errorf("it is %v", got)
				}
			}
		})
	}
}

// A connection that stays open notices that the authority is gone, that its
// certificate expires, or that of the authority.
func TestACertificateIsLookedAtWithEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, next := newAuthority(t, "ca"), newAuthority(t, "next")
		short := authorityTemplate("short")
		short.NotAfter = time.Now().Add(time.Hour)
		between := ca.sub(t, short)
		pool := ca.pool()
		who := authn.New(authn.Methods{Certificates: authn.NewCertificates(func() *x509.CertPool { return pool })})
		is := func(r *http.Request, good bool) {
			t.Helper()
			if got, err := who.Authenticate(r); (err == nil) != good {
				t.Errorf("it is %v, %v", got, err)
			}
		}
		leaf := template("jane")
		leaf.NotAfter = time.Now().Add(2 * time.Hour)
		direct := presenting(t, ca.issue(t, leaf))
		below := presenting(t, between.issue(t, template("jane")), between.certificate)
		is(direct, true)
		is(below, true)

		pool = next.pool()
		is(direct, false)
		pool = ca.pool()
		is(direct, true)

		time.Sleep(time.Hour + time.Second)
		is(below, false)
		is(direct, true)
		time.Sleep(time.Hour)
		is(direct, false)
	})
}

func TestParseAuthorities(t *testing.T) {
	a, b := newAuthority(t, "a"), newAuthority(t, "b")
	client := &authority{certificate: a.issue(t, template("jane"))}
	for name, test := range map[string]struct {
		file    string
		refused string
	}{
		"one":           {a.pem(), ""},
		"two, and text": {"# the old one\n" + a.pem() + "\n# the new one\n" + b.pem(), ""},
		"empty":         {"", "no certificate"},
		"text":          {"hello", "no certificate"},
		"a key":         {string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")})), "only certificates"},
		"broken":        {a.pem() + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), "certificate 2"},
		"a client's":    {client.pem(), "no authority's"},
	} {
		t.Run(name, func(t *testing.T) {
			pool, err := authn.ParseAuthorities([]byte(test.file))
			if test.refused == "" {
				if err != nil || pool == nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRootsMayBeTrustedByThemselves(t *testing.T) {
	self := &authority{certificate: newAuthority(t, "a").issue(t, template("issuer"))}
	if pool, err := authn.ParseRoots([]byte(self.pem())); err != nil || pool == nil {
		t.Error(err)
	}
	if _, err := authn.ParseRoots(nil); err == nil {
		t.Error("an empty file is taken")
	}
}

func BenchmarkCertificate(b *testing.B) {
	ca := newAuthority(b, "ca")
	pool := ca.pool()
	who := authn.New(authn.Methods{Certificates: authn.NewCertificates(func() *x509.CertPool { return pool })})
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{ca.issue(b, template("jane", "devs"))}}
	b.ReportAllocs()
	for b.Loop() {
		if u, err := who.Authenticate(r); u == nil || err != nil {
			b.Fatal(err)
		}
	}
}
