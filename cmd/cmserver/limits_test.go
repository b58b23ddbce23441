package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const quotaOf = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small, namespace: default}\nspec: {hard: {configmaps: "

// Settings of limits that can't be meant are refused by their names, and manifests
// that are not understood with where they are.
func TestSettingsOfLimits(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "q.yaml"), []byte(quotaOf+"1, pods: 1}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"too little memory":       {[]string{"--max-body-memory", "1Mi"}, []string{"--max-body-memory", "64Mi"}},
		"too little for answers":  {[]string{"--max-answer-memory", "1Mi"}, []string{"--max-answer-memory", "64Mi"}},
		"memory that is no size":  {[]string{"--max-body-memory", "lots"}, []string{"--max-body-memory"}},
		"namespaces of no bytes":  {[]string{"--namespace-max-bytes", "0"}, []string{"--namespace-max-bytes"}},
		"less than no objects":    {[]string{"--namespace-max-objects=-1"}, []string{"--namespace-max-objects"}},
		"less than no watches":    {[]string{"--max-watches-per-user=-1"}, []string{"--max-watches-per-user"}},
		"no connections":          {[]string{"--max-connections", "0"}, []string{"--max-connections"}},
		"a missing folder":        {[]string{"--quota-dir", broken + "/none"}, []string{"--quota-dir", "none"}},
		"a manifest with a fault": {[]string{"--quota-dir", broken}, []string{"--quota-dir", "q.yaml: document 1 (default/small)", "spec.hard[pods]"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"--in-memory", "--listen", "127.0.0.1:0"}, c.args...), streams{out: io.Discard, err: io.Discard})
			if exitCode(err) != 2 {
				t.Fatalf("it ended with %v", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// Quotas change with their files. Those that can't be understood leave the last ones
// in force, and readyz tells.
func TestQuotasAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	write := func(bound string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "q.yaml"), []byte(quotaOf+bound+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	p := launch(t, "--in-memory", "--quota-dir", dir)
	defer p.end()
	create := func(name string) int {
		t.Helper()
		code, _, err := p.send("POST", collection, `{"metadata":{"name":"`+name+`"}}`)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if first, second := create("a"), create("b"); first != 201 || second != 403 {
		t.Fatalf("got %d and %d", first, second)
	}
	write("many")
	eventually(t, "readyz tells of it", func() bool {
		resp, err := p.client.Get(p.url + "/readyz?verbose")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return strings.Contains(string(text), "[!]quotas") && strings.Contains(p.log.String(), "q.yaml") && resp.StatusCode == http.StatusOK
	})
	if code := create("b"); code != 403 {
		t.Errorf("with broken manifests: got %d", code)
	}
	write("2")
	eventually(t, "there is room", func() bool { return create("b") != 403 })
}

// Connections never take the files that the store needs.
func TestConnectionsByFiles(t *testing.T) {
	files, known := maxFiles()
	if !known {
		t.Skip("this system does not tell")
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if got := openable(1, logger); got != 1 || files > 2*keptFiles && log.Len() > 0 {
		t.Errorf("got %d: %s", got, log.String())
	}
	if files < 1<<40 {
		if got := openable(1<<41, logger); uint64(got) >= files || !strings.Contains(log.String(), "ulimit -n") {
			t.Errorf("of %d files got %d: %s", files, got, log.String())
		}
	}
}
