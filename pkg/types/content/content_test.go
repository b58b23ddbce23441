package content_test

import (
	"errors"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types/content"
)

func TestFormatOfGoesByTheEnding(t *testing.T) {
	for key, want := range map[string]content.Format{
		"a.yaml": content.YAML, "a.yml": content.YAML, "A.YAML": content.YAML, "a.b.json": content.JSON, "a.toml": content.TOML,
		"a.ini": content.INI, "a.properties": content.Properties, ".json": content.JSON,
		"json": "", "a.conf": "", "a.json.bak": "", "": "",
	} {
		if got := content.FormatOf(key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
}

func TestParseTellsWhatIsBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		format content.Format
		text   string
		want   string // the beginning of the error; empty if the text is sound
	}{
		{"blank", content.JSON, " \n", ""},
		{"a byte order mark", content.JSON, "\ufeff{}", ""},
		{"several documents", content.YAML, "a: 1\n---\na: 2\n", ""},
		{"comments alone", content.YAML, "# nothing\n", ""},
		{"anchors and merge keys", content.YAML, "a: &x {b: 1}\nc:\n  <<: *x\n", ""},
		{"keys that are no strings", content.YAML, "1: a\n? [x]\n: b\n", ""},
		{"a tab for indentation", content.YAML, "a:\n\tb: 1\n", "line 2: found character that cannot start any token"},
		{"a template", content.YAML, "a: 1\n{{ if .x }}\nb: 1\n{{ end }}\n", "line 2: "},
		{"a repeated key", content.YAML, "a: 1\nb: 1\na: 2\n", `line 3: key "a" is already set on line 1`},
		{"a repeated key below", content.YAML, "x:\n- a: 1\n  a: 2\n", `line 3: key "a" is already set on line 2`},
		{"a repeated key in another spelling", content.YAML, "1: a\n\"1\": b\n", `line 2: key "1" is already set on line 1`},
		{"a repeated key in the second document", content.YAML, "a: 1\n---\nb: 1\nb: 2\n", `line 4: key "b" is already set on line 3`},
		{"an anchor that is not there", content.YAML, "a: *x\n", "unknown anchor 'x' referenced"},
		{"aliases of aliases", content.YAML, bomb(), ""},
		{"deep", content.YAML, strings.Repeat("[", 100_000), "exceeded max depth of 10000"},

		{"any value", content.JSON, "[1, \"a\", null, true, {\"b\": {}}]\n", ""},
		{"a comma too many", content.JSON, "{\n\"a\": 1,\n}\n", "line 3: invalid character '}'"},
		{"a comment", content.JSON, "{\n# x\n\"a\": 1}\n", "line 2: invalid character '#' looking for beginning of object key string; JSON has no comments"},
		{"a comment after a value", content.JSON, "{\"a\": 1 // x\n}\n", "line 1: invalid character '/' after object key:value pair; JSON has no comments"},
		{"the end is missing", content.JSON, "{\n\"a\": [1\n", "line 2: unexpected end of JSON input"},
		{"two values", content.JSON, "{}\n{}\n", "line 2: invalid character '{' after top-level value"},
		{"a repeated key in an object", content.JSON, "{\"x\": [{\n\"a\": 1,\n\"a\": 2}]}\n", `line 3: key "a" is already set on line 2`},
		{"deep arrays", content.JSON, strings.Repeat("[", 100_000), "line 1: "},

		{"tables", content.TOML, "a = 1\n[b]\nc = 2024-01-01\n[[d]]\ne = nan\n[[d]]\ne = [1, 'x']\n", ""},
		{"a table twice", content.TOML, "[a]\nb = 1\n[a]\nc = 1\n", "line 3: "},
		{"a key twice", content.TOML, "a = 1\na = 2\n", "line 2: "},
		{"no value", content.TOML, "a = 1\nb =\n", "line 2: "},
		{"deep inline arrays", content.TOML, "a = " + strings.Repeat("[", 1_000_000), "the values lie too deep"},

		{"keys without end", content.TOML, strings.Repeat("a=1\n", 100_000), "it has more than 10000 keys"},

		{"sections", content.INI, "top = 1\n[a]\nb = 1\nc: 2\nd\n; x\n# y\n[a.b]\nb = 2 = 3\n[a]\ne =\n", ""},
		{"lists by their brackets", content.INI, "[php]\na[] = 1\na[] = 2\n", ""},
		{"indented keys", content.INI, "[user]\n\tname = x\n\temail = y\n", ""},
		{"values on more lines", content.INI, "[x]\nlist =\n    a\n    b\n\n    a\nnext = 1\n", ""},
		{"CRLF", content.INI, "[x]\r\na = 1\r\n", ""},
		{"a key twice in a section", content.INI, "[x]\na = 1\n[y]\na = 1\n[x]\na = 2\n", `line 6: key "a" is already set on line 2`},
		{"an open section", content.INI, "a = 1\n[x\n", "line 2: the section is not closed: ] is missing"},
		{"more after a section", content.INI, "[x] y\n", `line 1: after the section's ] there is more: "y"`},
		{"no key", content.INI, "[x]\n= 1\n", `line 2: a key is missing before "="`},

		{"properties", content.Properties, "a=1\nb: 2\nc 3\nd\n! x\n# y\ne=1\\\n  2\nf=${a}\n", ""},
		{"a backslash pair ends no line", content.Properties, "a=1\\\\\nb=2\n", ""},
		{"a property twice", content.Properties, "a=1\\\n2\nb=1\na:2\n", `line 4: key "a" is already set on line 1`},
		{"a broken escape", content.Properties, "a=1\nb=1\\\n \\u00zz\n", "line 2: invalid unicode literal"},

		{"no format", "", "x", `format "" is not known`},
	} {
		t.Run(string(c.format)+" "+c.name, func(t *testing.T) {
			tree, err := content.Parse(c.format, c.text)
			var fault *content.Error
			switch {
			case c.want == "" && (err != nil || tree == nil):
				t.Errorf("got %v", err)
			case c.want != "" && (!errors.As(err, &fault) || !strings.HasPrefix(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// bomb stands for a billion entries.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := range 9 {
		from, to := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + to + ": &a" + to + " [" + strings.Repeat("*a"+from+", ", 10) + "]\n")
	}
	return b.String()
}

func parse(t *testing.T, format content.Format, text string) *content.Tree {
	t.Helper()
	tree, err := content.Parse(format, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tree
}

func TestSameIsAboutWhatATextSays(t *testing.T) {
	for _, c := range []struct {
		format content.Format
		a, b   string
		same   bool
	}{
		{content.YAML, "a: 1\nb: 2\n", "# x\nb:   2\na: 1\n", true},
		{content.YAML, "a: 1\n", "a: \"1\"\n", false},
		{content.YAML, "a: x\n", "a: 'x'\n", true},
		{content.YAML, "a: &x 1\nb: *x\n", "a: &x 1\nb: 1\n", false},
		{content.YAML, "a: &x 1\nb: &x 2\nc: *x\n", "a: &x 1\nc: *x\nb: &x 2\n", false},
		{content.YAML, "[a, b]\n", "[b, a]\n", false},
		{content.YAML, "{0: a}\n", "[a]\n", false},
		{content.JSON, `{"a":1}`, `{ "a" : 1 }`, true},
		{content.JSON, `1`, `"1"`, false},
		{content.JSON, `true`, `"true"`, false},
		{content.JSON, `null`, `""`, false},
		{content.JSON, `9007199254740993`, `9007199254740992`, false},
		{content.TOML, "a.b = 1\n", "[a]\nb = 1\n", true},
		{content.TOML, "a = 1\n", "a = 1.0\n", false},
		{content.INI, "[x]\na=1\n", "[x]\n; y\na : 1\n", true},
		{content.INI, "[x]\na=\n", "[x]\na\n", false},
		{content.Properties, "a=1\n", "a : 1", true},
		{content.Properties, "a=1\n", "a=\\u0031\n", true},
	} {
		if got := content.Same(parse(t, c.format, c.a), parse(t, c.format, c.b)); got != c.same {
			t.Errorf("%s: %q and %q: %v", c.format, c.a, c.b, got)
		}
	}
}

func TestHoldsComparesPathByPath(t *testing.T) {
	for _, c := range []struct {
		name                       string
		base, mine, theirs, merged string
		holds, holdsMine           bool
	}{
		{"both changes", "{a: 1, b: 1}", "{a: 2, b: 1}", "{a: 1, b: 2}", "{a: 2, b: 2}", true, true},
		{"mine is lost", "{a: 1, b: 1}", "{a: 2, b: 1}", "{a: 1, b: 2}", "{a: 1, b: 2}", false, false},
		{"theirs is lost", "{a: 1, b: 1}", "{a: 2, b: 1}", "{a: 1, b: 2}", "{a: 2, b: 1}", false, true},
		{"more than both", "{a: 1, b: 1}", "{a: 2, b: 1}", "{a: 1, b: 2}", "{a: 2, b: 2, c: 1}", false, true},
		{"a removal stays one", "{a: 1, b: 1}", "{b: 1}", "{a: 1, b: 2}", "{b: 2}", true, true},
		{"a removal comes back", "{a: 1, b: 1}", "{b: 1}", "{a: 1, b: 2}", "{a: 1, b: 2}", false, false},
		{"deep inside", "{x: {a: 1, b: 1}}", "{x: {a: 2, b: 1}}", "{x: {a: 1, b: 2}}", "{x: {a: 2, b: 2}}", true, true},
		{"at another place", "{x: {a: 1}, y: {b: 1}}", "{x: {a: 1, n: 1}, y: {b: 1}}", "{x: {a: 1}, y: {b: 2}}", "{x: {a: 1}, y: {b: 2, n: 1}}", false, false},
		{"both alike", "{a: 1}", "{a: 2}", "{a: 2}", "{a: 2}", true, true},
		{"both differently", "{a: 1}", "{a: 2}", "{a: 3}", "{a: 2}", false, true},
		{"a list that both grow", "[1, 2]", "[1, 2, 3]", "[0, 2]", "[0, 2, 3]", true, true},
		{"a list that moves", "[1, 2]", "[0, 1, 2]", "[1, 3]", "[0, 1, 3]", false, false},
		{"a map becomes a list", "{a: 1}", "[a]", "{a: 1, b: 1}", "[a]", false, true},
		{"nothing changed", "{a: 1}", "{a: 1}", "{a: 1}", "{a: 1}", true, true},
		{"nobody changed it", "{a: 1}", "{a: 1}", "{a: 1}", "{a: 2}", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, mine, theirs, merged := parse(t, content.YAML, c.base), parse(t, content.YAML, c.mine), parse(t, content.YAML, c.theirs), parse(t, content.YAML, c.merged)
			if got := content.Holds(base, mine, theirs, merged); got != c.holds {
				t.Errorf("both sides: %v", got)
			}
			if got := content.Holds(base, theirs, mine, merged); got != c.holds {
				t.Errorf("both sides, the other way round: %v", got)
			}
			if got := content.HoldsOf(base, mine, merged); got != c.holdsMine {
				t.Errorf("my side: %v", got)
			}
		})
	}
}

// FuzzParse reads texts of anybody: no panic, no hanging, lines within the text,
// and the same answer twice.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: 1\nb: [\n", "{\"a\": {\"b\": [1, null]}}", "[a]\nb = 1\n[[c]]\n", "a=1\\\n2\n\\u0041=3", "k: &x [*x]\n", "[s]\n a\n  b = c\n", "\ufeff- ? x\n", bomb()} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []content.Format{content.YAML, content.JSON, content.TOML, content.INI, content.Properties} {
			tree, err := content.Parse(format, text)
			again, _ := content.Parse(format, text)
			var fault *content.Error
			switch {
			case err == nil && (!content.Same(tree, again) || !content.Holds(tree, tree, tree, again)):
				t.Errorf("%s: read again it says something else", format)
			case err != nil && !errors.As(err, &fault):
				t.Errorf("%s: %v is no *Error", format, err)
			case err != nil && (fault.Line < 0 || fault.Line > 1+strings.Count(text, "\n")):
				t.Errorf("%s: line %d of %d", format, fault.Line, 1+strings.Count(text, "\n"))
			}
		}
	})
}
