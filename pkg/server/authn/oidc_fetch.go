package authn

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// fetchTimeout is how long one question to the issuer may take.
	fetchTimeout = 10 * time.Second
	// fetchPause is how often one document is asked for at most. Each token with an
	// unknown key makes a question for keys, and anyone can make such tokens.
	fetchPause = 5 * time.Second
	// fetchLimit is how long an answer may be.
	fetchLimit = 1 << 20
)

// fetcher asks the issuer: by https alone, with limits, and by the authorities as they
// are at each question.
type fetcher struct {
	client *http.Client
	roots  func() *x509.CertPool
	now    func() time.Time

	mu        sync.Mutex
	trusted   *x509.CertPool       // what transport trusts; guarded by mu
	transport *http.Transport      // guarded by mu; nil before the first question
	asked     map[string]time.Time // when, by URL; guarded by mu
}

func newFetcher(roots func() *x509.CertPool, now func() time.Time) *fetcher {
	f := &fetcher{roots: roots, now: now, asked: map[string]time.Time{}}
	f.client = &http.Client{Transport: f, Timeout: fetchTimeout}
	return f
}

// RoundTrip implements http.RoundTripper.
func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not asked: the issuer's documents are read by https only", r.URL.Redacted())
	}
	if err := f.pace(r); err != nil {
		return nil, err
	}
	resp, err := f.current().RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, fetchLimit), resp.Body}
	return resp, nil
}

// discoveryPath ends the URL of the document that tells where the keys are. No token
// makes anybody ask for it.
const discoveryPath = "/.well-known/openid-configuration"

// pace refuses to ask for the same again and again. Redirections belong to the
// question before.
func (f *fetcher) pace(r *http.Request) error {
	if r.Response != nil || strings.HasSuffix(r.URL.Path, discoveryPath) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := r.URL.String()
	if now := f.now(); now.Sub(f.asked[at]) >= fetchPause {
		f.asked[at] = now
		return nil
	}
	return fmt.Errorf("%s was asked less than %v ago", r.URL.Redacted(), fetchPause)
}

// current is a transport that trusts the present authorities.
func (f *fetcher) current() *http.Transport {
	roots := f.roots()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.transport == nil || f.trusted != roots {
		f.trusted = roots
		f.transport = &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, // questions are far between
		}
	}
	return f.transport
}
