package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"example.com/cmctl/cmd/cmserver/internal/pki"
	"example.com/cmctl/cmd/internal/settings"
)

// initialize runs init, with folders of the test's own, and gives what it prints.
func initialize(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"init"}, args...), streams{out: &out, err: io.Discard})
	return out.String(), err
}

// ownFolders keeps a test from those of whoever runs it.
func ownFolders(t *testing.T) (config string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("CMCTL_CONFIG", "")
	return filepath.Join(home, ".config")
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func certificate(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	cert, err := pki.ParseCertificate(read(t, dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func readKubeconfig(t *testing.T, dir string) (url string, who clientcmd.AuthInfo) {
	t.Helper()
	var c clientcmd.Config
	if err := yaml.UnmarshalStrict(read(t, dir, kubeconfigFile), &c); err != nil {
		t.Fatal(err)
	}
	return c.Clusters[0].Cluster.Server, c.AuthInfos[0].AuthInfo
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
		names = append(names, e.Name())
	}
	return names
}

func TestInitMakesEverything(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		files []string
		url   string
		hosts []string
	}{
		"a certificate": {nil,
			[]string{"admin.crt", "admin.key", "admin.kubeconfig", "ca.crt", "ca.key", "config.yaml", "server.crt", "server.key"},
			"https://127.0.0.1:8443", []string{"localhost", "127.0.0.1", "::1"}},
		"a token": {[]string{"--token"},
			[]string{"admin.kubeconfig", "ca.crt", "ca.key", "config.yaml", "server.crt", "server.key", "tokens.csv"},
			"https://127.0.0.1:8443", []string{"localhost"}},
		"names for others": {[]string{"--listen", "0.0.0.0:9000", "--name", "CM.example.com,*.lab.example", "--name=192.0.2.7"},
			[]string{"admin.crt", "admin.key", "admin.kubeconfig", "ca.crt", "ca.key", "config.yaml", "server.crt", "server.key"},
			"https://cm.example.com:9000", []string{"cm.example.com", "x.lab.example", "192.0.2.7"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(ownFolders(t), "cmserver")
			said, err := initialize(t, c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder is %v, %v", info, err)
			}
			if got := names(t, dir); !slices.Equal(got, c.files) {
				t.Errorf("made %q", got)
			}
			roots := x509.NewCertPool()
			roots.AddCert(certificate(t, dir, caCertFile))
			server := certificate(t, dir, serverCertFile)
			for _, host := range c.hosts {
				if _, err := server.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
					t.Errorf("the server's certificate for %s: %v", host, err)
				}
			}
			url, who := readKubeconfig(t, dir)
			if url != c.url {
				t.Errorf("the kubeconfig leads to %s", url)
			}
			if slices.Contains(c.files, tokensFile) {
				digest := sha256.Sum256([]byte(who.Token))
				if want := "sha256:" + hex.EncodeToString(digest[:]) + `,admin,admin,"system:masters"` + "\n"; string(read(t, dir, tokensFile)) != want {
					t.Errorf("the file of tokens is %s", read(t, dir, tokensFile))
				}
			} else if pair, err := tls.X509KeyPair(who.ClientCertificateData, who.ClientKeyData); err != nil ||
				pair.Leaf.Subject.String() != "CN=admin,O=system:masters" {
				t.Errorf("the administrator is %v, %v", pair.Leaf, err)
			}
			for _, name := range c.files {
				if strings.HasSuffix(name, ".key") && strings.Contains(said, string(read(t, dir, name))) {
					t.Errorf("it prints %s", name)
				}
			}
			if strings.Contains(said, "PRIVATE") || who.Token != "" && strings.Contains(said, who.Token) {
				t.Errorf("it prints a secret:\n%s", said)
			}
			if !strings.Contains(said, "kubectl --kubeconfig "+filepath.Join(dir, kubeconfigFile)) || !strings.Contains(said, "  cmserver\n") {
				t.Errorf("it says\n%s", said)
			}
		})
	}
}

// Where one of the files is, none is made, and no context.
func TestInitOverwritesNothing(t *testing.T) {
	config := ownFolders(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, serverKeyFile), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := initialize(t, "--dir", dir, "--context", "lab"); exitCode(err) != 2 || !strings.Contains(err.Error(), serverKeyFile) {
		t.Errorf("got %v", err)
	}
	if got := names(t, dir); len(got) != 1 || string(read(t, dir, serverKeyFile)) != "mine" {
		t.Errorf("there is %q", got)
	}
	if _, err := os.Stat(config); !os.IsNotExist(err) {
		t.Errorf("something was written to %s: %v", config, err)
	}
	if err := os.Remove(filepath.Join(dir, serverKeyFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := initialize(t, "--dir", dir); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("into a folder of others: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := initialize(t, "--dir", dir); err != nil || len(names(t, dir)) != 8 {
		t.Errorf("into a folder that is there: %v", err)
	}
}

func TestInitMakesAContext(t *testing.T) {
	config := ownFolders(t)
	path := filepath.Join(config, "cmctl", "config.yaml")
	if err := settings.Edit(path, func(d *settings.Document) error {
		return d.SetContext(settings.Context{Name: "prod", Server: "https://prod.example"})
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := initialize(t, "--context", "prod"); err == nil || !strings.Contains(err.Error(), `"prod"`) {
		t.Errorf("of a name that is taken: %v", err)
	}
	said, err := initialize(t, "--context", "lab")
	if err != nil || !strings.Contains(said, "cmctl --context lab get") {
		t.Fatalf("%v, says\n%s", err, said)
	}
	file, err := settings.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	lab, ok := file.Context("lab")
	if want := filepath.Join(config, "cmserver", kubeconfigFile); !ok || lab.Kubeconfig != want || len(file.Contexts) != 2 || file.Current != "" {
		t.Errorf("the settings are %+v", file)
	}
}

// New certificates are of the same authority and for the same keys, names and users.
func TestInitRenews(t *testing.T) {
	dir := filepath.Join(ownFolders(t), "cmserver")
	if _, err := initialize(t, "--name", "a.example,192.0.2.1", "--server-lifetime", "1h", "--client-lifetime", "1h"); err != nil {
		t.Fatal(err)
	}
	keys := []string{caKeyFile, caCertFile, serverKeyFile, adminKeyFile, configFile}
	before := map[string][]byte{}
	for _, name := range keys {
		before[name] = read(t, dir, name)
	}
	old := certificate(t, dir, serverCertFile)
	said, err := initialize(t, "--renew")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range keys {
		if !bytes.Equal(before[name], read(t, dir, name)) {
			t.Errorf("%s has changed", name)
		}
	}
	server, admin := certificate(t, dir, serverCertFile), certificate(t, dir, adminCertFile)
	if got, want := hosts(server), hosts(old); !slices.Equal(got, want) || len(want) != 3 {
		t.Errorf("it is for %q, was for %q", got, want)
	}
	for _, cert := range []*x509.Certificate{server, admin} {
		if time.Until(cert.NotAfter) < 300*24*time.Hour || cert.CheckSignatureFrom(certificate(t, dir, caCertFile)) != nil {
			t.Errorf("%s is not renewed", cert.Subject)
		}
	}
	url, who := readKubeconfig(t, dir)
	if pair, err := tls.X509KeyPair(who.ClientCertificateData, who.ClientKeyData); err != nil || !pair.Leaf.Equal(admin) || url != "https://127.0.0.1:8443" {
		t.Errorf("the kubeconfig has %v, %v", pair.Leaf, err)
	}
	if len(names(t, dir)) != 8 || !strings.Contains(said, "server.crt is good until") {
		t.Errorf("says %s", said)
	}

	if _, err := initialize(t, "--renew", "--name", "b.example"); err != nil {
		t.Fatal(err)
	}
	if got := hosts(certificate(t, dir, serverCertFile)); !slices.Equal(got, []string{"b.example"}) {
		t.Errorf("it is for %q", got)
	}
	if err := os.Remove(filepath.Join(dir, caKeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := initialize(t, "--renew"); err == nil || !strings.Contains(err.Error(), caKeyFile) {
		t.Errorf("without the authority's key: %v", err)
	}
}

func TestInitRefuses(t *testing.T) {
	ownFolders(t)
	for _, args := range [][]string{
		{"--name", "no host"}, {"--name", ""}, {"--name", "0.0.0.0"}, {"--listen", "localhost"}, {"--listen", "127.0.0.1:0"}, {"--listen", "unix:///x"},
		{"--server-lifetime", "0s"}, {"--renew", "--token"}, {"--renew", "--context", "x"}, {"--renew", "--listen", "127.0.0.1:1"}, {"extra"},
	} {
		if _, err := initialize(t, args...); exitCode(err) != 2 {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := initialize(t, "--renew"); exitCode(err) != 2 || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("--renew without anything: %v", err)
	}
}

// What init makes works: over TLS with the authority checked, and with HTTP/2.
func TestAServerWithWhatInitMakes(t *testing.T) {
	dir := filepath.Join(ownFolders(t), "secure")
	if _, err := initialize(t, "--dir", dir); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--in-memory", "--tls-cert-file", filepath.Join(dir, serverCertFile), "--tls-private-key-file", filepath.Join(dir, serverKeyFile))
	defer p.end()
	spoilt := []string{"--in-memory", "--tls-cert-file", filepath.Join(dir, serverCertFile), "--tls-private-key-file", filepath.Join(dir, adminKeyFile)}
	if err := run(t.Context(), spoilt, streams{out: io.Discard, err: io.Discard}); exitCode(err) != 2 || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("with another's key: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, dir, caCertFile))
	p.client = &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	resp, err := p.client.Get(p.url + "/version")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if !strings.HasPrefix(p.url, "https://127.0.0.1:") || resp.ProtoMajor != 2 || resp.TLS.Version != tls.VersionTLS13 {
		t.Errorf("%s speaks %s", p.url, resp.Proto)
	}
}
