package main

import (
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
