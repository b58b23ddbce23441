package client_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
)

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: prod
clusters:
- {name: prod, cluster: {server: "https://prod.example:6443"}}
- {name: lab, cluster: {server: "https://lab.example:6443/k8s/clusters/c-1"}}
users:
- {name: me, user: {token: kubeconfig-token}}
contexts:
- {name: prod, context: {cluster: prod, user: me, namespace: shop}}
- {name: lab, context: {cluster: lab, user: me}}
`

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTargetNamesTheServer(t *testing.T) {
	file := writeFile(t, kubeconfig)
	// A kubeconfig that nobody asked for must not matter, however broken.
	t.Setenv("KUBECONFIG", writeFile(t, "not: [a kubeconfig"))
	for name, c := range map[string]struct {
		options         client.TargetOptions
		text, namespace string
	}{
		"nothing given": {client.TargetOptions{}, "http://127.0.0.1:8080", ""},
		"a URL":         {client.TargetOptions{Server: "https://cm.example/base/"}, "https://cm.example/base", ""},
		"a socket":      {client.TargetOptions{Server: "unix:///run/cm.sock"}, "unix:///run/cm.sock", ""},
		"a token, and a socket": {client.TargetOptions{Server: "unix:///run/cm.sock", Credentials: client.Credentials{Token: "secret"}},
			"unix:///run/cm.sock", ""},
		"an address":          {client.TargetOptions{Server: "localhost:9000"}, "http://localhost:9000", ""},
		"the current context": {client.TargetOptions{Kubeconfig: file}, `https://prod.example:6443 (context "prod")`, "shop"},
		"a context": {client.TargetOptions{Kubeconfig: file, Context: "lab"},
			`https://lab.example:6443/k8s/clusters/c-1 (context "lab")`, ""},
		"a token": {client.TargetOptions{Server: "https://cm.example", Credentials: client.Credentials{Token: "secret"}}, "https://cm.example", ""},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := client.ResolveTarget(c.options)
			if err != nil {
				t.Fatal(err)
			}
			if target.String() != c.text || target.Namespace() != c.namespace {
				t.Errorf("got %s, namespace %q; want %s, namespace %q", target, target.Namespace(), c.text, c.namespace)
			}
		})
	}
}

