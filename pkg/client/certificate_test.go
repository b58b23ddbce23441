package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A certificate that is not valid now is said to be so, wherever it is from.
func TestCertificateTrouble(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	until := from.Add(time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	file := filepath.Join(t.TempDir(), "client.crt")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ofFile, err := ResolveTarget(TargetOptions{Server: "https://s", Credentials: Credentials{ClientCertificate: file, ClientKey: file}})
	if err != nil {
		t.Fatal(err)
	}
	ofKubeconfig, err := ResolveTarget(TargetOptions{Server: "https://s"})
	if err != nil {
		t.Fatal(err)
	}
	ofKubeconfig.endpoints[0].config.CertData = append([]byte("the client's\n"), text...)
	for _, c := range []struct {
		now  time.Time
		says string
	}{
		{from.Add(-time.Second), "valid from 2026-01-01T00:00:00Z on only"},
		{from.Add(time.Minute), ""},
		{until.Add(time.Second), "has expired at 2026-01-01T01:00:00Z: 'cmserver init --renew --dir FOLDER'"},
	} {
		for _, target := range []*Target{ofFile, ofKubeconfig} {
			if got := target.endpoints[0].certificateTrouble(c.now); !strings.Contains(got, c.says) || c.says == "" && got != "" {
				t.Errorf("at %s: %q", c.now, got)
			}
		}
	}
	for name, o := range map[string]TargetOptions{
		"no certificate": {Server: "https://s"},
		"no such file":   {Server: "https://s", Credentials: Credentials{ClientCertificate: file + "-gone", ClientKey: file}},
		"no TLS":         {Server: "http://127.0.0.1", Credentials: Credentials{ClientCertificate: file, ClientKey: file}},
	} {
		target, err := ResolveTarget(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.endpoints[0].certificateTrouble(until.Add(time.Hour)); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
