package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
)

// TLS is how connections are secured.
type TLS struct {
	Certificate *Certificate
	// MinVersion is the oldest version that is spoken, from MinVersion; 0: 1.2.
	MinVersion uint16
	// ClientCAs are the authorities of the certificates that clients are asked for,
	// as they are now; nil: they are asked for none. What a client sends is for
	// whoever authenticates requests to judge.
	ClientCAs func() *x509.CertPool
}

// versions are the values of --tls-min-version, by Kubernetes' names.
var versions = map[string]uint16{"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}

// MinVersion is the TLS version of that name.
func MinVersion(name string) (uint16, error) {
	if v, ok := versions[name]; ok {
		return v, nil
	}
	return 0, fmt.Errorf("%q: must be one of %s", name, strings.Join(versionNames(), ", "))
}

func versionNames() []string {
	var names []string
	for name := range versions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ciphers are those of TLS 1.2 that encrypt and authenticate in one, with keys that
// are gone after the connection. TLS 1.3 has no others.
var ciphers = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

func (t *TLS) config() *tls.Config {
	c := &tls.Config{
		GetCertificate: t.Certificate.get,
		MinVersion:     max(t.MinVersion, tls.VersionTLS12),
		CipherSuites:   ciphers,
		NextProtos:     []string{"h2", "http/1.1"},
	}
	if t.ClientCAs == nil {
		return c
	}
	c.ClientAuth = tls.RequestClientCert
	each := c.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := each.Clone()
		now.ClientCAs = t.ClientCAs()
		return now, nil
	}
	return c
}
