package types_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"example.com/cmctl/pkg/types"
)

func TestYAMLToJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       `null`,
		"# a comment\n":                          `null`,
		"---\n":                                  `null`,
		"a: b":                                   `{"a":"b"}`,
		"a: b\n---\n":                            `{"a":"b"}`,
		"a: b\n...\n# the end\n":                 `{"a":"b"}`,
		"%YAML 1.1\n---\na: b\n":                 `{"a":"b"}`,
		"\ufeffa: b":                             `{"a":"b"}`,
		"a: |\n  x\r\n  y\r\n":                   `{"a":"x\ny\n"}`,
		"'yes': 1\n\"0755\": 2":                  `{"0755":2,"yes":1}`,
		"!!str yes: a":                           `{"yes":"a"}`,
		"yesterday: 1\n0a: 2\n-x: 3\n---: 4":     `{"---":4,"-x":3,"0a":2,"yesterday":1}`,
		"2001-01-01: a\n1:30: b":                 `{"1:30":"b","2001-01-01":"a"}`,
		"on-call: a\ntrue.txt: b":                `{"on-call":"a","true.txt":"b"}`,
		"b: &x {a: b}\nc:\n  <<: *x\n  d: e":     `{"b":{"a":"b"},"c":{"a":"b","d":"e"}}`,
		"a: &k key\nb:\n  *k : v":                `{"a":"key","b":{"key":"v"}}`,
		"a: 'x\u2028y'":                          `{"a":"x\u2028y"}`,
		"a: 'x\u2028y'\nb: C:\\Logs\nc: \"\\L\"": `{"a":"x\u2028y","b":"C:\\Logs","c":"\u2028"}`,
		"a: \"\\L\\N\"":                          `{"a":"` + "\\u2028\u0085" + `"}`,
		"a: yes\nb: 010\nc: 1_0\nd: ~":           `{"a":true,"b":8,"c":10,"d":null}`,
	} {
		got, err := types.YAMLToJSON([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestYAMLToJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\n---\nc: d":           "line 3: another YAML document",
		"---\n---\na: b":            "line 3: another YAML document",
		"{a: b}\n{c: d}":            "line 2: the YAML document has ended",
		"{a: b}\ndata: x":           "line 2: the YAML document has ended",
		"{\"a\": 1} garbage":        "line 1: the YAML document has ended",
		"a: b\n...\nc: d":           "line 3: the YAML document has ended",
		"a: b\r---\rc: d":           "line 1: U+000D",
		"a: b\n# x\u0085---\u0085c": "line 2: U+0085",
		"a: b\n# x\u2028c: d":       "line 2: U+2028",
		"a: b\u2028c: d":            "line 1: U+2028",
		"a: b\u2029c: \"\\P\"":      "line 1: U+2029",
		"a: \"\x07\"":               "line 1: control character U+0007",
		"a: 1\nb: \xe9":             "line 2: byte 0xe9",
		"\xff\xfea\x00":             "line 1: byte 0xff",
		"a: \"\\ud800\"":            "line 1: ",
		"a:\n  yes: 1":              `line 2: key yes is not a string in YAML; put it in quotes: "yes"`,
		"- {no: 1}":                 "line 1: key no",
		"on: 1":                     "line 1: key on", "off: 1": "line 1: key off",
		"y: 1": "line 1: key y", "n: 1": "line 1: key n", "true: 1": "line 1: key true", "null: 1": "line 1: key null",
		"0755: 1": "line 1: key 0755", "1.10: 1": "line 1: key 1.10", "0x10: 1": "line 1: key 0x10",
		"1_000: 1": "line 1: key 1_000", "2e3: 1": "line 1: key 2e3", "~: 1": "line 1: key ~", ".inf: 1": "line 1: key .inf",
		"-.Inf: 1": "line 1: key -.Inf", ".nan: 1": "line 1: key .nan", "0b11: 1": "line 1: key 0b11", "? ": "line 1: a key is missing",
		"a: &k 1\nb:\n  *k : v": "line 3: key 1",
		"!!int '3': a":          "line 1: a key must be a string",
		"? [a]\n: b":            "line 1: a key must be a string",
		"a: 1\na: 2":            `line 2: key "a" already set`,
		"a: !!binary aGk=":      "line 1: tag !!binary",
		"%TAG ! tag:yaml.org,2002:\n---\na: !binary aGk=": "line 3: tag !!binary",
		"a: !vault x":      "line 1: tag !vault",
		"a: *b":            "unknown anchor",
		"a: &a [*a]":       "anchor 'a' value contains itself",
		"[1,2":             "line 1: did not find expected ',' or ']'",
		"a: b\nb: [\nc: d": "line 2: did not find expected ',' or ']'",
		"a: b\n  c: d":     "line 2: mapping values are not allowed",
		"a:\n\t b":         "line 2: found character that cannot start",
	} {
		got, err := types.YAMLToJSON([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
}

// A small text may not become a large object, nor exhaust the stack.
func TestYAMLToJSONIsBounded(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		n, m := string(rune('0'+i)), string(rune('1'+i))
		bomb += "a" + m + ": &a" + m + " [*a" + strings.Repeat(n+",*a", 8) + n + "]\n"
	}
	for name, text := range map[string]string{"bomb": bomb, "depth": strings.Repeat("[", 200_000)} {
		if got, err := types.YAMLToJSON([]byte(text)); err == nil {
			t.Errorf("%s: got %d bytes", name, len(got))
		}
	}
}

// What is accepted is whole: valid JSON that means what Kubernetes' library
// makes of it, with no character that only a replacement put there. And any
// strings that are written as YAML are read back.
func FuzzYAMLToJSON(f *testing.F) {
	for _, seed := range []string{
		"a: b", "{a: b}\n{c: d}", "yes: 1", "a: |\n  x\n", "b: &x {a: b}\nc: {<<: *x}", "a: 'x\u2028y'", "a: !!binary aGk=",
		"? a\n: b", "--- >-\n a\n b\n...", "a: \"\\ud800\"", "a:\rb", "- - a\n  - b", "a: &a [*a]", "\ufeff#\n",
		"x  y\n\tz", " lead", "trail \n", "\u0085", "key: with colon", "a\u2028 b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4<<10 {
			return
		}
		got, err := types.YAMLToJSON(text)
		if err == nil {
			if !json.Valid(got) || !utf8.Valid(got) {
				t.Errorf("%q became %q", text, got)
			}
			if strings.Contains(string(got), "\ufffd") != strings.Contains(strings.ToLower(string(text)), "fffd") &&
				!strings.Contains(string(text), "\ufffd") {
				t.Errorf("%q became %q", text, got)
			}
			want, err := yaml.YAMLToJSON(text)
			if err != nil || string(want) != string(got) {
				t.Errorf("%q became %q, and %q without checks: %v", text, got, want, err)
			}
		}
		if !utf8.Valid(text) || strings.ContainsAny(string(text), "\x7f\ufeff\ufffe\uffff") || strings.ContainsFunc(string(text), isC1) {
			return
		}
		asJSON, err := json.Marshal(map[string]string{"k": string(text)})
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.JSONToYAML(asJSON)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := types.YAMLToJSON(asYAML); err != nil || string(back) != string(asJSON) {
			t.Errorf("%q is written as %q and read as %q: %v", text, asYAML, back, err)
		}
	})
}

func isC1(r rune) bool { return r >= 0x80 && r < 0xa0 }

// What JSON can hold, YAML can show: long keys, and characters that only YAML
// takes for line breaks.
func TestJSONToYAMLTakesAnyJSON(t *testing.T) {
	for _, text := range []string{
		`{"` + strings.Repeat("k", 2000) + `":"v"}`,
		`{"f:é` + "\u2028\u0085\ufeff" + `":{}}`,
		`{"a":9007199254740993,"b":18446744073709551615,"c":1.5,"d":null,"e":true,"f":"yes","g":"1"}`,
	} {
		out, err := types.JSONToYAML([]byte(text))
		if err != nil {
			t.Errorf("%.40s: %v", text, err)
			continue
		}
		back, err := types.YAMLToJSON(out)
		if err != nil {
			t.Errorf("%.40s became\n%s: %v", text, out, err)
			continue
		}
		var want, got any
		if json.Unmarshal([]byte(text), &want) != nil || json.Unmarshal(back, &got) != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%.40s came back as %.80s", text, back)
		}
	}
}
