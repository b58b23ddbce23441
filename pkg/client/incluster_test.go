package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// podIn is a pod whose service account is in a folder.
func podIn(t *testing.T, namespace string) pod {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"token": "pod-token", "namespace": namespace} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pod{
		config: func() (*rest.Config, error) {
			return &rest.Config{Host: "https://10.0.0.1:443", BearerToken: "pod-token", BearerTokenFile: filepath.Join(dir, "token")}, nil
		},
		namespace: filepath.Join(dir, "namespace"),
	}
}

func TestAPodGivesServerNamespaceAndToken(t *testing.T) {
	target, err := inClusterTarget(Credentials{}, podIn(t, "shop\n"))
	if err != nil {
		t.Fatal(err)
	}
	if target.endpoints[0].config.Host != "https://10.0.0.1:443" || target.Namespace() != "shop" || target.endpoints[0].config.BearerToken != "pod-token" {
		t.Errorf("got %+v", target)
	}
	if target, err = inClusterTarget(Credentials{Token: "mine"}, podIn(t, "")); err != nil {
		t.Fatal(err)
	}
	if target.endpoints[0].config.BearerToken != "mine" || target.endpoints[0].config.BearerTokenFile != "" || target.Namespace() != "" {
		t.Errorf("got %+v", target)
	}
}

func TestOutsideOfAPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := ResolveTarget(TargetOptions{InCluster: true})
	if !errors.Is(err, rest.ErrNotInCluster) || !strings.Contains(err.Error(), "--in-cluster") {
		t.Errorf("got %v", err)
	}
	broken := pod{config: func() (*rest.Config, error) { return nil, errors.New("no token") }}
	if _, err := inClusterTarget(Credentials{}, broken); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("got %v", err)
	}
}
