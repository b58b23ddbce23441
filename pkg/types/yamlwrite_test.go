package types_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"

	"example.com/cmctl/pkg/types"
)

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readable(t testing.TB, v any) string {
	t.Helper()
	text, err := types.JSONToReadableYAML(asJSON(t, v))
	if err != nil {
		t.Fatalf("%.200q: %v", v, err)
	}
	return string(text)
}

func TestTextOfSeveralLinesIsALiteralBlock(t *testing.T) {
	for value, want := range map[string]string{
		"a\nb\n":                         "|\n  a\n  b\n",
		"a\nb":                           "|-\n  a\n  b\n",
		"a\n\n\n":                        "|+\n  a\n\n\n",
		"a\n\nb\n":                       "|\n  a\n\n  b\n",
		"key: v \n\tindented\nend":       "|-\n  key: v \n  \tindented\n  end\n",
		"  lead\nmore\n":                 "|2\n    lead\n  more\n",
		"\ttab\nmore":                    "|2-\n  \ttab\n  more\n",
		"\n\na":                          "|2-\n\n\n  a\n",
		"a\n   ":                         "|-\n  a\n     \n",
		"a\n \t \n\n":                    "|+\n  a\n   \t \n\n",
		"\n":                             "|2+\n\n",
		"---\na: b\n...\n":               "|\n  ---\n  a: b\n  ...\n",
		"#!/bin/sh\n# keep\n":            "|\n  #!/bin/sh\n  # keep\n",
		"\U0001f600\n\u00e9\n":           "|\n  \U0001f600\n  \u00e9\n",
		strings.Repeat("w ", 300) + "\n": "|\n  " + strings.Repeat("w ", 300) + "\n",
	} {
		if got := readable(t, map[string]string{"k": value}); got != "k: "+want {
			t.Errorf("%q became\n%s", value, got)
		}
	}
}

func TestWhatYAMLCantShowIsInQuotesAndSaysWhy(t *testing.T) {
	for value, want := range map[string]string{
		"a\r\nb\r\n": "# in quotes because of a carriage return (\\r) on line 1 of the value\nk: \"a\\r\\nb\\r\\n\"\n",
		"a\nb\x01\n": "# in quotes because of the control character U+0001 on line 2 of the value\nk: \"a\\nb\\x01\\n\"\n",
		"\u2028":     "# in quotes because of U+2028, which YAML takes for a line break, on line 1 of the value\nk: \"\\L\"\n",
		"\ufeffa\nb": "# in quotes because of a byte order mark (U+FEFF) on line 1 of the value\nk: \"\\uFEFFa\\nb\"\n",
		"\x1b[0m":    "# in quotes because of an escape character (\\e) on line 1 of the value\nk: \"\\e[0m\"\n",
		"\x7f\uffff": "# in quotes because of the control character U+007F on line 1 of the value\nk: \"\\x7F\\uFFFF\"\n",
	} {
		got := readable(t, map[string]string{"k": value})
		if got != want {
			t.Errorf("%q became\n%s", value, got)
		}
	}
}

func TestNoLineIsFolded(t *testing.T) {
	long := `{"a":"` + strings.Repeat("many words: # and signs, ", 40) + `"}`
	for _, value := range []string{long, strings.Repeat("plain words ", 60) + "end", strings.Repeat("tab\there ", 60)} {
		if got := readable(t, map[string]string{"k": value}); strings.Count(got, "\n") != 1 {
			t.Errorf("%q became\n%s", value, got)
		}
	}
}