func TestContextAloneIsLookedUpInTheUsualFiles(t *testing.T) {
	t.Setenv("KUBECONFIG", writeFile(t, kubeconfig))
	target, err := client.ResolveTarget(client.TargetOptions{Context: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(target.String(), "https://prod.example:6443") {
		t.Errorf("got %s", target)
	}
}

func TestTargetRefuses(t *testing.T) {
	file := writeFile(t, kubeconfig)
	for name, c := range map[string]struct {
		options client.TargetOptions
		says    string
	}{
		"a server besides a kubeconfig":       {client.TargetOptions{Server: "http://x", Kubeconfig: file}, "--server"},
		"a server besides a context":          {client.TargetOptions{Server: "http://x", Context: "prod"}, "--server"},
		"an unknown context":                  {client.TargetOptions{Kubeconfig: file, Context: "nope"}, `no context "nope"`},
		"a file that is missing":              {client.TargetOptions{Kubeconfig: file + "-missing"}, file + "-missing"},
		"a file without a context":            {client.TargetOptions{Kubeconfig: writeFile(t, "kind: Config")}, "--context"},
		"a file that is no kubeconfig":        {client.TargetOptions{Kubeconfig: writeFile(t, "a: [")}, "kubeconfig"},
		"a foreign scheme":                    {client.TargetOptions{Server: "ftp://x"}, "http or https"},
		"an address without a host":           {client.TargetOptions{Server: "http://"}, "http://"},
		"a socket by a relative path":         {client.TargetOptions{Server: "unix://cm.sock"}, "unix:///run/cmserver.sock"},
		"a query":                             {client.TargetOptions{Server: "http://x?a=b"}, "path"},
		"a CA besides no verification at all": {client.TargetOptions{Credentials: client.Credentials{CertificateAuthority: "f", InsecureSkipTLSVerify: true}}, "contradict"},
		"a token in the clear":                {client.TargetOptions{Server: "http://cm.example", Credentials: client.Credentials{Token: "secret"}}, "use https"},
		"a password in the address":           {client.TargetOptions{Server: "https://me:secret@cm.example"}, "--token"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := client.ResolveTarget(c.options)
			if err == nil {
				t.Fatalf("got %s, want an error", target)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%q gives the credentials away", err)
			}
		})
	}
}

func TestTokenGoesToTheServer(t *testing.T) {
	api := record(realAPI(t))
	server := listen(t, api)
	kube := strings.NewReplacer("https://prod.example:6443", server, "https://lab.example:6443/k8s/clusters/c-1", server).Replace(kubeconfig)
	for name, where := range map[string]client.TargetOptions{
		"of a plain address": {Server: server, Credentials: client.Credentials{Token: "secret"}},
		"of a kubeconfig":    {Kubeconfig: writeFile(t, kube), Credentials: client.Credentials{Token: "secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(api.sent(http.MethodGet))
			if _, err := connect(t, where, client.Options{}).ServerVersion(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := api.sent(http.MethodGet)[before].Header.Get("Authorization"); got != "Bearer secret" {
				t.Errorf("Authorization is %q", got)
			}
		})
	}
}

// tlsServer is a server with a certificate that nobody knows, and a file with
// that certificate.
func tlsServer(t *testing.T, h http.Handler) (address, certificate string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

func TestCertificates(t *testing.T) {
	server, certificate := tlsServer(t, realAPI(t))
	t.Run("a trusted one is accepted", func(t *testing.T) {
		c := connect(t, client.TargetOptions{Server: server, Credentials: client.Credentials{CertificateAuthority: certificate}}, client.Options{})
		if _, err := c.ServerVersion(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("any is, if asked for", func(t *testing.T) {
		c := connect(t, client.TargetOptions{Server: server, Credentials: client.Credentials{InsecureSkipTLSVerify: true}}, client.Options{})
		if _, err := c.ServerVersion(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("an unknown one stops a write before it is sent", func(t *testing.T) {
		m := connect(t, client.TargetOptions{Server: server}, client.Options{}).ConfigMaps(namespace)
		err := calls["create"](t.Context(), m)
		if !errors.As(err, new(*retry.UnsentError)) || !strings.Contains(err.Error(), "--certificate-authority") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file that is missing is named", func(t *testing.T) {
		target, err := client.ResolveTarget(client.TargetOptions{Server: server, Credentials: client.Credentials{CertificateAuthority: "no-such-file"}})
		if err == nil {
			_, err = client.New(target, client.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), "no-such-file") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheCredentialsOfAKubeconfigAreUsed(t *testing.T) {
	api := record(realAPI(t))
	server, certificate := tlsServer(t, api)
	kube := strings.Replace(kubeconfig, `{server: "https://prod.example:6443"}`,
		`{server: "`+server+`", certificate-authority: "`+certificate+`"}`, 1)
	c := connect(t, client.TargetOptions{Kubeconfig: writeFile(t, kube)}, client.Options{})
	if _, err := c.ServerVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := api.sent(http.MethodGet)[0].Header.Get("Authorization"); got != "Bearer kubeconfig-token" {
		t.Errorf("Authorization is %q", got)
	}
}

func TestTheDefaultClientIsLeftAlone(t *testing.T) {
	before, transport := *http.DefaultClient, http.DefaultTransport
	m := mapsOf(t, realAPI(t))
	mustCreate(t, m, flags("a", "1"))
	after := *http.DefaultClient
	if after.Transport != before.Transport || after.CheckRedirect != nil || after.Jar != nil || after.Timeout != 0 || http.DefaultTransport != transport {
		t.Error("http.DefaultClient was changed")
	}
}

// tlsCertificate is one that net/http/httptest has at hand.
func tlsCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.TLS.Certificates[0]
}

// What was made with some of the servers of a store is for the same store, whatever their
// order, and for no other.
func TestATargetIsTheOneItWas(t *testing.T) {
	const a, b = "http://a.example:1", "http://b.example:1"
	for _, c := range []struct {
		now  client.TargetOptions
		said string
		want bool
	}{
		{client.TargetOptions{Server: a}, a, true},
		{client.TargetOptions{Server: a}, b, false},
		{client.TargetOptions{Server: a}, a + "0", false},
		{client.TargetOptions{Server: b + "," + a}, a + "," + b, true},
		{client.TargetOptions{Server: a + "," + b}, b, true},
		{client.TargetOptions{Server: b}, a + "," + b, true},
		{client.TargetOptions{Server: a, Name: "x"}, a + ` (context "x")`, true},
		{client.TargetOptions{Server: a + "," + b, Name: "x"}, a + ` (context "x")`, true},
		{client.TargetOptions{Server: a, Name: "x"}, a, false},
		{client.TargetOptions{Server: a}, a + ` (context "x")`, false},
	} {
		target, err := client.ResolveTarget(c.now)
		if err != nil || target.Is(c.said) != c.want {
			t.Errorf("%s is %s: %v, want %v (%v)", target, c.said, !c.want, c.want, err)
		}
	}
}

func TestSeveralServers(t *testing.T) {
	for name, c := range map[string]struct {
		options client.TargetOptions
		want    string // the target's name
		refused string // a part of the error
	}{
		"two":                           {client.TargetOptions{Server: "a.example:1, https://b.example/x/"}, "http://a.example:1,https://b.example/x", ""},
		"a socket and an address":       {client.TargetOptions{Server: "unix:///run/cm.sock,http://127.0.0.1:8080"}, "unix:///run/cm.sock,http://127.0.0.1:8080", ""},
		"of a context":                  {client.TargetOptions{Server: "a.example,b.example", Name: "x"}, `http://a.example,http://b.example (context "x")`, ""},
		"a comma at the end":            {client.TargetOptions{Server: "a.example,"}, "", "one is empty"},
		"two commas":                    {client.TargetOptions{Server: "a.example,,b.example"}, "", "one is empty"},
		"one twice":                     {client.TargetOptions{Server: "a.example,http://a.example/"}, "", `"http://a.example" is given twice`},
		"one that can't be":             {client.TargetOptions{Server: "a.example,ftp://b.example"}, "", `"ftp://b.example"`},
		"a password in one":             {client.TargetOptions{Server: "a.example,http://me:secret@b.example"}, "", "must not hold credentials"},
		"a token, and one in the open":  {client.TargetOptions{Server: "https://a.example,http://b.example", Credentials: client.Credentials{Token: "t"}}, "", "credentials are not sent to http://b.example"},
		"a token, and all of them safe": {client.TargetOptions{Server: "https://a.example,http://127.0.0.1:1,unix:///s", Credentials: client.Credentials{Token: "t"}}, "https://a.example,http://127.0.0.1:1,unix:///s", ""},
	} {
		target, err := client.ResolveTarget(c.options)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: got %v", name, err)
			}
		case err != nil || target.String() != c.want:
			t.Errorf("%s: got %s, %v", name, target, err)
		}
	}
}
