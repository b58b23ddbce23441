package manifest

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/pkg/types"
)

// parsePlain reads a YAML document of the plainest kind: maps in block form,
// with strings on one line or in literal blocks. There all parsers agree, and
// types.YAMLToJSON, which asks two of them, would give the same in twenty times
// the time. Of anything else ok is false, and says nothing: it may be good YAML.
func parsePlain(text []byte) (doc types.Document, ok bool) {
	if !bytes.HasSuffix(text, []byte("\n")) || !plainCharacters(text) {
		return nil, false
	}
	p := plainText{rest: string(text)}
	if p.next(); p.line == "---" && p.indent == 0 {
		p.next()
	}
	m, ok := p.block(0)
	return types.Document(m), ok && p.end
}

// plainCharacters is false for those that YAML, or one of its parsers, takes for
// more than what they are.
func plainCharacters(text []byte) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n', r == '\t', r >= ' ' && r < 0x7f:
		case r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff, r == utf8.RuneError && size == 1:
			return false
		}
		text = text[size:]
	}
	return true
}

// plainText goes through a text line by line.
type plainText struct {
	rest   string // what follows the line
	line   string // without its indentation; neither blank nor a comment
	indent int
	end    bool // there is no line any more
	depth  int  // maps around the line
}

// take is the next line as it is, without its end.
func (p *plainText) take() string {
	line, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest
	return line
}

// next goes to the next line that has something on it.
func (p *plainText) next() {
	for p.rest != "" {
		line := p.take()
		p.line = strings.TrimLeft(line, " ")
		p.indent = len(line) - len(p.line)
		if p.line != "" && p.line[0] != '#' {
			return
		}
	}
	p.end, p.indent, p.line = true, -1, ""
}

// maxPlainDepth is how many maps may be inside each other; a ConfigMap needs three.
const maxPlainDepth = 8

// block reads a map whose entries have that indentation.
func (p *plainText) block(indent int) (map[string]any, bool) {
	p.depth++
	defer func() { p.depth-- }()
	m := map[string]any{}
	for p.indent == indent {
		key, text, ok := strings.Cut(p.line, ":")
		if _, twice := m[key]; !ok || twice || p.depth > maxPlainDepth || !plainKey(key) {
			return nil, false
		}
		if m[key], ok = p.value(indent, text); !ok {
			return nil, false
		}
	}
	return m, len(m) > 0 && p.indent < indent
}

// value reads what stands after the colon of an entry, and goes to the line after
// it.
func (p *plainText) value(indent int, text string) (value any, ok bool) {
	switch text {
	case "":
		if p.next(); p.indent <= indent {
			return nil, false
		}
		return p.block(p.indent)
	case " |", " |-":
		return p.literal(indent, text == " |-")
	}
	if text[0] != ' ' {
		return nil, false
	}
	text = strings.TrimLeft(text, " ")
	if inner, isFlow := strings.CutPrefix(text, "{"); isFlow {
		value, ok = plainFlow(inner)
	} else {
		value, ok = plainScalar(text)
	}
	p.next()
	return value, ok
}

// literal reads a literal block, whose first line says how far it is indented.
// strip leaves out its last line end.
func (p *plainText) literal(indent int, strip bool) (string, bool) {
	first, _, _ := strings.Cut(p.rest, "\n")
	margin := len(first) - len(strings.TrimLeft(first, " "))
	if margin <= indent || margin == len(first) {
		return "", false
	}
	var b strings.Builder
	for p.rest != "" {
		line, _, _ := strings.Cut(p.rest, "\n")
		switch own := strings.TrimLeft(line, " "); {
		case line == "":
		case own == "" || own[0] == '\t':
			return "", false // blank lines of some width are where parsers differ
		case len(line)-len(own) < margin:
			p.next()
			return chomp(b.String(), strip), true
		default:
			line = line[margin:]
		}
		b.WriteString(line)
		b.WriteByte('\n')
		p.take()
	}
	p.next()
	return chomp(b.String(), strip), true
}

// chomp leaves one line end, or none.
func chomp(s string, strip bool) string {
	s = strings.TrimRight(s, "\n")
	if strip {
		return s
	}
	return s + "\n"
}

// plainFlow reads what follows the brace of a map on one line.
func plainFlow(text string) (map[string]any, bool) {
	m := map[string]any{}
	inner, ok := strings.CutSuffix(text, "}")
	if !ok || strings.ContainsAny(inner, "{}[]") {
		return nil, false
	}
	if inner == "" {
		return m, true
	}
	for entry := range strings.SplitSeq(inner, ", ") {
		key, text, ok := strings.Cut(entry, ": ")
		if _, twice := m[key]; !ok || twice || !plainKey(key) {
			return nil, false
		}
		if m[key], ok = plainScalar(text); !ok || strings.Contains(text, ",") {
			return nil, false
		}
	}
	return m, true
}

// plainKey tells a key without quotes that is a string.
func plainKey(key string) bool {
	return len(key) < 256 && plainWord(key) && !strings.ContainsAny(key, " ,()@=+")
}

// plainScalar reads a string on one line.
func plainScalar(text string) (string, bool) {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') {
		inner := text[1 : n-1]
		return inner, text[n-1] == text[0] && !strings.ContainsAny(inner, "\"'\\\t")
	}
	return text, plainWord(text)
}

// plainWord tells text that is a string without quotes: it begins with a letter,
// so that it is no number and no sign of YAML's, and is no word for anything else.
func plainWord(text string) bool {
	if text == "" || !letter(text[0]) || text[len(text)-1] == ' ' || slices.Contains(typedWords, strings.ToLower(text)) {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case letter(c), c >= '0' && c <= '9', strings.IndexByte(" ._/@=+-,()", c) >= 0:
		case c == ':' && i+1 < len(text) && text[i+1] != ' ': // as in an image or a URL
		default:
			return false
		}
	}
	return true
}

// typedWords are what YAML reads as booleans or null.
var typedWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
