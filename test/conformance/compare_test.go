package conformance

import (
	"slices"
	"strings"
	"testing"
)

func TestCompareFindsEveryDifference(t *testing.T) {
	for _, c := range []struct {
		name, want, got string
		found           []string
	}{
		{"nothing", `{"a": [1, "x", null, true], "b": {}}`, `{"b": {}, "a": [1, "x", null, true]}`, nil},
		{"another value", `{"a": {"b": ["x"]}}`, `{"a": {"b": ["y"]}}`, []string{`a.b[0]: want "x", got "y"`}},
		{"a version that changed", `{"v": "<rv1>"}`, `{"v": "<rv2>"}`, []string{`v: want "<rv1>", got "<rv2>"`}},
		{"a missing header", `{"headers": {"Warning": ["299"]}}`, `{}`, []string{`headers: want {"Warning": ["299"]}, got (absent)`}},
		{"a header too many", `{}`, `{"headers": {}}`, []string{`headers: want (absent), got {}`}},
		{"null is not absent", `{"a": null}`, `{}`, []string{`a: want null, got (absent)`}},
		{"null is not empty", `{"a": null}`, `{"a": ""}`, []string{`a: want null, got ""`}},
		{"an object is not an array", `{"a": {}}`, `{"a": []}`, []string{`a: want {}, got []`}},
		{"a number is not a text", `[1]`, `["1"]`, []string{`[0]: want 1, got "1"`}},
		{"1 is not 1.0", `[1]`, `[1.0]`, []string{`[0]: want 1, got 1.0`}},
		{"the order of items", `["a", "b"]`, `["b", "a"]`, []string{`[0]: want "a", got "b"`, `[1]: want "b", got "a"`}},
		{"an item too few", `["a", "b"]`, `["a"]`, []string{`[1]: want "b", got (absent)`}},
		{"an item too many", `["a"]`, `["a", null]`, []string{`[1]: want (absent), got null`}},
		{"the whole answer", `"a"`, `{}`, []string{`answer: want "a", got {}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var found []string
			for _, m := range Compare(mustDecode(t, c.want), mustDecode(t, c.got)) {
				found = append(found, m.String())
			}
			if !slices.Equal(found, c.found) {
				t.Errorf("got %q, want %q", found, c.found)
			}
		})
	}
}

func TestMismatchOfLongValuesShowsTheirEnds(t *testing.T) {
	m := Compare("first"+strings.Repeat("é", 1000)+"last", "")[0]
	if len(m.Want) > 600 || !strings.HasPrefix(m.Want, `"first`) || !strings.HasSuffix(m.Want, `last"`) {
		t.Errorf("got %s", m.Want)
	}
}
