// Command findings holds what govulncheck found against the findings that a file
// lists as those which only a newer Go fixes.
//
//	govulncheck -format json ./... | go run ./scripts/findings SECURITY.md
//
// A vulnerability counts if a package that has it is imported, whether or not what is
// vulnerable in it is called. The exit code is 1 if one is found that is not listed, if one
// is listed that is not found any more, or if it is listed with another version of Go
// than the one that fixes it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: govulncheck -format json ./... | findings LIST")
		os.Exit(2)
	}
	wrong, err := compare(os.Stdin, os.Args[1], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "findings:", err)
		os.Exit(1)
	}
	for _, problem := range wrong {
		fmt.Fprintln(os.Stderr, "findings:", problem)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}

// compare tells what is wrong with the report, given the list in a file, and in a line
// to out how many findings there were.
func compare(report io.Reader, path string, out io.Writer) (wrong []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found, err := read(report)
	if err != nil {
		return nil, err
	}
	listed, wrong := parseList(string(text), path)
	wrong = append(wrong, found.against(listed, path)...)
	_, err = fmt.Fprintf(out, "%d findings in what is imported, %d of them listed; %d more in modules of which that is not imported\n",
		len(found.imported), len(listed), found.unused())
	return wrong, err
}

// finding is one vulnerability in one module.
type finding struct{ id, module string }

// place is where a finding is, and what fixes it.
type place struct {
	version string // of the module
	pkg     string
	fixed   string // the version of the module that fixes it; empty if none does
}

// findings are what a report tells.
type findings struct {
	imported  map[finding]place
	required  map[finding]bool // all, whether imported or not
	summaries map[string]string
}

// unused counts the findings in modules of which nothing vulnerable is imported.
func (f findings) unused() int { return len(f.required) - len(f.imported) }

// message is one of those of which govulncheck's report consists.
type message struct {
	SBOM *struct{}
	OSV  *struct {
		ID      string
		Summary string
	}
	Finding *struct {
		OSV          string
		FixedVersion string `json:"fixed_version"`
		Trace        []struct{ Module, Version, Package string }
	}
}

// read takes a whole report. One that says nothing of what was scanned is an error:
// nothing found by a scan that never was is no good news.
func read(report io.Reader) (findings, error) {
	f := findings{imported: map[finding]place{}, required: map[finding]bool{}, summaries: map[string]string{}}
	scanned := false
	for dec := json.NewDecoder(report); ; {
		var m message
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return f, fmt.Errorf("this is no report of govulncheck -format json: %w", err)
		}
		scanned = scanned || m.SBOM != nil
		if m.OSV != nil {
			f.summaries[m.OSV.ID] = m.OSV.Summary
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 {
			continue
		}
		at := m.Finding.Trace[0]
		key := finding{m.Finding.OSV, at.Module}
		f.required[key] = true
		if at.Package != "" {
			f.imported[key] = place{version: at.Version, pkg: at.Package, fixed: m.Finding.FixedVersion}
		}
	}
	if !scanned {
		return f, errors.New("the report does not say what was scanned; did govulncheck fail?")
	}
	return f, nil
}

// standard is what govulncheck calls the module of Go's own packages.
const standard = "stdlib"

// goVersion is a version of the standard library in Go's own words.
func goVersion(version string) string { return "go" + strings.TrimPrefix(version, "v") }

// row is a line of the list: | GO-2026-1234 | go1.26.9 | ...
var row = regexp.MustCompile(`(?m)^\|\s*(GO-\d{4}-\d+)\s*\|\s*(\S+)\s*\|`)

// parseList is which version of Go fixes each finding that is listed.
func parseList(text, path string) (listed map[string]string, wrong []string) {
	listed = map[string]string{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		if _, twice := listed[m[1]]; twice {
			wrong = append(wrong, fmt.Sprintf("%s is listed twice in %s", m[1], path))
		}
		listed[m[1]] = m[2]
	}
	return listed, wrong
}

// against tells what was found and is not listed, and the reverse.
func (f findings) against(listed map[string]string, path string) (wrong []string) {
	known := map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(f.imported), byID) {
		at, what := f.imported[key], f.summaries[key.id]
		switch {
		case key.module != standard && at.fixed == "":
			wrong = append(wrong, fmt.Sprintf("%s in %s of %s %s: %s; no version fixes it, do without the package", key.id, at.pkg, key.module, at.version, what))
			continue
		case key.module != standard:
			wrong = append(wrong, fmt.Sprintf("%s in %s of %s %s: %s; run go get %[3]s@%[6]s", key.id, at.pkg, key.module, at.version, what, at.fixed))
			continue
		case at.fixed == "":
			wrong = append(wrong, fmt.Sprintf("%s in %s of %s: %s; no Go fixes it yet, do without the package", key.id, at.pkg, goVersion(at.version), what))
			continue
		}
		known[key.id] = true
		switch fixed := goVersion(at.fixed); listed[key.id] {
		case fixed:
		case "":
			wrong = append(wrong, fmt.Sprintf("%s in %s of %s: %s; fixed in %s: use that, or list it in %s", key.id, at.pkg, goVersion(at.version), what, fixed, path))
		default:
			wrong = append(wrong, fmt.Sprintf("%s is fixed in %s, and listed in %s as fixed in %s", key.id, fixed, path, listed[key.id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(listed)) {
		if !known[id] {
			wrong = append(wrong, fmt.Sprintf("%s is listed in %s and not found any more: take it from there", id, path))
		}
	}
	return wrong
}

func byID(a, b finding) int { return strings.Compare(a.id+" "+a.module, b.id+" "+b.module) }
