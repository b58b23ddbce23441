package client

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// certificateTrouble says that the client certificate which is presented is not
// valid now, and what to do. It is empty where there is none, or nothing is known
// against it.
func (e *endpoint) certificateTrouble(now time.Time) string {
	leaf := e.clientCertificate()
	switch {
	case leaf == nil:
		return ""
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("the client certificate has expired at %s: 'cmserver init --renew --dir FOLDER' renews one that 'cmserver init' has made in that folder, else ask for another",
			leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("the client certificate is valid from %s on only: is this machine's clock right?", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return ""
}

// clientCertificate is the one that is presented, nil if there is none that can be
// read. What a credential plugin gives is not known here.
func (e *endpoint) clientCertificate() *x509.Certificate {
	text := e.config.CertData
	if len(text) == 0 && e.config.CertFile != "" {
		text, _ = os.ReadFile(e.config.CertFile)
	}
	if e.base == nil || e.base.Scheme != "https" {
		return nil
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return leaf
	}
	return nil
}
