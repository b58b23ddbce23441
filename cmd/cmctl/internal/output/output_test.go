package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
)

func parse(t testing.TB, text string) types.Document {
	t.Helper()
	d, err := types.ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const app = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"app","namespace":"ns","generation":3,
	"annotations":{"a.b/c":"note"}},
	"data":{"app.yaml":"a: b\nc: d","x-y_z.1":"odd","mode":"blue","html":"<b>"},"binaryData":{"raw":"aGk="}}`

func print(t testing.TB, spec string, o output.Options, objects output.Objects) (string, error) {
	t.Helper()
	p, err := output.New(spec, o)
	if err != nil {
		t.Fatalf("-o %s: %v", spec, err)
	}
	var b bytes.Buffer
	err = p.Print(&b, objects)
	return b.String(), err
}

func TestFormats(t *testing.T) {
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ spec, want string }{
		{"name", "configmap/app\n"},
		{`jsonpath={.data.app\.yaml}`, "a: b\nc: d"},
		{`jsonpath=.data.app\.yaml`, "a: b\nc: d"},
		{`jsonpath={.data['app.yaml']}`, "a: b\nc: d"},
		{`jsonpath={.data['app\.yaml']}`, "a: b\nc: d"},
		{`jsonpath=.data["app.yaml"]`, "a: b\nc: d"},
		{`jsonpath=.data.x-y_z\.1`, "odd"},
		{`jsonpath=.data['x-y_z.1']`, "odd"},
		{`jsonpath=.data["x-y_z.1"]`, "odd"},
		{`jsonpath=data.mode`, "blue"},
		{`jsonpath=$.data.mode`, "blue"},
		{`jsonpath=['data']["mode"]`, "blue"},
		{`jsonpath={.data['app.yaml','x-y_z.1']}`, "a: b\nc: d odd"},
		{`jsonpath={.metadata.annotations['a.b/c']}`, "note"},
		{`jsonpath={.metadata.annotations.a\.b/c}`, "note"},
		{`jsonpath={.metadata.name}: {.data.mode}{"\n"}`, "app: blue\n"},
		{`jsonpath=['x'] {"['x.y']"} {.data.mode}`, "['x'] ['x.y'] blue"},
		{`jsonpath={.metadata.generation}`, "3"},
		{`jsonpath={.binaryData}`, `{"raw":"aGk="}`},
		{`jsonpath={.data.html}`, "<b>"},
		{`jsonpath-as-json={.data.mode}`, "[\n    \"blue\"\n]\n"},
		{"jsonpath-file=" + file("{.data.mode}"), "blue"},
		{"go-template={{.data.mode}} {{index .data \"app.yaml\"}}", "blue a: b\nc: d"},
		{"go-template={{base64decode .binaryData.raw}}{{if exists . \"data\" \"none\"}}?{{end}}", "hi"},
		{`go-template={{with index . "data" "mode"}}{{.}}{{end}}`, "blue"},
		{"go-template-file=" + file("{{.metadata.generation}}"), "3"},
		{`custom-columns=NAME:.metadata.name,YAML:.data['app.yaml'],NONE:.data.none`, "NAME   YAML         NONE\napp    a: b\\nc: d   <none>\n"},
		{`custom-columns=N:{.metadata.name}`, "N\napp\n"},
		{"custom-columns-file=" + file("NAME MODE\n.metadata.name .data.mode\n"), "NAME   MODE\napp    blue\n"},
	} {
		got, err := print(t, c.spec, output.Options{}, output.Objects{Items: []types.Document{parse(t, app)}})
		if err != nil || got != c.want {
			t.Errorf("-o %s: got %q, %v, want %q", c.spec, got, err, c.want)
		}
	}
}

func TestAnExpressionSeesAList(t *testing.T) {
	objects := output.Objects{Items: []types.Document{parse(t, app)}, List: true}
	for spec, want := range map[string]string{
		`jsonpath={range .items[*]}{.metadata.name}={.data['app.yaml']};{end}`:   "app=a: b\nc: d;",
		`jsonpath={.items[?(@.metadata.name=="app")].data.mode}`:                 "blue",
		`jsonpath={.items[?(@.metadata.annotations['a.b/c']=='note')].kind}`:     "ConfigMap",
		`jsonpath={.items[?(@.metadata.generation>2)].data['x-y_z.1']}`:          "odd",
		`go-template={{range .items}}{{.metadata.name}}{{end}} {{len .items}}`:   "app 1",
		`custom-columns=N:.metadata.name,G:.metadata.generation,D:.data['mode']`: "N     G   D\napp   3   blue\n",
	} {
		if got, err := print(t, spec, output.Options{}, objects); err != nil || got != want {
			t.Errorf("-o %s: got %q, %v, want %q", spec, got, err, want)
		}
	}
}

func TestWhatIsMissingIsAnErrorUnlessAllowed(t *testing.T) {
	for spec, allowed := range map[string]string{
		"jsonpath={.data.none}":                 "",
		"jsonpath=a {.data.mode} {.data.none}!": "a blue !",
		"jsonpath={.data.none.deeper}":          "",
		"go-template={{.data.none}}":            "<no value>",
		"go-template=a {{.data.mode}}{{.none}}": "a blue<no value>",
		`go-template={{index .data "none"}}`:    "<no value>",
		`go-template={{index .none "none"}}`:    "<no value>",
		`go-template={{index . "none" "none"}}`: "<no value>",
	} {
		objects := output.Objects{Items: []types.Document{parse(t, app)}}
		got, err := print(t, spec, output.Options{}, objects)
		if !errors.As(err, new(*output.MissingError)) || got != "" {
			t.Errorf("-o %s: got %q, %v", spec, got, err)
		}
		if got, err := print(t, spec, output.Options{AllowMissing: true}, objects); err != nil || got != allowed {
			t.Errorf("-o %s, allowed: got %q, %v", spec, got, err)
		}
	}
}

func TestMistakesAreFoundBeforeAnythingIsRead(t *testing.T) {
	for _, spec := range []string{
		"xml", "yaml2", "jsonpath", "jsonpath=", "jsonpath={.data[}", "jsonpath={.data", "jsonpath={range .items[*]}", "jsonpath={foo}", "jsonpath={end}",
		"jsonpath={.data['a}", "jsonpath-file=/does/not/exist", "go-template=", "go-template={{", "go-template={{nope .}}",
		"custom-columns", "custom-columns=", "custom-columns=NAME", "custom-columns=A:.b,C", "custom-columns=A:", "custom-columns=A:{.b", "custom-columns-file=/dev/null",
	} {
		if _, err := output.New(spec, output.Options{}); err == nil {
			t.Errorf("-o %s is taken", spec)
		}
	}
}

func TestSorting(t *testing.T) {
	items := []types.Document{}
	for _, text := range []string{
		`{"metadata":{"name":"e","labels":{"rank":"10"},"creationTimestamp":"2026-01-01T00:00:00Z"}}`,
		`{"metadata":{"name":"d","creationTimestamp":"2026-01-04T00:00:00Z"}}`,
		`{"metadata":{"name":"c","labels":{"rank":"9"},"creationTimestamp":"2026-01-03T00:00:00Z"}}`,
		`{"metadata":{"name":"b","labels":{"rank":"low"},"creationTimestamp":"2026-01-02T00:00:00Z"}}`,
		`{"metadata":{"name":"a","labels":{"rank":"1a"}}}`,
		`{"metadata":{"name":"f","labels":{"rank":"9.0"}}}`,
	} {
		items = append(items, parse(t, text))
	}
	for _, c := range []struct {
		by   []string
		want string
	}{
		{nil, "edcbaf"},
		{[]string{"NAME"}, "abcdef"},
		{[]string{".metadata.labels.rank"}, "cfeabd"},
		{[]string{"{.metadata.labels['rank']}", ".metadata.name"}, "cfeabd"},
		{[]string{"age", "name"}, "dcbeaf"},
		{[]string{".metadata.creationTimestamp", "NAME"}, "ebcdaf"},
		{[]string{".data.none", "name"}, "abcdef"},
		{[]string{".data.none"}, "edcbaf"},
	} {
		s, err := output.ParseSorter(c.by)
		if err != nil {
			t.Errorf("%v: %v", c.by, err)
			continue
		}
		sorted := slices.Clone(items)
		if err := output.Sort(s, sorted, func(d types.Document) types.Document { return d }); err != nil {
			t.Error(err)
		}
		got := ""
		for _, d := range sorted {
			got += d.Name()
		}
		if got != c.want {
			t.Errorf("by %v: %s, want %s", c.by, got, c.want)
		}
		if err := output.Sort(s, []types.Document{}, func(d types.Document) types.Document { return d }); err != nil {
			t.Errorf("an empty list by %v: %v", c.by, err)
		}
	}
}

func TestOnlyFieldsCanBeSortedBy(t *testing.T) {
	for _, text := range []string{"", "{.a}{.b}", "{.a} text", "text {.a}", `{"text"}`, "{range .a}{end}", "{.a", "{1}", ".a[", "{}", "$"} {
		if _, err := output.ParseSorter([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for text, contents := range map[string]bool{".metadata.name": false, "NAME": false, "metadata.labels['a.b/c']": false, ".data.a": true, "..name": true} {
		s, err := output.ParseSorter([]string{text})
		if err != nil || s.NeedsContents() != contents {
			t.Errorf("%s needs contents: want %t, %v", text, contents, err)
		}
	}
}

func TestATableCantActOnATerminal(t *testing.T) {
	var b bytes.Buffer
	table := output.Table{Header: []string{"A", "B"}, Rows: [][]string{{"x\x1b[2J\n\t", "\u202ey"}}}
	if err := table.Print(&b); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\x1b\t\u202e") || !strings.Contains(got, `x\x1b[2J\n\t`) {
		t.Errorf("%q", got)
	}
}

func TestColoursAreOnlyWhereTheyBelong(t *testing.T) {
	var b bytes.Buffer
	for mode, want := range map[string]string{"auto": "x", "never": "x", "always": "\x1b[31mx\x1b[0m"} {
		if got := output.NewPalette(mode, &b).Red("x"); got != want {
			t.Errorf("%s: %q", mode, got)
		}
	}
	plain, colored := output.Table{Header: []string{"A"}, Rows: [][]string{{"long"}}}, bytes.Buffer{}
	if err := plain.Print(&b); err != nil {
		t.Fatal(err)
	}
	plain.Colors = output.NewPalette("always", &b)
	if err := plain.Print(&colored); err != nil {
		t.Fatal(err)
	}
	if strip := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", ""); strip.Replace(colored.String()) != b.String() || colored.String() == b.String() {
		t.Errorf("%q, in colours %q", b.String(), colored.String())
	}
}

// Whatever an expression is, it is refused or carried out, and the keys in
// brackets are those of the object.
func FuzzJSONPath(f *testing.F) {
	for _, seed := range []string{".data.a", "{.data['a.b']}", `{.data["a"]}`, "{range .data}{end}", "{..}", "{.data[0:1:0]}", "{[?(@.a==1)]}", "{.*}", `{"\`, "{['", "{.metadata.labels[*]}", "{range}{range}{end}{end}"} {
		f.Add(seed, "key.1")
	}
	f.Fuzz(func(t *testing.T, text, key string) {
		doc := parse(t, app)
		if p, err := output.ParsePath(text); err == nil {
			_, _ = p.Text(doc, false)
			_, _ = p.Values(doc)
		}
		if key == "" || strings.ContainsAny(key, `\"'[]{},`+"\n\r") || key == "*" || !json.Valid([]byte(`"`+key+`"`)) {
			return
		}
		doc.Set(types.Field{Section: "data", Key: key}, "found")
		for _, text := range []string{".data['" + key + "']", `{.data["` + key + `"]}`} {
			p, err := output.ParsePath(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if got, err := p.Text(doc, false); err != nil || got != "found" {
				t.Errorf("%s: %q, %v", text, got, err)
			}
		}
	})
}

func TestColumnsThatGoOnHaveOneHeader(t *testing.T) {
	p, err := output.New("custom-columns=NAME:.metadata.name,MODE:.data.mode", output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for range 2 {
		if err := p.Print(&b, output.Objects{Items: []types.Document{parse(t, app)}}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "NAME   MODE\napp    blue\napp    blue\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
}

func TestRowsAreAlignedAsTheyCome(t *testing.T) {
	var out strings.Builder
	var r output.Rows
	header := []string{"NAME", "AGE"}
	for _, rows := range [][][]string{{{"a", "1s"}, {"flags", "2s"}}, {{"b", "3s"}}, {{"longer-name", "4s"}}, {{"\x1b[2J", "5s"}}} {
		if err := r.Print(&out, header, rows); err != nil {
			t.Fatal(err)
		}
	}
	want := "NAME    AGE\na       1s\nflags   2s\nb       3s\nlonger-name   4s\n\\x1b[2J       5s\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
