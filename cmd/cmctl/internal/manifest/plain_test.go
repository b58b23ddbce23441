package manifest

import (
	"reflect"
	"testing"
)

// plainTexts are read the short way.
var plainTexts = []string{
	"a: b\n",
	"---\na: b\n",
	"\n\n# c\na: b\n\n  # c\nb: c\n",
	"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  labels: {app: web, tier: \"1\"}\ndata:\n  a: \"1\"\n  b: 'x y'\n  c: |\n    k = v\n\n      deep # no comment\n  d: |-\n    last\n\n\n  # c\n  e: http://host:80/p\n",
	"a: |\n  x\n\n# c\nb: |-\n    y: z\n  # c\n\n",
	"a:\n     b:\n      c: d, e (f)\ng: {}\n",
	"a: \"# - & * ! | > % @ : ü\"\nb: 'true'\nimage: host:5000/a/b@sha256:0\n",
	"a: |\n  - x\n  ---\n  tab\there ü\n",
}

// otherTexts are left to the parsers.
var otherTexts = []string{
	"", "a", "a: b", "a: 1\n", "a: yes\n", "a: Null\n", "y: a\n", "a: b\na: c\n", "a: b # c\n", "a: b \n", "a: b\n  c\n", "- a\n",
	"a: [b]\n", "a:\n- b\n", "a:\nb: c\n", "a:b\n", "a: b: c\n", "a: 'it''s'\n", "a: \"\\n\"\n", "a: >\n  b\n", "a: |+\n  b\n", "a: |2\n  b\n",
	"a: |\n\n  b\n", "a: |\n  b\n   \n", "a: |\n\tb\n", "a: |\nb: c\n", "a: |\n   b\n  c\n", "a: &x b\n", "a: *x\n", "<<: {a: b}\n", "a: {b: {c: d}}\n",
	"a: {b: c,d: e}\n", "a: {b: c, }\n", "a: {b}\n", " ---\na: b\n", "a: {b,: c}\n", "a: \u2028\n", "a: \"\u2028\"\n", "a: b\r\n", "%YAML 1.1\n---\na: b\n", "a: b\n---\nc: d\n", "a: b\n...\n",
	"a: \"b\n", "a: 'b\" c'\n", "\ta: b\n", " a: b\n", "  a: b\nc: d\n", "a:\n  b: c\n d: e\n", "a:\n b:\n  c:\n   d:\n    e:\n     f:\n      g:\n       h:\n        i: j\n",
}

func TestPlainTextsAreReadTheShortWay(t *testing.T) {
	for _, text := range plainTexts {
		if _, ok := parsePlain([]byte(text)); !ok {
			t.Errorf("not read:\n%s", text)
		}
		sameAsParsers(t, []byte(text))
	}
	for _, text := range otherTexts {
		if doc, ok := parsePlain([]byte(text)); ok {
			t.Errorf("read as %v:\n%s", doc, text)
		}
	}
}

// What is read the short way is what the parsers read.
func FuzzPlain(f *testing.F) {
	for _, text := range append(plainTexts, otherTexts...) {
		f.Add([]byte(text))
	}
	f.Fuzz(sameAsParsers)
}

func sameAsParsers(t *testing.T, text []byte) {
	doc, ok := parsePlain(text)
	if !ok {
		return
	}
	want, err := parseAnyYAML(text)
	if err != nil || !reflect.DeepEqual(doc, want) {
		t.Errorf("%q\nis read as %v\nand by the parsers as %v, %v", text, doc, want, err)
	}
}