// Objects look as kubectl shows them, whose library this is.
func TestOrdinaryObjectsLookAsBefore(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"v1","data":{"a":"1","b":"yes","mode":"blue","path":"/a/b","app.yaml":"a: b\nc: d\n","x":"a\nb"},
		  "kind":"ConfigMap","metadata":{"name":"flags","namespace":"default","labels":{"tier":"web"},"resourceVersion":"12",
		  "uid":"5d1f9d33-8a3c-4a3f-a6a2-0f3b2d1a8c11","creationTimestamp":"2026-11-30T10:00:00Z",
		  "finalizers":["a/b","c"],"ownerReferences":[{"kind":"A","name":"b","controller":true}],
		  "managedFields":[{"manager":"m","fieldsV1":{"f:data":{".":{},"f:a":{}}},"time":"2026-11-30T10:00:00Z"}]}}`,
		`{"items":[],"kind":"List","metadata":{}}`,
		`{"items":[{"a":"b","c":["d",["e",["f"]],{"g":{}}]},[],"s"],"n":[1,2.5,true,null]}`,
		`{"key10":"a","key9":"b","Key1":"c","key01":"d","key1":"e","key.1":"f","key-1":"g","_a":"h","a_":"i","a1b":"j","a1a":"k","a":"l","10":"m","9":"n"}`,
		`"text"`, `"a\nb\n"`, `[]`, `{}`, `null`, `12`,
	} {
		want, err := yaml.JSONToYAML([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := types.JSONToReadableYAML([]byte(text))
		if err != nil || string(got) != string(want) {
			t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
		}
	}
}

// Kubernetes' own order goes in circles where letters meet digits (1a, 9, 10,
// 1a), and then prints the keys in another order each time.
func TestKeysHaveOneOrder(t *testing.T) {
	keys := []string{"", "-", ".", "_a", "0", "00", "1", "1a", "01", "9", "10", "010", "A1", "a", "a.b", "a1", "a1b", "a9", "a10", "ab"}
	for i, first := range keys {
		for _, second := range keys[i+1:] {
			if got := readable(t, map[string]int{first: 1, second: 2}); !strings.Contains(got, ": 1\n") || !strings.HasSuffix(got, ": 2\n") {
				t.Errorf("%q does not come before %q", first, second)
			}
		}
	}
}

// A line of text is plain or in quotes as Kubernetes' library has it. It folds
// long ones, and knows no character beyond the first 65536.
func FuzzALineLooksAsBefore(f *testing.F) {
	for _, seed := range []string{
		"", " ", "a", "yes", "0755", "1e3", "~", "null", "---", "--- a", "...", "- a", "-a", "-", "?", "? a", "?a", ":a", ": a", "a:", "a: b", "a:b",
		"a #b", "a#b", "#a", "'a'", "a'b", "\"a\"", "%a", "@a", "`a", "!a", "&a", "*a", "[a]", "{a}", "a, b", "a]", "|", ">", "=", "<<", "2001-01-01",
		"2001-01-01T10:00:00Z", "2001-1-1 10:00:00", "1:30", "190:20:30", "0x1F", "0b11", "1_000", ".inf", "-.INF", ".NaN", "+1", "+.5", ".", "..", "..a", "y", "N", "On", "oFF",
		" a", "a ", "a\tb", "\ta", "a\\b", "a  b", "é", "a\u00a0b", "\ufffd", "0o17", "1.", "1.2.3", "1e", "0_", "12e03", "-0", "+", "0b2", "09", "1__2", "_1", "-_1", "0x", "0x_1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 60 || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) || line == "<<" || line == "=" {
			t.Skip() // as a key, << would be read as something else, and = by some parsers
		}
		for _, value := range []any{map[string]any{"k": line}, map[string]any{line: "v"}, []any{line}} {
			want, err := yamlv2.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			// What only resembles a date may be in any quotes.
			if got := readable(t, value); got != string(want) && !almostDate.MatchString(line) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// YAML 1.1 has a type for it, which some parsers know and can't read.
func TestAnEqualsSignAloneIsQuoted(t *testing.T) {
	if got, want := readable(t, map[string]any{"k": "=", "l": "=="}), "k: \"=\"\nl: ==\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var almostDate = regexp.MustCompile(`^\d{4}-\d`)

// Whatever a value holds, printing and parsing gives it back, wherever in a
// document it stands.
func FuzzYAMLSaysExactlyTheJSON(f *testing.F) {
	for _, seed := range []string{
		"", " ", "\n", "\n\n", " \n", "\n ", "\t\n", "a\n", "a\n\n", "a\n ", "a \n", "\ta\n", "  a\nb", "\n  a\nb\n", "a\r\nb", "\r", "\x00", "\u0085\n", "\u2028\n", "\ufeff\n",
		"---\n", "...\n", "--- a\nb", "# a\nb", "%YAML 1.1\n", "- a\n- b\n", "a: b\n  c\n", "a\n#\n", "\U0001f600\n", "\ufffd\n", "\uffff\n", "\x7f\n", "'\n\"", "\\\n", " # \n", "\n#", "\n---\n",
		"key: v \n\tindented\nend", "a\n\t\n", "\n\t", "a\n\n \n\n", "|\n", ">-\n", "<<", "=", "yes",
	} {
		f.Add(seed, "key")
		f.Add("x", seed)
	}
	f.Fuzz(func(t *testing.T, value, key string) {
		if !utf8.ValidString(value) || !utf8.ValidString(key) {
			t.Skip() // JSON has no such text
		}
		for _, v := range []any{
			value,
			[]any{value, []any{value}, map[string]any{"k": value, "l": []any{value, value}}},
			map[string]any{"a": map[string]any{key: value, "z": "x"}, key + ".": value, "z" + key: map[string]any{"k": []any{value}}},
		} {
			text := readable(t, v)
			back, err := types.YAMLToJSON([]byte(text))
			if err != nil || string(canonical(t, back)) != string(canonical(t, asJSON(t, v))) {
				t.Errorf("%q became\n%s\nwhich is read as %s, %v", v, text, back, err)
			}
		}
		isBlock := strings.HasPrefix(readable(t, map[string]string{"k": value}), "k: |")
		if isBlock != (strings.Contains(value, "\n") && !strings.ContainsFunc(value, foreign)) {
			t.Errorf("%q is in a block: %t", value, isBlock)
		}
	})
}

// canonical is JSON as Go writes it.
func canonical(t *testing.T, text []byte) []byte {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return asJSON(t, v)
}

func foreign(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || isC1(r) || strings.ContainsRune("\u2028\u2029\ufeff\ufffe\uffff", r)
}

func TestNumbersAreWrittenAsTheyCame(t *testing.T) {
	text := `{"a":9007199254740993,"b":18446744073709551616,"c":1.50,"d":-0,"e":1e3}`
	got, err := types.JSONToReadableYAML([]byte(text))
	if want := "a: 9007199254740993\nb: 18446744073709551616\nc: 1.50\nd: -0\ne: 1e3\n"; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := types.JSONToReadableYAML([]byte(`{"a":1e999}`)); err == nil {
		t.Errorf("a number that no parser can hold became %s", got)
	}
}

func BenchmarkReadableYAML(b *testing.B) {
	line := "some: configuration # with a comment and 60 bytes of text.\n"
	for name, value := range map[string]string{"block": strings.Repeat(line, 1<<20/len(line)), "quoted": strings.Repeat("line\r\n", 1<<20/6), "line": strings.Repeat("x ", 1<<19)} {
		text := asJSON(b, map[string]any{"kind": "ConfigMap", "data": map[string]any{"k": value}})
		b.Run(fmt.Sprintf("1MiB-%s", name), func(b *testing.B) {
			for b.Loop() {
				if _, err := types.JSONToReadableYAML(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
