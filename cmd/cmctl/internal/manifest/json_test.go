package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/types"
)

const head = `"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},`

// Broken JSON is never taken for YAML, in which it would say something else.
func TestJSONIsReadAsJSONOrRefused(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, file, text string
		want             string // data[a], or the start of the fault
	}{
		{"as it should be", "a.json", "{" + head + `"data":{"a":"x\ny"}}`, "x\ny"},
		{"below a marker and a comment", "a.yaml", "---\n# c\n{" + head + `"data":{"a":"\/"}}`, "/"},
		{"a line feed in a string", "a.json", "{" + head + "\n\"data\":{\"a\":\"x\ny\"}}", `a.json:2: not valid JSON: invalid character '\n' in string literal`},
		{"a line feed in a string, whatever the name", "a.yaml", "{" + head + "\n\"data\":{\"a\":\"x\ny\"}}", `a.yaml:2: this looks like JSON, and is not valid: invalid character '\n'`},
		{"below a marker", "a.yaml", "---\n{" + head + "\"data\":{\"a\":\"x\ny\"}}", `a.yaml:2: this looks like JSON`},
		{"below a directive", "a.yaml", "%YAML 1.1\n---\n{" + head + "\"data\":{\"a\":\"x\ny\"}}", `a.yaml:3: this looks like JSON`},
		{"the second one", "a.json", "{" + head + "\"data\":{}}\n{" + head + "\n\"data\":{\"a\":foo}}", `a.json:3: not valid JSON: invalid character 'o' in literal false`},
		{"a number that is larger than others read", "a.yaml", "{" + head + `"data":{"a":1e999}}`, "a.yaml:1: data[a] must be a string, not the number 1e999"},
		{"a word", "a.yaml", "{" + head + `"data":{"a":foo}}`, "a.yaml:1: this looks like JSON"},
		{"a key alone", "a.yaml", "{" + head + `"data":{"a":"1", b, "c":"3"}}`, "a.yaml:1: this looks like JSON"},
		{"a comma too many", "a.yaml", "{" + head + `"data":{"a":"1",}}`, "a.yaml:1: this looks like JSON"},
		{"it ends too soon", "a.json", "{" + head + "\n\"data\":{\"a\":\"1\"}\n\n", "a.json:2: not valid JSON: it ends within a value"},
		{"no map", "a.json", "\n[]", "a.json:2: a manifest is a map"},
		{"YAML under the name of JSON", "a.json", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "a.json:1: not valid JSON"},

		{"a YAML flow map", "a.yaml", "{apiVersion: v1, kind: ConfigMap,\n metadata: {name: a}, # c\n data: {a: \"x\\ny\", 'b': plain\n text}}", "x\ny"},
		{"a text over several lines in one", "a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a},\n data: {a: \"x\n y\"}}", "a.yaml:2: a text in quotes goes over several lines"},
		{"a line that is joined by an escape", "a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a},\n data: {a: \"x\\\n y\"}}", "a.yaml:2: a text in quotes goes over several lines"},
		{"an entry without a value in one", "a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a},\n data: {a: \"x\", b, c: d}}", `a.yaml:2: "b" has no value`},
		{"what is meant to be null", "a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: x, b: null}}", "x"},
		{"block YAML joins lines", "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: \"x\n   y\"\n", "x y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			found, faults := manifest.Read(t.Context(), []string{c.file}, manifest.Options{})
			if len(faults) > 0 {
				if got := faults[0].Error(); !strings.HasPrefix(got, c.want) {
					t.Errorf("%s, want %s", got, c.want)
				}
				return
			}
			if got := found[0].Fields()[types.Field{Section: "data", Key: "a"}]; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestToJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"data":{"a":"x\ny"}}`:             `{"data":{"a":"x\ny"}}`,
		`[{"op":"test"}]`:                   `[{"op":"test"}]`,
		"- op: test\n":                      `[{"op":"test"}]`,
		"[{op: test}]":                      `[{"op":"test"}]`,
		"data: {a: null}":                   `{"data":{"a":null}}`,
		"\ufeff{\"a\":\"1\"}":               `{"a":"1"}`,
		"{\"data\":{\"a\":\"x\ny\"}}":       "error: line 1: this looks like JSON",
		"[{\"op\":\"test\",\n\"value\":x}]": "error: line 2: this looks like JSON",
		"[{op: test, value: \"x\ny\"}]":     "error: line 1: a text in quotes",
		"{\"a\":1}\n{\"a\":2}":              "error: line 2: another JSON value",
		`{"a":1,"a":2}`:                     `error: line 1: duplicate field "a"`,
		"{":                                 "error: line 1: did not find",
	} {
		got, err := manifest.ToJSON([]byte(text))
		if err != nil {
			got = []byte("error: " + err.Error())
		}
		if !strings.HasPrefix(string(got), want) || err == nil && string(got) != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
