package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// program is cmctl in this process, on a bench.
type program struct {
	t        *testing.T
	in       string
	out, err bytes.Buffer
}

// programAt gives each request to filter first, which tells whether it has answered.
func programAt(t *testing.T, filter func(http.ResponseWriter, *http.Request) bool) *program {
	t.Helper()
	between(t, filter)
	return &program{t: t}
}

// run demands that exit code.
func (p *program) run(want int, args ...string) {
	p.t.Helper()
	p.runIn(p.t.Context(), want, args...)
}

func (p *program) runIn(ctx context.Context, want int, args ...string) {
	p.t.Helper()
	p.out.Reset()
	p.err.Reset()
	if code := run(ctx, args, streams{In: strings.NewReader(p.in), Out: &p.out, Err: &p.err}, nil); code != want {
		p.t.Fatalf("cmctl %v ended with %d, want %d:\n%s%s", args, code, want, &p.out, &p.err)
	}
}

// file writes one and returns its path.
func (p *program) file(text string) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "cm.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// refuse answers as a server that forbids the request.
func refuse(w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`))
	return true
}

const greenFlags = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flags}\ndata: {mode: green}\n"

func TestReplaceByForceKeepsTheOldObjectWhereTheServerWouldRefuseTheNew(t *testing.T) {
	deletions := 0
	var forbid bool
	p := programAt(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			deletions++
		}
		return forbid && r.Method == http.MethodPost && refuse(w)
	})
	p.run(0, "create", "flags", "--from-literal=mode=blue")
	forbid = true
	p.run(6, "replace", "--force", "-f", p.file(greenFlags))
	if deletions > 0 {
		t.Error("the old object was deleted")
	}
	if !strings.Contains(p.err.String(), "would refuse the new object, so the old one stays") {
		t.Errorf("it said:\n%s", &p.err)
	}
}

func TestReplaceByForcePutsTheOldObjectBackIfTheCreationFailsAfterAll(t *testing.T) {
	armed := false
	p := programAt(t, func(w http.ResponseWriter, r *http.Request) bool {
		if armed && r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == "" {
			armed = false
			return refuse(w)
		}
		return false
	})
	p.run(0, "create", "flags", "--from-literal=mode=blue")
	armed = true
	p.run(6, "replace", "--force", "-f", p.file(greenFlags))
	if !strings.Contains(p.err.String(), "the old one was put back") {
		t.Errorf("it said:\n%s", &p.err)
	}
	kept, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "cmctl-replaced-flags-*.yaml"))
	if err != nil || len(kept) != 1 || !strings.Contains(p.err.String(), kept[0]) {
		t.Errorf("kept are %v (%v), and it said:\n%s", kept, err, &p.err)
	}
	p.run(0, "get", "flags", "-o", "yaml")
	if !strings.Contains(p.out.String(), "mode: blue") {
		t.Errorf("what is there now:\n%s", &p.out)
	}
}

// An interruption between deletion and creation would leave nothing.
func TestReplaceByForceIsNotInterruptedHalfway(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	armed := false
	p := programAt(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if armed && r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == "" {
			interrupt()
		}
		return false
	})
	p.run(0, "create", "flags", "--from-literal=mode=blue")
	armed = true
	p.runIn(ctx, 0, "replace", "--force", "-f", p.file(greenFlags))
	p.run(0, "get", "flags", "-o", "yaml")
	if !strings.Contains(p.out.String(), "mode: green") {
		t.Errorf("what is there now:\n%s", &p.out)
	}
}

// Somebody writes after the version was looked at: the swap is made on the
// version that the file has.
func TestReplaceNeverSendsAnotherVersionThanTheFiles(t *testing.T) {
	var versions []string
	var p *program
	p = programAt(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && r.URL.Query().Get("dryRun") == "" {
			body := new(bytes.Buffer)
			body.ReadFrom(r.Body)
			r.Body = struct {
				*bytes.Reader
				nopClose
			}{bytes.NewReader(body.Bytes()), nopClose{}}
			if doc, err := types.ParseDocument(body.Bytes()); err == nil {
				versions = append(versions, doc.ResourceVersion())
			}
		}
		return false
	})
	p.run(0, "create", "flags", "--from-literal=mode=blue", "-o", "json")
	made, err := types.ParseDocument(p.out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	old := p.file(p.out.String())
	p.run(0, "replace", "-f", p.file(greenFlags))
	versions = nil
	p.run(3, "replace", "-f", old)
	for _, v := range versions {
		if v != made.ResourceVersion() {
			t.Errorf("version %s was sent, and the file says %s", v, made.ResourceVersion())
		}
	}
}

type nopClose struct{}

func (nopClose) Close() error { return nil }

func TestDiffOnlyReads(t *testing.T) {
	looking := false
	p := programAt(t, func(w http.ResponseWriter, r *http.Request) bool {
		if looking && r.Method != http.MethodGet {
			t.Errorf("diff sent %s %s", r.Method, r.URL)
		}
		return false
	})
	p.run(0, "apply", "-f", p.file(greenFlags), "--set", "shop")
	p.run(0, "replace", "-f", p.file(strings.Replace(greenFlags, "green", "red", 1)))
	looking = true
	blue := p.file(strings.Replace(greenFlags, "green", "blue", 1))
	for _, args := range [][]string{
		{"-f", blue}, {"-f", blue, "--force"}, {"-f", blue, "--exact"}, {"-f", blue, "--server-side"},
		{"flags", "--from-literal=mode=x"}, {"new", "--from-literal=mode=x"}, {"-f", blue, "--set", "shop", "--prune"},
	} {
		p.run(1, append([]string{"diff"}, args...)...)
	}
}

func TestDiffEndsAboveOneWhereTheServerRefuses(t *testing.T) {
	p := programAt(t, func(w http.ResponseWriter, _ *http.Request) bool { return refuse(w) })
	p.run(6, "diff", "-f", p.file(greenFlags))
	p.run(6, "diff", "-f", p.file(greenFlags), "--exit-zero")
}
