package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/client"
)

// kubeconfigWith is a kubeconfig for one server that is not checked, with a user.
func kubeconfigWith(t *testing.T, server, user string) string {
	t.Helper()
	return writeFile(t, fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: %s}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, server, user))
}

func TestEveryKindOfCredentialsOfAKubeconfig(t *testing.T) {
	api := record(realAPI(t))
	server, _ := tlsServer(t, api)
	plugin := filepath.Join(t.TempDir(), "plugin")
	script := `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"plugin-'"$WHO"'"}}'
`
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ user, want string }{
		"token":      {`{token: t}`, "Bearer t"},
		"token file": {fmt.Sprintf(`{tokenFile: %q}`, writeFile(t, "from-file")), "Bearer from-file"},
		"password":   {`{username: me, password: secret}`, "Basic " + base64.StdEncoding.EncodeToString([]byte("me:secret"))},
		"plugin": {fmt.Sprintf(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never, env: [{name: WHO, value: me}]}}`, plugin),
			"Bearer plugin-me"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, client.TargetOptions{Kubeconfig: kubeconfigWith(t, server, c.user)}, client.Options{})
			before := len(api.sent(http.MethodGet))
			if _, err := conn.ServerVersion(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := api.sent(http.MethodGet)[before].Header.Get("Authorization"); got != c.want {
				t.Errorf("Authorization is %q, want %q", got, c.want)
			}
		})
	}
}

// A token takes the place of whatever else would say who the caller is.
func TestATokenReplacesTheCredentialsOfAKubeconfig(t *testing.T) {
	api := record(realAPI(t))
	server, _ := tlsServer(t, api)
	for name, user := range map[string]string{
		"password": `{username: me, password: secret}`,
		"plugin":   `{exec: {apiVersion: client.authentication.k8s.io/v1, command: /no/such/plugin, interactiveMode: Never}}`,
		"file":     `{tokenFile: /no/such/file}`,
	} {
		t.Run(name, func(t *testing.T) {
			o := client.TargetOptions{Kubeconfig: kubeconfigWith(t, server, user), Credentials: client.Credentials{Token: "mine"}}
			before := len(api.sent(http.MethodGet))
			if _, err := connect(t, o, client.Options{}).ServerVersion(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := api.sent(http.MethodGet)[before].Header.Get("Authorization"); got != "Bearer mine" {
				t.Errorf("Authorization is %q", got)
			}
		})
	}
}

// A client certificate, by a kubeconfig and by options.
func TestClientCertificates(t *testing.T) {
	var shown int
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = len(r.TLS.PeerCertificates)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"gitVersion":"v1"}`)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	pair := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile := writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	keyFile := writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	for name, o := range map[string]client.TargetOptions{
		"of a kubeconfig": {Kubeconfig: kubeconfigWith(t, s.URL, fmt.Sprintf("{client-certificate: %q, client-key: %q}", certFile, keyFile))},
		"by options": {Server: s.URL, Credentials: client.Credentials{
			ClientCertificate: certFile, ClientKey: keyFile, InsecureSkipTLSVerify: true}},
		"by the server's other name": {Server: s.URL, Credentials: client.Credentials{
			ClientCertificate: certFile, ClientKey: keyFile, CertificateAuthority: certFile, TLSServerName: "example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			shown = 0
			if _, err := connect(t, o, client.Options{}).ServerVersion(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown != 1 {
				t.Errorf("%d certificates were shown", shown)
			}
		})
	}
	wrongName := client.TargetOptions{Server: s.URL, Credentials: client.Credentials{CertificateAuthority: certFile, TLSServerName: "other.example"}}
	if _, err := connect(t, wrongName, client.Options{}).ServerVersion(t.Context()); err == nil || !strings.Contains(err.Error(), "other.example") {
		t.Errorf("a certificate for another name: %v", err)
	}
}

func TestActingAsAnother(t *testing.T) {
	api := record(realAPI(t))
	server := listen(t, api)
	o := client.TargetOptions{Server: server, Credentials: client.Credentials{As: "ann", AsGroups: []string{"a", "b"}, AsUID: "7"}}
	if _, err := connect(t, o, client.Options{}).ServerVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := api.sent(http.MethodGet)[0].Header
	if h.Get("Impersonate-User") != "ann" || strings.Join(h["Impersonate-Group"], " ") != "a b" || h.Get("Impersonate-Uid") != "7" {
		t.Errorf("sent %v", h)
	}
}

func TestCredentialsThatContradict(t *testing.T) {
	for name, c := range map[string]client.TargetOptions{
		"--token-file":    {Credentials: client.Credentials{Token: "a", TokenFile: "b"}},
		"--client-key":    {Credentials: client.Credentials{ClientCertificate: "a"}},
		"--as-group":      {Credentials: client.Credentials{AsGroups: []string{"a"}}},
		"--in-cluster":    {InCluster: true, Server: "http://x"},
		"--kubeconfig":    {AsKubectl: true, Server: "http://x"},
		"use https":       {Server: "http://cm.example", Credentials: client.Credentials{TokenFile: "a"}},
		"contradict each": {Credentials: client.Credentials{CertificateAuthority: "a", InsecureSkipTLSVerify: true}},
	} {
		if _, err := client.ResolveTarget(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAsKubectl(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", writeFile(t, kubeconfig))
	target, err := client.ResolveTarget(client.TargetOptions{AsKubectl: true})
	if err != nil || target.Context() != "prod" || target.Address() != "https://prod.example:6443" || target.Namespace() != "shop" {
		t.Errorf("got %v, %v", target, err)
	}
	t.Setenv("KUBECONFIG", "/no/such/file")
	if target, err := client.ResolveTarget(client.TargetOptions{AsKubectl: true}); err == nil || !strings.Contains(err.Error(), "/no/such/file") {
		t.Errorf("without a kubeconfig: %v, %v", target, err)
	}
	t.Setenv("KUBECONFIG", writeFile(t, strings.Replace(kubeconfig, "current-context: prod\n", "", 1)))
	if target, err := client.ResolveTarget(client.TargetOptions{AsKubectl: true}); err == nil || !strings.Contains(err.Error(), "lab, prod") {
		t.Errorf("without a current context: %v, %v", target, err)
	}
}

func TestKubeContexts(t *testing.T) {
	file := writeFile(t, kubeconfig+"- {name: bare, context: {cluster: none}}\n")
	got, err := client.KubeContexts(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []client.KubeContext{
		{Name: "bare", File: file},
		{Name: "lab", Server: "https://lab.example:6443/k8s/clusters/c-1", File: file},
		{Name: "prod", Server: "https://prod.example:6443", Namespace: "shop", File: file, Current: true},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if _, err := client.KubeContexts(file + "-missing"); err == nil {
		t.Error("a file that is named may be missing")
	}
	t.Setenv("KUBECONFIG", "/no/such/file")
	if got, err := client.KubeContexts(""); err != nil || len(got) > 0 {
		t.Errorf("without the usual files: %v, %v", got, err)
	}
}

// What messages call a target is what its owner calls it.
func TestTheNameOfATarget(t *testing.T) {
	target, err := client.ResolveTarget(client.TargetOptions{Kubeconfig: writeFile(t, kubeconfig), Context: "lab", Name: "mine"})
	if err != nil || target.String() != `https://lab.example:6443/k8s/clusters/c-1 (context "mine")` || target.Context() != "mine" {
		t.Errorf("got %v, %v", target, err)
	}
}
