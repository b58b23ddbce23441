package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Whatever a value holds, the text that an editor shows says exactly that, and
// saving it untouched changes nothing.
func FuzzEditShowsExactlyWhatIsStored(f *testing.F) {
	for _, value := range []string{
		"", " ", "\n", "a", "yes", "0755", "1e3", "~", "null", "key: v \n\tindented\nend", "#!/bin/sh\n# keep\nrun\n",
		"---\na", "...\n", "a\r\nb\r\n", "\u0085", "\u2028x\u2029", "\ufeffbom", "tab\tin", "\x7f", "\x00", "\U0001f600", "'\"`", "%YAML 1.1", "- a\n- b", "a\n\n\n", "  lead\n more",
	} {
		f.Add("key", value)
	}
	f.Add("n", "yes")
	f.Add("0755", "octal key")
	f.Fuzz(func(t *testing.T, key, value string) {
		if !utf8.ValidString(value) || len(validation.IsConfigMapKey(key)) > 0 {
			t.Skip() // no server stores it
		}
		doc := types.NewDocument("default", "flags")
		doc.Set(types.Field{Section: "data", Key: key}, value)
		doc.Set(types.Field{Section: "data", Key: key + ".2"}, "x "+value+"\n") // the emitter may take another style
		base, text, err := showForEdit(doc)
		if err != nil {
			t.Fatalf("%q can't be shown: %v", value, err)
		}
		if got := base.Fields()[types.Field{Section: "data", Key: key}]; got != value {
			t.Fatalf("stored %q, shown as\n%s\nwhich says %q", value, text, got)
		}
	})
}

// The refusal in showForEdit is for what YAML can't hold; nothing that a
// ConfigMap may hold is refused.
func TestEditOpensEveryText(t *testing.T) {
	runes := []rune{0xd7ff, 0xe000, 0xfdd0, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x10000, 0x1ffff, 0x10ffff}
	for r := rune(0); r <= 0x2100; r++ {
		runes = append(runes, r)
	}
	for some := range slices.Chunk(runes, 100) {
		doc := types.NewDocument("default", "flags")
		for _, r := range some {
			for shape, value := range []string{string(r), "a" + string(r) + "\nb", string(r) + " "} {
				doc.Set(types.Field{Section: "data", Key: fmt.Sprintf("%d-%x", shape, r)}, value)
			}
		}
		if _, _, err := showForEdit(doc); err != nil {
			t.Errorf("between %U and %U: %v", some[0], some[len(some)-1], err)
		}
	}
}

// What a person saves is parsed without a panic whatever it is, and a fault
// names a line of the text.
func FuzzManifests(f *testing.F) {
	for _, text := range []string{
		"", "a", "---\n---\n", "%YAML 1.1\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: List\nitems: [null, 1, {}]\n", "kind: ConfigMapList\nitems: 1", "a: &a [*a]", "? a\n: b", "{\"kind\": \"ConfigMap\"}",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {n: 1}\n", "metadata: 1\nkind: ConfigMap\napiVersion: v1", "<<: {a: b}", "...\n---\n...",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 1
		found, faults := parseManifests("f.yaml", text, nil)
		for _, m := range found {
			if m.Name() == "" || m.Kind() != "ConfigMap" {
				t.Errorf("taken without a name or kind: %v", m.Document)
			}
			if m.line < 1 || m.line > lines {
				t.Errorf("line %d of %d", m.line, lines)
			}
		}
		for _, err := range faults {
			if fault, ok := err.(*faultError); ok && (fault.line < 1 || fault.line > lines+1) {
				t.Errorf("%v: line %d of %d", err, fault.line, lines)
			}
		}
	})
}

func TestSplitDocumentsKeepsLineNumbers(t *testing.T) {
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
			for _, d := range splitDocuments([]byte(c.text)) {
				lines = append(lines, d.line)
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

func TestNamesAreTakenFromOperands(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // names, or the start of the error
	}{
		{"", ""},
		{"flags", "flags"},
		{"cm/flags", "flags"},
		{"cm flags", "flags"},
		{"configmap flags limits", "flags limits"},
		{"configmaps", ""},
		{"cm cm", "cm"},
		{"cm/a configmap/b c", "a b c"},
		{"deploy/x", `error: "deploy/x"`},
		{"cm/", `error: "cm/"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			names, err := parseNames(strings.Fields(c.args))
			got := strings.Join(names, " ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
