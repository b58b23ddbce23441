package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The tests in js/ run under Node with the published client, which npm installs
// as its lock file says.
func TestJavaScriptClient(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the JavaScript client is not tested: %v", err)
		}
	}
	s := startServer(t)
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("js")))
	// This client takes an http:// address only with this setting.
	config, err := writeKubeconfig(t.TempDir(), &clientcmdapi.Cluster{Server: s.url, InsecureSkipTLSVerify: true})
	must(t, err)
	run := func(name string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+config)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts")
	run("node", "--test", "--test-reporter=spec", filepath.Join(dir, "client.test.mjs"))
}
