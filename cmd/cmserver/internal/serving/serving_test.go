package serving_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/cmctl/cmd/cmserver/internal/pki"
	"example.com/cmctl/cmd/cmserver/internal/serving"
	"example.com/cmctl/pkg/server/authn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files are a server's certificate and key, and the authority that signed them.
type files struct {
	t         *testing.T
	authority *pki.Authority
	cert, key string
}

func makeFiles(t *testing.T) *files {
	t.Helper()
	ca, _, err := pki.NewAuthority("test", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := &files{t, ca, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	f.issue("127.0.0.1", time.Hour, time.Now())
	return f
}

// issue puts a new certificate and key in place.
func (f *files) issue(name string, life time.Duration, now time.Time) {
	f.t.Helper()
	key, err := pki.NewKey()
	if err != nil {
		f.t.Fatal(err)
	}
	cert, err := f.authority.Server(key.Public(), []string{name}, life, now)
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := pki.KeyPEM(key)
	if err = errors.Join(err, os.WriteFile(f.key, text, 0o600), os.WriteFile(f.cert, pki.CertificatePEM(cert), 0o600)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) load(log *slog.Logger) (*serving.Certificate, error) {
	return serving.LoadCertificate(f.cert, f.key, log)
}

// client trusts the authority.
func (f *files) client(change func(*tls.Config)) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(f.authority.Certificate)
	config := &tls.Config{RootCAs: pool}
	if change != nil {
		change(config)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	f.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// logs collects a log and gives the addresses that it says are listened on.
type logs struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
	urls chan string
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, rest, ok := strings.Cut(string(b), "msg=listening url="); ok {
		url, _, _ := strings.Cut(rest, " ")
		l.urls <- url
	}
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve runs a server until the test ends, and gives its URLs.
func serve(t *testing.T, h http.HandlerFunc, secure *serving.TLS, addresses ...string) ([]string, *logs) {
	t.Helper()
	var all []serving.Address
	for _, text := range addresses {
		a, err := serving.ParseAddress(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	listeners, err := serving.Listen(t.Context(), all, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	log := &logs{urls: make(chan string, len(all))}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s := serving.Server{Handler: h, TLS: secure, Log: slog.New(slog.NewTextHandler(log, nil)), DrainTime: 10 * time.Second}
	go func() { ended <- s.Run(ctx, listeners) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var urls []string
	for range all {
		urls = append(urls, <-log.urls)
	}
	return urls, log
}

// told answers with what the test asks about a request.
func told(w http.ResponseWriter, r *http.Request) {
	peer, _ := authn.PeerOf(r.Context())
	names := []string{}
	if r.TLS != nil {
		for _, c := range r.TLS.PeerCertificates {
			names = append(names, c.Subject.CommonName)
		}
	}
	fmt.Fprintf(w, "%s %d %v", r.Proto, peer.UID, names)
}

func ask(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestWhatIsSpoken(t *testing.T) {
	f := makeFiles(t)
	certificate, err := f.load(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	only := func(version uint16) func(*tls.Config) {
		return func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }
	}
	weak := func(c *tls.Config) {
		c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
	}
	for _, c := range []struct {
		name   string
		least  uint16
		client func(*tls.Config)
		want   string // empty: no connection
	}{
		{"as good as can be", 0, nil, "HTTP/2.0"},
		{"TLS 1.2", 0, only(tls.VersionTLS12), "HTTP/2.0"},
		{"TLS 1.1", 0, only(tls.VersionTLS11), ""},
		{"TLS 1.2 where 1.3 is needed", tls.VersionTLS13, only(tls.VersionTLS12), ""},
		{"TLS 1.3 where it is needed", tls.VersionTLS13, nil, "HTTP/2.0"},
		{"a cipher without authentication of its own", 0, weak, ""},
		{"an authority that is not trusted", 0, func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			urls, _ := serve(t, told, &serving.TLS{Certificate: certificate, MinVersion: c.least}, "127.0.0.1:0")
			client := f.client(c.client)
			got, err := ask(t, client, urls[0])
			client.CloseIdleConnections()
			if proto, _, _ := strings.Cut(got, " "); proto != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestHTTPToATLSPortIsTold(t *testing.T) {
	f := makeFiles(t)
	certificate, err := f.load(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	urls, log := serve(t, told, &serving.TLS{Certificate: certificate}, "127.0.0.1:0")
	address, ok := strings.CutPrefix(urls[0], "https://")
	if !ok || !strings.Contains(log.String(), "--server https://"+address+" --certificate-authority") {
		t.Errorf("the log says %s", log)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.0 400 ") || !strings.Contains(string(answer), "HTTPS server") {
		t.Errorf("got %q, %v", answer, err)
	}
}

// A new certificate is for new connections; those that are open stay.
func TestACertificateIsReloaded(t *testing.T) {
	f := makeFiles(t)
	var log logs
	certificate, err := f.load(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { certificate.Run(ctx); close(ended) }()
	defer func() { stop(); <-ended }()
	first := certificate.Leaf().SerialNumber
	urls, _ := serve(t, told, &serving.TLS{Certificate: certificate}, "127.0.0.1:0")
	used := make(chan bool, 2)
	kept := f.client(nil)
	kept.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		used <- true
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	if _, err := ask(t, kept, urls[0]); err != nil {
		t.Fatal(err)
	}
	f.issue("127.0.0.1", time.Hour, time.Now())
	for certificate.Leaf().SerialNumber.Cmp(first) == 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("it is not reloaded")
		case <-time.After(10 * time.Millisecond):
		}
	}
	if _, err := ask(t, kept, urls[0]); err != nil || len(used) != 1 {
		t.Errorf("the open connection: %v, %d connections", err, len(used))
	}
	resp, err := f.client(nil).Get(urls[0])
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.TLS.PeerCertificates[0].SerialNumber; got.Cmp(first) == 0 {
		t.Error("a new connection gets the old certificate")
	}
	if err := certificate.Look(); err != nil {
		t.Error(err)
	}
}

func TestCertificatesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(f *files)
		says  string
	}{
		"another's key": {func(f *files) {
			cert, _ := os.ReadFile(f.cert)
			f.issue("x", time.Hour, time.Now())
			os.WriteFile(f.cert, cert, 0o600)
		},
			"private key does not match"},
		"expired":      {func(f *files) { f.issue("x", time.Minute, time.Now().Add(-time.Hour)) }, "expired on"},
		"not good yet": {func(f *files) { f.issue("x", time.Hour, time.Now().Add(10*time.Minute)) }, "clock"},
		"a client's": {func(f *files) {
			key, _ := pki.NewKey()
			cert, _ := f.authority.Client(key.Public(), "me", nil, time.Hour, time.Now())
			text, _ := pki.KeyPEM(key)
			os.WriteFile(f.cert, pki.CertificatePEM(cert), 0o600)
			os.WriteFile(f.key, text, 0o600)
		}, "names no host"},
		"no certificate": {func(f *files) { os.WriteFile(f.cert, nil, 0o600) }, "--tls-cert-file"},
		"a missing key":  {func(f *files) { os.Remove(f.key) }, "--tls-private-key-file"},
	} {
		f := makeFiles(t)
		c.spoil(f)
		_, err := f.load(slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		advice := "'cmserver init --renew --dir " + filepath.Dir(f.cert) + "'"
		if err != nil && strings.Contains(err.Error(), advice) != (name == "expired") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsSaidOfACertificate(t *testing.T) {
	f := makeFiles(t)
	if err := os.Chmod(f.key, 0o644); err != nil {
		t.Fatal(err)
	}
	var log logs
	if _, err := f.load(slog.New(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), "chmod 600") {
		t.Errorf("%v, of an open key the log says %q", err, &log)
	}
	f.issue("x", time.Hour, time.Now().Add(-55*time.Minute))
	certificate, err := f.load(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.Look(); err == nil || !strings.Contains(err.Error(), "expires at") {
		t.Errorf("of one that ends soon: %v", err)
	}
}

// Clients are asked for a certificate; what it is worth is for others to say.
func TestClientCertificatesArePassedOn(t *testing.T) {
	f := makeFiles(t)
	certificate, err := f.load(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	key, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := f.authority.Client(key.Public(), "alice", []string{"team"}, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	pool := x509.NewCertPool()
	pool.AddCert(f.authority.Certificate)
	urls, _ := serve(t, told, &serving.TLS{Certificate: certificate, ClientCAs: func() *x509.CertPool { asked++; return pool }}, "127.0.0.1:0")
	with := func(c *tls.Config) {
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
	}
	for _, c := range []struct {
		change func(*tls.Config)
		want   string
	}{{with, "HTTP/2.0 0 [alice]"}, {nil, "HTTP/2.0 0 []"}} {
		if got, err := ask(t, f.client(c.change), urls[0]); err != nil || got != c.want {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if asked != 2 {
		t.Errorf("the authorities were looked at %d times", asked)
	}
}

// One connection bears so many streams at once, and clients open another for more.
func TestManyStreams(t *testing.T) {
	f := makeFiles(t)
	certificate, err := f.load(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const streams = 600
	open, let := make(chan string, streams), make(chan struct{})
	urls, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		open <- r.RemoteAddr
		<-let
	}, &serving.TLS{Certificate: certificate}, "127.0.0.1:0")
	client := f.client(nil)
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			if _, err := ask(t, client, urls[0]); err != nil {
				t.Error(err)
			}
		})
	}
	per := map[string]int{}
	for range streams {
		per[<-open]++
	}
	close(let)
	wg.Wait()
	if len(per) < 3 || slices.Max(slices.Collect(maps.Values(per))) > 250 {
		t.Errorf("streams by connection: %v", per)
	}
}

func TestHeadersHaveALimit(t *testing.T) {
	f := makeFiles(t)
	certificate, err := f.load(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	urls, _ := serve(t, told, &serving.TLS{Certificate: certificate}, "127.0.0.1:0")
	req, err := http.NewRequest("GET", urls[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("x", 128<<10))
	resp, err := f.client(nil).Do(req)
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %s", resp.Status)
		}
	}
}

func unixClient(t *testing.T, path string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Nothing is answered but by the handler, which asks who sends a request.
func TestOptionsOfTheServerAreTheHandlersToAnswer(t *testing.T) {
	urls, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.RequestURI, http.StatusForbidden) }, nil, "127.0.0.1:0")
	conn, err := net.Dial("tcp", strings.TrimPrefix(urls[0], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 403 ") {
		t.Errorf("it answers %q, %v", answer, err)
	}
}

func TestASocketTellsWhoConnects(t *testing.T) {
	f := makeFiles(t)
	certificate, err := f.load(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cm.sock")
	urls, _ := serve(t, told, &serving.TLS{Certificate: certificate}, "127.0.0.1:0", "unix://"+path)
	if !slices.Contains(urls, "unix://"+path) {
		t.Errorf("it listens on %q", urls)
	}
	got, err := ask(t, unixClient(t, path), "http://localhost/")
	if want := fmt.Sprintf("HTTP/1.1 %d []", os.Getuid()); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
}

// What stands in a socket's place is removed only if it is a socket that nobody
// listens on.
func TestASocketTakesAStalePlaceOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cm.sock")
	address, err := serving.ParseAddress(t.Context(), "unix://"+path)
	if err != nil {
		t.Fatal(err)
	}
	listen := func() ([]serving.Listener, error) {
		return serving.Listen(t.Context(), []serving.Address{address}, 0o660)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	one, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if _, err := listen(); err == nil || !strings.Contains(err.Error(), "another program listens there") {
		t.Errorf("where another one listens: %v", err)
	}
	if err := one[0].Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left behind: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(); err == nil || !strings.Contains(err.Error(), "not removed") {
		t.Errorf("where a file is: %v", err)
	}
}
