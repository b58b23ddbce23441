package main

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"example.com/cmctl/cmd/cmserver/internal/pki"
)

// runRenew makes new certificates for the keys that are there. Since the keys stay,
// each file fits the others at any moment, also if it is cut off; a server that runs
// takes its new one by itself.
func (o *initOptions) runRenew() error {
	ca, err := o.authority()
	if err != nil {
		return usageError{err}
	}
	renewed, err := o.renewServer(ca)
	if err != nil {
		return usageError{err}
	}
	admin, err := o.renewAdmin(ca)
	if err != nil {
		return usageError{err}
	}
	for _, f := range append(renewed, admin...) {
		if err := replaceFile(o.path(f.name), f.content); err != nil {
			return fmt.Errorf("renew %s: %w; run it again", f.name, err)
		}
	}
	return o.tellRenewed(renewed, admin, ca)
}

func (o *initOptions) authority() (*pki.Authority, error) {
	cert, err := o.read(caCertFile)
	if err != nil {
		return nil, err
	}
	key, err := o.read(caKeyFile)
	if err != nil {
		return nil, err
	}
	ca, err := pki.LoadAuthority(cert, key, o.now)
	if err != nil {
		return nil, fmt.Errorf("the authority in %s signs nothing any more: %w; make another one with 'cmserver init --dir DIR'", o.dir, err)
	}
	return ca, nil
}

func (o *initOptions) read(name string) ([]byte, error) {
	text, err := os.ReadFile(o.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s to renew with; give the folder that 'cmserver init' made with --dir: %w", o.dir, name, err)
	}
	return text, err
}

// pair is a certificate that is to be renewed, and its key.
func (o *initOptions) pair(certFile, keyFile string) (*x509.Certificate, crypto.Signer, error) {
	text, err := o.read(certFile)
	if err != nil {
		return nil, nil, err
	}
	cert, err := pki.ParseCertificate(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.path(certFile), err)
	}
	if text, err = o.read(keyFile); err != nil {
		return nil, nil, err
	}
	key, err := pki.ParseKey(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", o.path(keyFile), err)
	}
	return cert, key, nil
}

// renewServer takes the names that were given, or else those of the old certificate.
func (o *initOptions) renewServer(ca *pki.Authority) ([]newFile, error) {
	old, key, err := o.pair(serverCertFile, serverKeyFile)
	if err != nil {
		return nil, err
	}
	names := o.names
	if len(names) == 0 {
		names = hosts(old)
	}
	cert, err := ca.Server(key.Public(), names, o.serverLife, o.now)
	if err != nil {
		return nil, err
	}
	return []newFile{{serverCertFile, pki.CertificatePEM(cert)}}, nil
}

// hosts are the names of a server's certificate, the first one first.
func hosts(cert *x509.Certificate) []string {
	names := []string{cert.Subject.CommonName}
	for _, name := range cert.DNSNames {
		if name != names[0] {
			names = append(names, name)
		}
	}
	for _, ip := range cert.IPAddresses {
		if ip.String() != names[0] {
			names = append(names, ip.String())
		}
	}
	return names
}

// renewAdmin renews the administrator's certificate, and in the kubeconfig, as far as
// they are still in the folder.
func (o *initOptions) renewAdmin(ca *pki.Authority) ([]newFile, error) {
	old, key, err := o.pair(adminCertFile, adminKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cert, err := ca.Client(key.Public(), old.Subject.CommonName, old.Subject.Organization, o.clientLife, o.now)
	if err != nil {
		return nil, err
	}
	files := []newFile{{adminCertFile, pki.CertificatePEM(cert)}}
	text, err := os.ReadFile(o.path(kubeconfigFile))
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	changed, err := withCertificate(text, pki.CertificatePEM(old), pki.CertificatePEM(cert))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.path(kubeconfigFile), err)
	}
	return append(files, newFile{kubeconfigFile, changed}), nil
}

// withCertificate puts a certificate in the place of another in a kubeconfig.
func withCertificate(text, old, renewed []byte) ([]byte, error) {
	var config clientcmd.Config
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, errors.New("it can't be read; make it anew, or move it away") // the error may quote a key
	}
	for i := range config.AuthInfos {
		if user := &config.AuthInfos[i].AuthInfo; bytes.Equal(user.ClientCertificateData, old) {
			user.ClientCertificateData = renewed
		}
	}
	return yaml.Marshal(config)
}

func (o *initOptions) tellRenewed(server, admin []newFile, ca *pki.Authority) error {
	var out strings.Builder
	for _, f := range append(server, admin...) {
		if filepath.Ext(f.name) != ".crt" {
			fmt.Fprintf(&out, "%s has the new certificate\n", o.path(f.name))
			continue
		}
		cert, err := pki.ParseCertificate(f.content)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s is good until %s\n", o.path(f.name), day(cert.NotAfter))
	}
	if len(admin) == 0 {
		fmt.Fprintf(&out, "there is no %s in the folder, so no client's certificate was renewed\n", adminCertFile)
	}
	fmt.Fprintf(&out, "the authority itself lasts until %s; a running server takes its certificate by itself\n", day(ca.Certificate.NotAfter))
	_, err := fmt.Fprint(o.out, out.String())
	return err
}
