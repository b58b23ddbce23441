package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// readers lets everybody read ConfigMaps, and nothing else.
const readers = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {kind: ClusterRole, name: view}
subjects: [{kind: Group, name: "system:unauthenticated"}]
`

// rulesFolder is a folder with one manifest, and its file.
func rulesFolder(t *testing.T, manifest string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "rules.yaml")
	rewrite(t, file, manifest)
	return dir, file
}

func rewrite(t *testing.T, file, manifest string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
}

// code is that of the answer to a GET.
func (p *program) get(path string) (code int, body string) {
	p.t.Helper()
	resp, err := p.client.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// until waits for something that is bound to come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s: it does not come to that", what)
}

func TestRulesAreObeyedAndFollowed(t *testing.T) {
	const collection = "/api/v1/namespaces/default/configmaps"
	dir, file := rulesFolder(t, readers)
	p := launch(t, "--in-memory", "--rbac-dir", dir)
	defer p.end()
	if code, _ := p.get(collection); code != http.StatusOK {
		t.Errorf("a read is answered %d", code)
	}
	if code, _, _ := p.send("POST", collection, `{"metadata":{"name":"a"}}`); code != http.StatusForbidden {
		t.Errorf("a write is answered %d", code)
	}

	rewrite(t, file, "a: [")
	until(t, "a broken file is told", func() bool {
		_, body := p.get("/readyz?verbose")
		return strings.Contains(body, "[!]rbac: reason withheld")
	})
	if code, _ := p.get(collection); code != http.StatusOK {
		t.Errorf("under a broken file a read is answered %d", code)
	}
	if !strings.Contains(p.log.String(), "rules.yaml: document 1: it is no YAML") {
		t.Errorf("the log does not say what is wrong:\n%s", p.log)
	}

	rewrite(t, file, strings.Replace(readers, "unauthenticated", "authenticated", 1))
	until(t, "the right is withdrawn", func() bool {
		code, _ := p.get(collection)
		return code == http.StatusForbidden
	})
	if _, body := p.get("/readyz?verbose"); strings.Contains(body, "rbac") {
		t.Errorf("a mended file is still told:\n%s", body)
	}
}

func TestRulesThatCannotBeUsedStopTheStart(t *testing.T) {
	broken, _ := rulesFolder(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\n")
	for name, test := range map[string]struct {
		dir, message string
	}{
		"a broken manifest": {broken, "rules.yaml: document 1 (Role r): metadata.namespace: Required value"},
		"no such folder":    {filepath.Join(broken, "none"), "no such file or directory"},
		"a file":            {filepath.Join(broken, "rules.yaml"), "not a directory"},
		"nothing":           {"", "--rbac-dir is given and empty"},
	} {
		err := run(t.Context(), []string{"--in-memory", "--listen", "127.0.0.1:0", "--rbac-dir=" + test.dir}, streams{io.Discard, io.Discard})
		if exitCode(err) != 2 || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), "--rbac-dir") {
			t.Errorf("%s: exit %d: %v", name, exitCode(err), err)
		}
	}
}
