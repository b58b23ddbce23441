package types

import "testing"

// When a document is not read back as it is, each block is tried by itself, and
// those that are what they say stay blocks.
func TestAWriterThatChecksKeepsWhatIsReadBack(t *testing.T) {
	value := map[string]any{"a": "x \n\ty\n", "b": []any{"\n z", "line"}, "c": "r\r\n"}
	unchecked, checked := yamlWriter{}, yamlWriter{checked: true}
	unchecked.value(value)
	checked.value(value)
	if got, want := checked.out.String(), unchecked.out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSaysExactly(t *testing.T) {
	for text, want := range map[string]bool{
		"a: |\n  x\n":     true,
		"a: |-\n  x\n":    false,
		"a: x\nb: y\n":    false,
		"a: [x]\n":        false,
		"a: \"x\\n\"\n":   true,
		"a: |\n x\n  y\n": false,
		"a: [\n":          false,
	} {
		if got := saysExactly([]byte(text), map[string]any{"a": "x\n"}); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
