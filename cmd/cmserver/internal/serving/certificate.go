package serving

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"example.com/cmctl/pkg/server/reload"
)

const (
	// soon is how long before its end a certificate is a matter of concern, or a
	// fifth of its time if that is less.
	soon = 30 * 24 * time.Hour
	// reminder is how often the log tells of that.
	reminder = 24 * time.Hour
)

// Certificate is the server's own, with its key, read anew when its files change.
// It may be used by any number of goroutines.
type Certificate struct {
	files string
	value *reload.Value[*tls.Certificate]
	log   *slog.Logger
}

// LoadCertificate reads a chain and its key from PEM files; both may be in one. A
// certificate with which no client would be content is an error.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{files: certFile, log: log}
	load := func() (*tls.Certificate, error) { return loadPair(certFile, keyFile, log) }
	var err error
	if c.value, err = reload.New("the server's certificate", []string{certFile, keyFile}, log, load); err != nil {
		return nil, err
	}
	return c, nil
}

func loadPair(certFile, keyFile string, log *slog.Logger) (*tls.Certificate, error) {
	cert, err := reload.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file: %w", err)
	}
	key, err := reload.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-private-key-file: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // it names the half that is bad, and shows nothing of it
		return nil, fmt.Errorf("--tls-cert-file %s and --tls-private-key-file %s: %w", certFile, keyFile, err)
	}
	if err := fit(pair.Leaf, time.Now()); err != nil {
		return nil, fmt.Errorf("--tls-cert-file %s: %w%s", certFile, err, renewal(pair.Leaf, certFile))
	}
	if readableByOthers(keyFile) {
		log.Warn("other users of this machine may read the server's key", "file", keyFile, "do", "chmod 600 "+keyFile)
	}
	return &pair, nil
}

// fit says why clients would refuse a server's certificate, whatever its authority.
func fit(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate has expired on %s", day(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is good from %s on only; is this machine's clock right?", leaf.NotBefore.UTC().Format(time.RFC3339))
	case len(leaf.DNSNames)+len(leaf.IPAddresses) == 0:
		return errors.New("the certificate names no host (subjectAltName), and so no client would take it")
	case len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) > 0 &&
		!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) && !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny):
		return errors.New("the certificate is not for servers (extended key usage serverAuth)")
	}
	return nil
}

// renewal is how to renew a certificate that has expired, if cmserver init made it.
func renewal(leaf *x509.Certificate, file string) string {
	if !time.Now().After(leaf.NotAfter) {
		return ""
	}
	folder := filepath.Dir(file)
	if full, err := filepath.Abs(folder); err == nil {
		folder = full
	}
	return fmt.Sprintf("; if 'cmserver init' made it, 'cmserver init --renew --dir %s' renews it", folder)
}

// readableByOthers tells whether others than its owner may read a file.
func readableByOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Leaf is the certificate itself.
func (c *Certificate) Leaf() *x509.Certificate { return c.value.Get().Leaf }

// Look says what is wrong with the files or the certificate in force, nil if nothing.
func (c *Certificate) Look() error {
	if err := c.value.Err(); err != nil {
		return err
	}
	return ending(c.Leaf(), time.Now())
}

// ending says that a certificate is at its end, or will be soon.
func ending(leaf *x509.Certificate, now time.Time) error {
	left := leaf.NotAfter.Sub(now)
	switch {
	case left < 0:
		return fmt.Errorf("the server's certificate has expired on %s: clients refuse it", day(leaf.NotAfter))
	case left < min(soon, leaf.NotAfter.Sub(leaf.NotBefore)/5):
		return fmt.Errorf("the server's certificate expires at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Run keeps the certificate up to date until ctx ends, and reminds of its end.
func (c *Certificate) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.value.Run(ctx) })
	tick := time.NewTicker(reminder)
	defer tick.Stop()
	for {
		if err := ending(c.Leaf(), time.Now()); err != nil {
			c.log.Warn("put a new certificate into its files: they are read without a restart", "file", c.files, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.value.Get(), nil }
