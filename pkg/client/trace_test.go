package client_test

import (
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/client"
)

// told collects what a trace tells.
type told struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (l *told) tell(lines string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, lines)
}

func (l *told) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func TestADetailedTraceMasksCredentialsAndData(t *testing.T) {
	server, _ := tlsServer(t, realAPI(t))
	for name, c := range map[string]struct {
		detail     client.Detail
		has, lacks []string
	}{
		"requests": {client.TraceRequests, []string{"POST https://", "201 Created in"}, []string{"User-Agent", `"kind"`}},
		"headers":  {client.TraceHeaders, []string{"> POST https://", "> User-Agent: ", "> Authorization: (19 bytes)", "< Content-Type: application/json"}, []string{`"kind"`}},
		"bodies": {client.TraceBodies, []string{`> {"apiVersion":"v1","data":{"note":"(11 bytes)"}`, `"annotations":{"kept":"(13 bytes)"}`,
			`< {"apiVersion":"v1"`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &told{}
			o := client.TargetOptions{Server: server, Credentials: client.Credentials{Token: "very-private", InsecureSkipTLSVerify: true}}
			m := connect(t, o, client.Options{Trace: l.tell, TraceDetail: c.detail}).ConfigMaps("trace-" + name)
			d := flags("note", "very secret")
			d.SetMeta("namespace", "trace-"+name)
			d.SetMeta("annotations", map[string]any{"kept": "a secret note"})
			mustCreate(t, m, d)
			text := l.text()
			for _, s := range c.has {
				if !strings.Contains(text, s) {
					t.Errorf("it lacks %q:\n%s", s, text)
				}
			}
			for _, s := range append(c.lacks, "very-private", "secret") {
				if strings.Contains(text, s) {
					t.Errorf("it has %q:\n%s", s, text)
				}
			}
		})
	}
}
