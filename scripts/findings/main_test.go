package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	scanned = `{"SBOM":{}}`
	inGo    = `{"osv":{"id":"GO-2026-0001","summary":"Flood"}}
{"finding":{"osv":"GO-2026-0001","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8"}]}}
{"finding":{"osv":"GO-2026-0001","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8","package":"net/http","function":"Do"},{"module":"m"}]}}`
	inModule = `{"finding":{"osv":"GO-2026-0002","fixed_version":"v0.3.7","trace":[{"module":"golang.org/x/text","version":"v0.3.5","package":"golang.org/x/text/language"}]}}`
	unfixed  = `{"finding":{"osv":"GO-2026-0003","trace":[{"module":"example.com/x","version":"v1.0.0","package":"example.com/x"}]}}`
	notGo    = `{"finding":{"osv":"GO-2026-0004","trace":[{"module":"stdlib","version":"v1.26.8","package":"net/http"}]}}`
	required = `{"finding":{"osv":"GO-2026-0005","fixed_version":"v2.0.0","trace":[{"module":"example.com/x","version":"v1.0.0"}]}}`
	heading  = "| finding | fixed in | what |\n|---|---|---|\n"
	listed   = heading + "| GO-2026-0001 | go1.26.9 | Flood |\n"
)

func TestWhatIsFoundMustBeListed(t *testing.T) {
	for _, c := range []struct {
		name, list, report string
		wrong              []string
	}{
		{"nothing", heading, scanned, nil},
		{"listed", listed, scanned + inGo, nil},
		{"not listed", heading, scanned + inGo, []string{"GO-2026-0001 in net/http of go1.26.8: Flood; fixed in go1.26.9"}},
		{"listed and gone", listed, scanned, []string{"GO-2026-0001 is listed in LIST and not found any more"}},
		{"another version listed", heading + "|GO-2026-0001|go1.26.10|x|\n", scanned + inGo, []string{"is fixed in go1.26.9, and listed in LIST as fixed in go1.26.10"}},
		{"listed twice", listed + "| GO-2026-0001 | go1.26.9 | Flood |\n", scanned + inGo, []string{"listed twice"}},
		{"in a module", listed, scanned + inGo + inModule, []string{"run go get golang.org/x/text@v0.3.7"}},
		{"in a module, and listed", heading + "| GO-2026-0002 | go1.26.9 | x |\n", scanned + inModule, []string{"run go get", "not found any more"}},
		{"in a module without a fix", heading, scanned + unfixed, []string{"no version fixes it"}},
		{"in Go without a fix", heading, scanned + notGo, []string{"no Go fixes it yet"}},
		{"in a module of which nothing vulnerable is imported", heading, scanned + required, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := list(t, c.list)
			wrong, err := compare(strings.NewReader(c.report), path, io.Discard)
			if err != nil || len(wrong) != len(c.wrong) {
				t.Fatalf("got %q %v, want %q", wrong, err, c.wrong)
			}
			for i, want := range c.wrong {
				if !strings.Contains(strings.ReplaceAll(wrong[i], path, "LIST"), want) {
					t.Errorf("%q does not say %q", wrong[i], want)
				}
			}
		})
	}
}

// What is no report, or one of a scan that failed, does not pass for a good one.
func TestAReportThatSaysNothingIsAnError(t *testing.T) {
	for _, report := range []string{"", "{}", inGo, "no JSON", scanned + "{"} {
		if wrong, err := compare(strings.NewReader(report), list(t, listed), io.Discard); err == nil {
			t.Errorf("%q passes: %q", report, wrong)
		}
	}
}

func list(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "list.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
