// Command scenario plays the contract's scenario against a running server over
// plain HTTP, prints a row for each step and fails if one differs from what the
// contract says.
//
//	go run ./scripts/scenario http://127.0.0.1:8080
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const namespace = "demo-scenario"

// step is one request and what must come back. The version of the answer is
// compared with the label: v2 must be the version that the first v2 step got.
type step struct {
	name    string // %s in it is the version that the body carries
	method  string
	path    string
	data    map[string]string // of the body; nil: no body
	sent    string            // label of the version that the body carries
	code    int
	version string // label of the version in the answer
	reason  string
}

const (
	collection = "/api/v1/namespaces/" + namespace + "/configmaps"
	object     = collection + "/flags"
)

func steps() []step {
	blue := map[string]string{"mode": "blue", "rollout": "10"}
	a := map[string]string{"mode": "green", "rollout": "10"}
	stale := map[string]string{"mode": "blue", "rollout": "50"}
	b := map[string]string{"mode": "green", "rollout": "50"}
	return []step{
		{"POST create", "POST", collection, blue, "", 201, "v1", ""},
		{"POST create again", "POST", collection, blue, "", 409, "", "AlreadyExists"},
		{"PUT by A (version %s)", "PUT", object, a, "v1", 200, "v2", ""},
		{"PUT by B (stale %s)", "PUT", object, stale, "v1", 409, "", "Conflict"},
		{"PUT by B (re-read %s)", "PUT", object, b, "v2", 200, "v3", ""},
		{"GET list", "GET", collection, nil, "", 200, "v3", ""},
		{"DELETE", "DELETE", object, nil, "", 200, "", "Status Success"},
		{"GET after delete", "GET", object, nil, "", 404, "", "NotFound"},
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: scenario URL")
		os.Exit(2)
	}
	p := &player{server: os.Args[1], http: &http.Client{Timeout: 10 * time.Second}, versions: map[string]string{}, out: os.Stdout}
	if err := p.play(steps()); err != nil {
		fmt.Fprintln(os.Stderr, "scenario:", err)
		os.Exit(1)
	}
}

type player struct {
	server   string
	http     *http.Client
	versions map[string]string // label -> version
	out      io.Writer
}

func (p *player) play(steps []step) error {
	fmt.Fprintf(p.out, "| %-22s | %-4s | %-7s | %-14s |\n", "step", "HTTP", "version", "reason")
	fmt.Fprintf(p.out, "|%s|%s|%s|%s|\n", dashes(24), dashes(6), dashes(9), dashes(16))
	differ := 0
	for _, s := range steps {
		s.name = strings.ReplaceAll(s.name, "%s", p.versions[s.sent])
		got, err := p.do(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(p.out, "| %-22s | %-4d | %-7s | %-14s |\n", s.name, got.code, got.version, got.reason)
		for _, d := range p.differences(s, got) {
			differ++
			fmt.Fprintf(p.out, "  DIFFERS: %s\n", d)
		}
		if s.reason == "Conflict" {
			if err := p.survived(); err != nil {
				differ++
				fmt.Fprintf(p.out, "  DIFFERS: %v\n", err)
			}
		}
	}
	if differ > 0 {
		return fmt.Errorf("%d differences from the contract", differ)
	}
	return nil
}

// answer is what a row shows.
type answer struct {
	code    int
	version string
	reason  string
	data    map[string]string
}

func (p *player) do(s step) (answer, error) {
	var body io.Reader
	if s.data != nil {
		meta := map[string]any{"name": "flags"}
		if s.sent != "" {
			meta["resourceVersion"] = p.versions[s.sent]
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": s.data})
		if err != nil {
			return answer{}, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequest(s.method, p.server+s.path, body)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	var doc struct {
		Kind, Status, Reason string
		Code                 int
		Metadata             struct{ ResourceVersion string }
		Data                 map[string]string
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		return answer{}, fmt.Errorf("the answer is not JSON: %w", err)
	}
	a := answer{code: resp.StatusCode, version: doc.Metadata.ResourceVersion, reason: doc.Reason, data: doc.Data}
	if doc.Kind == "Status" {
		a.version = ""
		if doc.Status == "Success" {
			a.reason = "Status Success"
		} else if doc.Code != resp.StatusCode {
			return answer{}, fmt.Errorf("the Status says code %d, the status line %d", doc.Code, resp.StatusCode)
		}
	}
	return a, nil
}

func (p *player) differences(s step, got answer) []string {
	var d []string
	if got.code != s.code {
		d = append(d, fmt.Sprintf("HTTP %d expected", s.code))
	}
	if got.reason != s.reason {
		d = append(d, fmt.Sprintf("reason %q expected", s.reason))
	}
	switch known, ok := p.versions[s.version]; {
	case s.version == "" && got.version != "":
		d = append(d, "no version expected")
	case s.version == "":
	case got.version == "":
		d = append(d, "a version expected")
	case ok && known != got.version:
		d = append(d, fmt.Sprintf("version %s (%s) expected", known, s.version))
	case !ok:
		for label, v := range p.versions {
			if v == got.version {
				d = append(d, fmt.Sprintf("a new version expected, and this is %s", label))
			}
		}
		p.versions[s.version] = got.version
	}
	return d
}

// survived checks that the refused write left A's value in place.
func (p *player) survived() error {
	got, err := p.do(step{method: "GET", path: object})
	if err != nil {
		return err
	}
	if got.data["mode"] != "green" || got.version != p.versions["v2"] {
		return fmt.Errorf("after the refused write a fresh read must show A's green at v2, not %v at %s", got.data, got.version)
	}
	return nil
}

func dashes(n int) string { return string(bytes.Repeat([]byte("-"), n)) }
