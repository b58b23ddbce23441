// Package pki makes what a server and its clients need to know each other: an
// authority, and certificates that it signs. Keys are ECDSA on P-256.
//
//	ca, _, err := pki.NewAuthority("lab", 24*time.Hour, time.Now())
//	key, err := pki.NewKey()
//	cert, err := ca.Server(key.Public(), []string{"localhost"}, time.Hour, time.Now())
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// backdated is how long before now a certificate is good, for clients whose clocks
// are behind.
const backdated = 5 * time.Minute

// Authority signs certificates. It may be shared.
type Authority struct {
	Certificate *x509.Certificate
	key         crypto.Signer
}

// NewKey makes a private key.
func NewKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// NewAuthority makes an authority that signs certificates and nothing beneath it.
func NewAuthority(name string, life time.Duration, now time.Time) (*Authority, *ecdsa.PrivateKey, error) {
	key, err := NewKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(life),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	return &Authority{cert, key}, key, nil
}

// LoadAuthority takes the PEM of one that was made before. It must be able to sign
// still.
func LoadAuthority(cert, key []byte, now time.Time) (*Authority, error) {
	c, err := ParseCertificate(cert)
	if err != nil {
		return nil, fmt.Errorf("its certificate: %w", err)
	}
	k, err := ParseKey(key)
	if err != nil {
		return nil, fmt.Errorf("its key: %w", err)
	}
	switch public, ok := k.Public().(interface{ Equal(crypto.PublicKey) bool }); {
	case !ok || !public.Equal(c.PublicKey):
		return nil, errors.New("its key is not that of its certificate")
	case !c.IsCA:
		return nil, errors.New("its certificate is not an authority's")
	case now.After(c.NotAfter):
		return nil, fmt.Errorf("it has expired on %s", c.NotAfter.UTC().Format(time.DateOnly))
	}
	return &Authority{c, k}, nil
}

// Server makes a certificate for a server that is reached under these names, hosts
// and IP addresses.
func (a *Authority) Server(key crypto.PublicKey, names []string, life time.Duration, now time.Time) (*x509.Certificate, error) {
	t := a.template(pkix.Name{CommonName: names[0]}, x509.ExtKeyUsageServerAuth, life, now)
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	return sign(t, a.Certificate, key, a.key)
}

// Client makes a certificate that says who a client is, in Kubernetes' form.
func (a *Authority) Client(key crypto.PublicKey, user string, groups []string, life time.Duration, now time.Time) (*x509.Certificate, error) {
	return sign(a.template(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth, life, now), a.Certificate, key, a.key)
}

// template is a certificate that does not outlive the authority.
func (a *Authority) template(subject pkix.Name, usage x509.ExtKeyUsage, life time.Duration, now time.Time) *x509.Certificate {
	end := now.Add(life)
	if end.After(a.Certificate.NotAfter) {
		end = a.Certificate.NotAfter
	}
	return &x509.Certificate{
		Subject:               subject,
		NotBefore:             now.Add(-backdated),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{usage},
		BasicConstraintsValid: true,
	}
}

func sign(template, parent *x509.Certificate, key crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // above 0
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// The types of PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// CertificatePEM is a certificate as a file has it.
func CertificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})
}

// KeyPEM is a private key as a file has it.
func KeyPEM(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// ParseCertificate reads the first certificate of a PEM file.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != certificateBlock {
		return nil, errors.New("it is no certificate in PEM form")
	}
	return x509.ParseCertificate(block.Bytes)
}

// ParseKey reads a private key that KeyPEM wrote.
func ParseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != keyBlock {
		return nil, errors.New("it is no private key in PEM form")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key can't be read") // without what it says of the key
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the private key can't sign")
	}
	return signer, nil
}
