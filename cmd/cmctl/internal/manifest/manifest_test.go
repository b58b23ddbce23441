package manifest_test

import (
	"bytes"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
)

// What a person saves is parsed without a panic whatever it is, and a fault
// names a line of the text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "a", "---\n---\n", "%YAML 1.1\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: List\nitems: [null, 1, {}]\n", "kind: ConfigMapList\nitems: 1", "a: &a [*a]", "? a\n: b", "{\"kind\": \"ConfigMap\"}",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {n: 1}\n", "metadata: 1\nkind: ConfigMap\napiVersion: v1", "<<: {a: b}", "...\n---\n...",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 1
		found, faults := manifest.Parse("f.yaml", text, manifest.Any, nil)
		for _, m := range found {
			if m.Name() == "" || m.Kind() != "ConfigMap" {
				t.Errorf("taken without a name or kind: %v", m.Document)
			}
			if m.Line < 1 || m.Line > lines {
				t.Errorf("line %d of %d", m.Line, lines)
			}
		}
		for _, err := range faults {
			if fault, ok := err.(*manifest.Fault); ok && (fault.Line < 1 || fault.Line > lines+1) {
				t.Errorf("%v: line %d of %d", err, fault.Line, lines)
			}
		}
	})
}

func TestSplitKeepsLineNumbers(t *testing.T) {
	for _, c := range []struct {
		name, text string
		lines      []int
	}{
		{"one document", "a: 1\n", []int{1}},
		{"comments before it", "# c\n\na: 1\n", []int{3}},
		{"several, with empty ones between", "---\n---\na: 1\n---\n# c\n---\nb: 2\n", []int{1, 3, 4, 7}},
		{"a directive belongs to what follows", "%YAML 1.1\n---\na: 1\n", []int{3}},
		{"an end marker", "a: 1\n...\n---\nb: 2\n", []int{1, 4}},
		{"a marker with content", "--- {a: 1}\n--- {b: 2}\n", []int{1, 2}},
		{"a marker inside a quoted line stays", "a: \"x --- y\"\n", []int{1}},
		{"carriage returns", "a: 1\r\n---\r\nb: 2\r\n", []int{1, 3}},
		{"a byte order mark", "\ufeffa: 1\n", []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []int
			for _, d := range manifest.Split([]byte(c.text)) {
				lines = append(lines, d.Line)
			}
			if len(lines) != len(c.lines) {
				t.Fatalf("documents at lines %v, want %v", lines, c.lines)
			}
			for i := range lines {
				if lines[i] != c.lines[i] {
					t.Fatalf("documents at lines %v, want %v", lines, c.lines)
				}
			}
		})
	}
}
