package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/retry"
)

// What the server says is shown, not obeyed by the terminal.
func TestAServersWarningsCantReachTheTerminal(t *testing.T) {
	b := newBench(t)
	b.answered = func(r *http.Response) { r.Header.Set("Warning", `299 - "old `+"\u202e"+` field"`) }
	b.must("create", "flags")
	e := b.cmctl("get", "flags", "-o", "yaml")
	if want := `warning: old \u202e field`; e.code != 0 || !strings.Contains(e.err, want) {
		t.Errorf("it ended with %d and said %q, want %q", e.code, e.err, want)
	}
}

// One answer that never comes takes a whole --request-timeout. There must be time left
// then to find out what became of its write, and to send it again.
func TestOneLostAnswerDoesNotUseUpTheCaps(t *testing.T) {
	for _, timeout := range []string{"5s", "30s", "5m"} {
		f := newFactory(streams{}, nil)
		newRoot(f)
		f.settings.Set("request-timeout", timeout)
		request, err := time.ParseDuration(timeout)
		if err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]retry.Options{"retryOptions": f.retryOptions(nil), "persistent": f.persistent(nil)} {
			if o.MaxElapsed <= request || o.MaxSettling <= request {
				t.Errorf("%s of --request-timeout=%s: %v for all, %v to settle", name, timeout, o.MaxElapsed, o.MaxSettling)
			}
		}
	}
}
