package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// A log that can't be written is told, and the server stays ready.
func TestAnAuditLogWithoutRoomIsTold(t *testing.T) {
	for mode, want := range map[string]int{auditBlocking: http.StatusCreated, auditStrict: http.StatusServiceUnavailable} {
		t.Run(mode, func(t *testing.T) {
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			if err != nil {
				t.Skip(err)
			}
			defer full.Close()
			p := launchTo(t, full, "--in-memory", "--audit-log-path=-", "--audit-log-mode="+mode)
			defer p.end()
			if code, _, err := p.send("POST", collection, `{"metadata":{"name":"a"}}`); code != want || err != nil {
				t.Errorf("answered %d, %v", code, err)
			}
			if code, body := p.get("/readyz?verbose"); code != http.StatusOK || !strings.Contains(body, "[!]audit: reason withheld") {
				t.Errorf("ready? %d %s", code, body)
			}
			if !strings.Contains(p.log.String(), "the audit log can't be written") {
				t.Errorf("the log does not tell:\n%s", p.log)
			}
		})
	}
}
