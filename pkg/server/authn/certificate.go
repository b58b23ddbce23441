package authn

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	kasn1 "k8s.io/apimachinery/pkg/apis/asn1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Certificates knows users by their client certificates, as Kubernetes does: the
// subject's common name is the user, and its organizations are the groups.
//
// The handshake asks for a certificate and proves that the client has its key
// (tls.RequestClientCert); whether it is a good one is found out with each request,
// so that a connection doesn't outlive its certificate, or the authority's place in
// the file.
type Certificates struct {
	pool func() *x509.CertPool
	now  func() time.Time

	mu       sync.Mutex
	verified map[[sha256.Size]byte]verified // by the certificate's digest; guarded by mu
}

// verified is what was found out about a certificate.
type verified struct {
	pool  *x509.CertPool // by which authorities
	until time.Time      // when the first of its chain expires
	user  *user.DefaultInfo
}

// maxVerified is how many certificates are remembered.
const maxVerified = 4096

// NewCertificates trusts the authorities of the pool as it is at each request.
func NewCertificates(pool func() *x509.CertPool) *Certificates {
	return &Certificates{pool: pool, now: time.Now, verified: map[[sha256.Size]byte]verified{}}
}

// Authorities are those whose certificates are taken now, for
// tls.Config.GetConfigForClient to name to clients.
func (c *Certificates) Authorities() *x509.CertPool { return c.pool() }

// of finds the user of a connection, if it has a certificate.
func (c *Certificates) of(state *tls.ConnectionState) (*user.DefaultInfo, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf := state.PeerCertificates[0]
	digest, pool, now := sha256.Sum256(leaf.Raw), c.pool(), c.now()
	c.mu.Lock()
	known, ok := c.verified[digest]
	c.mu.Unlock()
	if ok && known.pool == pool && now.Before(known.until) {
		return known.user, nil
	}
	known, err := verify(state.PeerCertificates, pool, now)
	if err != nil {
		return nil, fmt.Errorf("client certificate of %q, serial %x: %w", leaf.Subject.String(), leaf.SerialNumber, err)
	}
	known.user.Extra = map[string][]string{user.CredentialIDKey: {"X509SHA256=" + hex.EncodeToString(digest[:])}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.verified) >= maxVerified {
		clear(c.verified)
	}
	c.verified[digest] = known
	return known.user, nil
}

// verify checks what a client presents: its own certificate first, then those between
// it and the authority.
func verify(presented []*x509.Certificate, pool *x509.CertPool, now time.Time) (verified, error) {
	between := x509.NewCertPool()
	for _, c := range presented[1:] {
		between.AddCert(c)
	}
	chains, err := presented[0].Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return verified{}, err
	}
	who, err := userOf(presented[0])
	if err != nil {
		return verified{}, err
	}
	until := presented[0].NotAfter
	for _, c := range chains[0] {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
	}
	return verified{pool: pool, until: until, user: who}, nil
}

func userOf(c *x509.Certificate) (*user.DefaultInfo, error) {
	if c.Subject.CommonName == "" {
		return nil, errors.New("it names no user: its subject has no common name (CN)")
	}
	who := &user.DefaultInfo{Name: c.Subject.CommonName, Groups: c.Subject.Organization}
	for _, name := range c.Subject.Names {
		if !name.Type.Equal(kasn1.X509UID()) {
			continue
		}
		uid, ok := name.Value.(string)
		if !ok || uid == "" || who.UID != "" {
			return nil, errors.New("its subject must have one UID that is a text, or none")
		}
		who.UID = uid
	}
	if err := CheckNames(who); err != nil {
		return nil, err
	}
	return who, nil
}

// ParseAuthorities reads the certificates of authorities in PEM form, one after the
// other. Anything else in the file is refused but for text around them.
func ParseAuthorities(content []byte) (*x509.CertPool, error) {
	return parseCertificates(content, func(c *x509.Certificate) error {
		if !c.IsCA {
			return fmt.Errorf("the one of %q is no authority's: it may sign no others", c.Subject.String())
		}
		return nil
	})
}

// ParseRoots is ParseAuthorities for the other side of a connection, which may also
// have a certificate that is trusted by itself.
func ParseRoots(content []byte) (*x509.CertPool, error) {
	return parseCertificates(content, func(*x509.Certificate) error { return nil })
}

func parseCertificates(content []byte, check func(*x509.Certificate) error) (*x509.CertPool, error) {
	pool, rest := x509.NewCertPool(), content
	for n := 1; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if n == 1 {
				return nil, errors.New("there is no certificate in it in PEM form")
			}
			return pool, nil
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("block %d is a %q, and only certificates belong there", n, block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			err = check(c)
		}
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", n, err)
		}
		pool.AddCert(c)
	}
}
