package pki_test

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/cmd/cmserver/internal/pki"
)

func authority(t *testing.T, life time.Duration, now time.Time) (*pki.Authority, []byte) {
	t.Helper()
	ca, key, err := pki.NewAuthority("test", life, now)
	if err != nil {
		t.Fatal(err)
	}
	text, err := pki.KeyPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return ca, text
}

// What the authority signs is good for its purpose and its names, and no other.
func TestCertificatesAreForOneThing(t *testing.T) {
	now := time.Now()
	ca, _ := authority(t, 24*time.Hour, now)
	key, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Server(key.Public(), []string{"cm.example", "192.0.2.1", "::1"}, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client(key.Public(), "alice", []string{"team", "ops"}, 48*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	for _, c := range []struct {
		cert  *x509.Certificate
		name  string
		usage x509.ExtKeyUsage
		at    time.Duration
		good  bool
	}{
		{server, "cm.example", x509.ExtKeyUsageServerAuth, 0, true},
		{server, "192.0.2.1", x509.ExtKeyUsageServerAuth, 0, true},
		{server, "::1", x509.ExtKeyUsageServerAuth, 59 * time.Minute, true},
		{server, "cm.example", x509.ExtKeyUsageServerAuth, 61 * time.Minute, false},
		{server, "other.example", x509.ExtKeyUsageServerAuth, 0, false},
		{server, "", x509.ExtKeyUsageClientAuth, 0, false},
		{client, "", x509.ExtKeyUsageClientAuth, 0, true},
		{client, "", x509.ExtKeyUsageServerAuth, 0, false},
	} {
		_, err := c.cert.Verify(x509.VerifyOptions{DNSName: c.name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{c.usage}, CurrentTime: now.Add(c.at)})
		if (err == nil) != c.good {
			t.Errorf("%s for %q after %s: %v", c.cert.Subject, c.name, c.at, err)
		}
	}
	if got := client.Subject.String(); !strings.Contains(got, "CN=alice") || len(client.Subject.Organization) != 2 {
		t.Errorf("the client is %s", got)
	}
	if client.NotAfter.After(ca.Certificate.NotAfter) {
		t.Error("a certificate outlives its authority")
	}
}

func TestAnAuthorityComesBack(t *testing.T) {
	now := time.Now()
	ca, key := authority(t, time.Hour, now)
	_, otherKey := authority(t, time.Hour, now)
	cert := pki.CertificatePEM(ca.Certificate)
	leafKey, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Client(leafKey.Public(), "x", nil, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	leafText, err := pki.KeyPEM(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		cert, key []byte
		at        time.Time
		says      string // empty: it comes back
	}{
		{"whole", cert, key, now, ""},
		{"expired", cert, key, now.Add(2 * time.Hour), "expired"},
		{"another's key", cert, otherKey, now, "not that of its certificate"},
		{"no authority", pki.CertificatePEM(leaf), leafText, now, "not an authority's"},
		{"no certificate", key, key, now, "no certificate"},
		{"no key", cert, cert, now, "no private key"},
		{"nothing", nil, nil, now, "no certificate"},
	} {
		_, err := pki.LoadAuthority(c.cert, c.key, c.at)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
