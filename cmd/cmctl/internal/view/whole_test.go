package view

import (
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

var formats = []string{"yaml", "json"}

// Whatever a value holds, the text that an editor shows says exactly that, and
// saving it untouched changes nothing.
func FuzzShowSaysExactlyWhatIsStored(f *testing.F) {
	for _, value := range []string{
		"", " ", "\n", "a", "yes", "0755", "1e3", "~", "null", "key: v \n\tindented\nend", "#!/bin/sh\n# keep\nrun\n",
		"---\na", "...\n", "a\r\nb\r\n", "\u0085", "\u2028x\u2029", "\ufeffbom", "tab\tin", "\x7f", "\x00", "\U0001f600", "'\"`", "%YAML 1.1", "- a\n- b", "a\n\n\n", "  lead\n more",
		noteBegin + "\nx\n" + noteEnd + "\n",
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
		for _, format := range formats {
			shown, err := Whole(format).Show(doc)
			if err != nil {
				t.Fatalf("%q can't be shown: %v", value, err)
			}
			if got := shown.Base.Fields()[types.Field{Section: "data", Key: key}]; got != value {
				t.Fatalf("stored %q, shown as\n%s\nwhich says %q", value, shown.Text, got)
			}
			read(t, Whole(format), shown, shown.Text)
		}
		shown, err := Key(key).Show(doc)
		if err != nil || string(shown.Text) != value {
			t.Fatalf("stored %q, shown as %q, %v", value, shown.Text, err)
		}
		if value != "" {
			read(t, Key(key), shown, shown.Text)
		}
	})
}

// read demands that a text changes nothing, also below a note.
func read(t *testing.T, v View, shown Shown, text []byte) {
	t.Helper()
	if v.Notes() {
		note, rest := SplitNote(append(Note([]string{"a\nb", "# c: \u0085\x00"}), text...))
		if string(rest) != string(text) || len(note) == 0 {
			t.Fatalf("without its note the text is %q, want %q", rest, text)
		}
	}
	tidy, _ := v.Tidy(text, text, shown.Base)
	got, faults := v.Read("draft", tidy, shown.Base)
	if len(faults) > 0 {
		t.Fatalf("%v in\n%s", faults, text)
	}
	if changes := types.Diff(shown.Base, got); len(changes) > 0 {
		t.Fatalf("%v is changed by\n%s", changes, text)
	}
}

// The refusal in Show is for what YAML can't hold; nothing that a ConfigMap may
// hold is refused.
func TestEveryTextIsShown(t *testing.T) {
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
		for _, format := range formats {
			if _, err := Whole(format).Show(doc); err != nil {
				t.Errorf("between %U and %U: %v", some[0], some[len(some)-1], err)
			}
		}
	}
}
