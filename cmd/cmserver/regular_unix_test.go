//go:build unix

package main

import (
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Files that are read again must be regular: a pipe in their place is refused by its
// name, and never waited for.
func TestPipesAreNoSettings(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := t.TempDir()
	fifo := filepath.Join(dir, "rules.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	log, other := filepath.Join(t.TempDir(), "audit.log"), writeFile(t, "other", "")
	for _, args := range [][]string{
		{"--token-auth-file", fifo},
		{"--client-ca-file", fifo, "--tls-cert-file", other, "--tls-private-key-file", other},
		{"--tls-cert-file", fifo, "--tls-private-key-file", other},
		{"--tls-private-key-file", fifo, "--tls-cert-file", other},
		{"--oidc-ca-file", fifo, "--oidc-issuer-url", "https://issuer.example", "--oidc-client-id", "x"},
		{"--rbac-dir", dir},
		{"--quota-dir", dir},
		{"--audit-policy-file", fifo, "--audit-log-path", log},
		{"--audit-log-path", fifo},
	} {
		err := run(t.Context(), append([]string{"--in-memory", "--listen=127.0.0.1:0"}, args...), streams{io.Discard, io.Discard})
		if exitCode(err) != 2 || !strings.Contains(err.Error(), args[0]) || !strings.Contains(err.Error(), fifo+" is no regular file") {
			t.Errorf("%s: exit %d: %v", args[0], exitCode(err), err)
		}
	}
}
