package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/server/reload"
)

// etcdTLS is how connections to etcd are encrypted; nil: they are not.
func (c storeConfig) etcdTLS() (*tls.Config, error) {
	if c.EtcdCAFile == "" {
		return nil, nil
	}
	text, err := reload.ReadFile(c.EtcdCAFile)
	if err != nil {
		return nil, fmt.Errorf("--etcd-ca-file: %w", err)
	}
	t := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !t.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--etcd-ca-file %s: there is no certificate in it", c.EtcdCAFile)
	}
	if c.EtcdCertFile == "" {
		return t, nil
	}
	if _, err := c.etcdCertificate(nil); err != nil {
		return nil, err
	}
	t.GetClientCertificate = c.etcdCertificate
	return t, nil
}

// etcdCertificate reads what is shown to etcd, anew for each connection: it is renewed
// without a restart.
func (c storeConfig) etcdCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := reload.ReadFile(c.EtcdCertFile)
	if err != nil {
		return nil, fmt.Errorf("--etcd-cert-file: %w", err)
	}
	key, err := reload.ReadFile(c.EtcdKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--etcd-key-file: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // it names the half that is bad, and shows nothing of it
		return nil, fmt.Errorf("--etcd-cert-file %s and --etcd-key-file %s: %w", c.EtcdCertFile, c.EtcdKeyFile, err)
	}
	return &pair, nil
}

// etcdPassword is that of EtcdUser, empty without one.
func (c storeConfig) etcdPassword() (string, error) {
	if c.EtcdPasswordFile == "" {
		return "", nil
	}
	text, err := reload.ReadFile(c.EtcdPasswordFile)
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", errors.New("--etcd-password-file " + c.EtcdPasswordFile + ": there is nothing in it")
	}
	return password, nil
}
