//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Who rotates the log moves it away, and says so by a signal.
func TestTheAuditLogIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	p := launch(t, "--in-memory", "--audit-log-path", path, "--audit-log-maxsize=0")
	defer p.end()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "it is opened again", func() bool { _, err := os.Stat(path); return err == nil })
	if code, _, err := p.send("POST", collection, `{"metadata":{"name":"a"}}`); code != http.StatusCreated || err != nil {
		t.Fatalf("answered %d, %v", code, err)
	}
	if text := textOf(t, path); !strings.Contains(text, `"name":"a"`) {
		t.Errorf("told %s", text)
	}
}
