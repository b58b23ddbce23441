package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "example.com/cmctl/"

// pkg is what the go command tells about a package.
type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// Imports run one way, as docs/architecture.md says. A package imports those of
// ours that stand beside it here, and no others.
func TestImportsRunOneWay(t *testing.T) {
	allowed := map[string][]string{
		"cmd/cmctl":                     {"cmd/cmctl/internal/blame", "cmd/cmctl/internal/check", "cmd/cmctl/internal/command", "cmd/cmctl/internal/condition", "cmd/cmctl/internal/difference", "cmd/cmctl/internal/draft", "cmd/cmctl/internal/filter", "cmd/cmctl/internal/fromfiles", "cmd/cmctl/internal/intake", "cmd/cmctl/internal/managed", "cmd/cmctl/internal/manifest", "cmd/cmctl/internal/markers", "cmd/cmctl/internal/mirror", "cmd/cmctl/internal/output", "cmd/cmctl/internal/schema", "cmd/internal/settings", "cmd/cmctl/internal/supervise", "cmd/cmctl/internal/view", "pkg/client", "pkg/retry", "pkg/types"},
		"cmd/cmctl/internal/check":      {"cmd/cmctl/internal/command", "pkg/types", "pkg/types/content"},
		"cmd/cmctl/internal/command":    {},
		"cmd/cmctl/internal/manifest":   {"cmd/cmctl/internal/intake", "pkg/client", "pkg/types"},
		"cmd/cmctl/internal/intake":     {},
		"cmd/cmctl/internal/output":     {"pkg/types"},
		"cmd/cmctl/internal/schema":     {},
		"cmd/cmctl/internal/filter":     {"cmd/cmctl/internal/command"},
		"cmd/internal/settings":         {},
		"cmd/cmserver/internal/pki":     {},
		"cmd/cmserver/internal/serving": {"pkg/server/authn", "pkg/server/reload"},
		"cmd/cmserver":                  {"cmd/cmserver/internal/pki", "cmd/cmserver/internal/serving", "cmd/internal/settings", "pkg/server", "pkg/server/audit", "pkg/server/authn", "pkg/server/authz", "pkg/server/reload", "pkg/server/inject", "pkg/server/quota", "pkg/server/store", "pkg/server/store/archive", "pkg/server/store/etcd", "pkg/server/store/local", "pkg/server/store/transfer"},
		"pkg/types":                     {"pkg/types/content", "pkg/types/lines"},
		"pkg/types/content":             {},
		"pkg/types/lines":               {},
		"pkg/retry":                     {},
		"pkg/client":                    {"pkg/retry", "pkg/types"},
		"cmd/cmctl/internal/difference": {"cmd/cmctl/internal/output", "pkg/types", "pkg/types/lines"},
		"cmd/cmctl/internal/fromfiles":  {"cmd/cmctl/internal/intake", "pkg/types"},
		"cmd/cmctl/internal/managed":    {"pkg/types"},
		"cmd/cmctl/internal/blame":      {"cmd/cmctl/internal/managed", "pkg/types", "pkg/types/lines"},
		"cmd/cmctl/internal/condition":  {"cmd/cmctl/internal/output", "pkg/client", "pkg/types"},
		"cmd/cmctl/internal/supervise":  {"cmd/cmctl/internal/command"},
		"cmd/cmctl/internal/mirror":     {},
		"cmd/cmctl/internal/draft":      {"pkg/types"},
		"cmd/cmctl/internal/markers":    {"pkg/types/lines"},
		"cmd/cmctl/internal/view":       {"cmd/cmctl/internal/intake", "cmd/cmctl/internal/manifest", "cmd/cmctl/internal/markers", "pkg/types", "pkg/types/lines"},
		"pkg/server": {"pkg/server/audit", "pkg/server/authn", "pkg/server/authz", "pkg/server/discovery", "pkg/server/fieldmanager", "pkg/server/inject", "pkg/server/openapi", "pkg/server/patch",
			"pkg/server/quota", "pkg/server/render", "pkg/server/store", "pkg/types"},
		"pkg/server/audit":           {"pkg/server/reload", "pkg/types"},
		"pkg/server/authn":           {},
		"pkg/server/authz":           {"pkg/server/manifests", "pkg/types"},
		"pkg/server/manifests":       {"pkg/server/reload", "pkg/types"},
		"pkg/server/discovery":       {"pkg/types"},
		"pkg/server/fieldmanager":    {"pkg/server/openapi", "pkg/types"},
		"pkg/server/openapi":         {"pkg/types"},
		"pkg/server/patch":           {"pkg/types"},
		"pkg/server/render":          {"pkg/types"},
		"pkg/server/inject":          {"pkg/types"},
		"pkg/server/quota":           {"pkg/server/manifests", "pkg/server/store"},
		"pkg/server/reload":          {},
		"pkg/server/servertest":      {"pkg/server", "pkg/server/inject", "pkg/server/store", "pkg/server/store/local"},
		"pkg/server/store":           {},
		"pkg/server/store/archive":   {},
		"pkg/server/store/etcd":      {"pkg/server/store", "pkg/server/store/feed", "pkg/server/store/index", "pkg/server/store/record", "pkg/server/store/retention"},
		"pkg/server/store/feed":      {"pkg/server/store"},
		"pkg/server/store/index":     {"pkg/server/store", "pkg/server/store/record"},
		"pkg/server/store/local":     {"pkg/server/store", "pkg/server/store/archive", "pkg/server/store/feed", "pkg/server/store/index", "pkg/server/store/record", "pkg/server/store/retention"},
		"pkg/server/store/record":    {"pkg/server/store"},
		"pkg/server/store/retention": {"pkg/server/store"},
		"pkg/server/store/transfer":  {"pkg/server/store"},
		"pkg/server/store/storetest": {"pkg/server/store"},
		"scripts/findings":           {},
		"scripts/scenario":           {},
		"scripts/testlog":            {},
		"test/conformance":           {},
		"test/crash":                 {},
		"test/e2e":                   {},
		"test/house":                 {},
		"test/linear":                {"pkg/client", "pkg/retry", "pkg/types"},
		"test/load":                  {},
		"test/pipes":                 {},
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		may, ok := allowed[name]
		if !ok {
			t.Errorf("%s is new: say here what it may import, and in docs/architecture.md what it is for", name)
			continue
		}
		for _, imported := range p.Imports {
			ours, ok := strings.CutPrefix(imported, module)
			if ok && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s", name, ours)
			}
		}
	}
}

// The retry loop and the store's interface know no HTTP.
func TestTheInnerPackagesKnowNoHTTP(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "pkg/server/store") && slices.Contains(p.Imports, "net/http") {
			t.Errorf("%s imports net/http", name)
		}
		if name == "pkg/retry" && (slices.Contains(p.Imports, "net/url") || slices.Contains(p.Imports, "github.com/go-resty/resty/v2")) {
			t.Errorf("%s imports a transport", name)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
