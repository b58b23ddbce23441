package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// What was acknowledged before a kill is in the audit log: the answer comes after the
// line.
func TestAcknowledgedWritesAreInTheAuditLogAfterKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	acknowledged := map[string]bool{} // by audit id
	for range 5 {
		s := startServer(t, filepath.Join(dir, "data"), "--audit-log-path", path)
		var wait sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			wait.Go(func() {
				client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
				defer client.CloseIdleConnections()
				for {
					resp, err := client.Post(s.url+"/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader(`{"metadata":{"generateName":"a-"}}`))
					if err != nil {
						return // it is killed
					}
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if err == nil && resp.StatusCode == http.StatusCreated {
						mu.Lock()
						acknowledged[resp.Header.Get("Audit-Id")] = true
						if len(acknowledged)%200 == 0 {
							go s.kill()
						}
						mu.Unlock()
					}
				}
			})
		}
		wait.Wait()
		<-s.done
	}
	s := startServer(t, filepath.Join(dir, "data"), "--audit-log-path", path) // which ends a line that was cut
	s.stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for line := range strings.Lines(string(text)) {
		var event struct{ AuditID string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			broken++
			continue
		}
		delete(acknowledged, event.AuditID)
	}
	if len(acknowledged) > 0 || broken > 5 {
		t.Errorf("%d acknowledged writes are missing, %d lines are cut", len(acknowledged), broken)
	}
}
