package types

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
)

// readJSON reads an object of JSON in UTF-8, several times as fast as
// encoding/json reads what it knows nothing about. Where ok is false the text may
// be good or bad: fractions, surrogates and whatever is odd are left to
// encoding/json, and so is to say what is wrong. Strings of the result share
// memory.
func readJSON(text string) (object map[string]any, ok bool) {
	j := jsonText{rest: text}
	v, ok := j.value()
	object, isObject := v.(map[string]any)
	return object, ok && isObject && j.peek() == 0 && j.rest == ""
}

// jsonText is what is left to read.
type jsonText struct {
	rest  string
	depth int // lists and objects around it
}

const maxJSONDepth = 100

// peek is the byte after white space, 0 at the end.
func (j *jsonText) peek() byte {
	for i := range len(j.rest) {
		switch c := j.rest[i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			j.rest = j.rest[i:]
			return c
		}
	}
	j.rest = ""
	return 0
}

// skip goes over that byte, if it comes next.
func (j *jsonText) skip(c byte) bool {
	if j.peek() != c || c == 0 {
		return false
	}
	j.rest = j.rest[1:]
	return true
}

func (j *jsonText) value() (v any, ok bool) {
	switch c := j.peek(); {
	case c == '"':
		return j.text()
	case c == '{', c == '[':
		if j.depth++; j.depth > maxJSONDepth {
			return nil, false
		}
		defer func() { j.depth-- }()
		if c == '{' {
			return j.object()
		}
		return j.list()
	case c == '-', c >= '0' && c <= '9':
		return j.integer()
	}
	for word, v := range jsonWords {
		if rest, ok := strings.CutPrefix(j.rest, word); ok {
			j.rest = rest
			return v, true
		}
	}
	return nil, false
}

var jsonWords = map[string]any{"true": true, "false": false, "null": nil}

func (j *jsonText) object() (any, bool) {
	m := map[string]any{}
	j.skip('{')
	if j.skip('}') {
		return m, true
	}
	for {
		if j.peek() != '"' {
			return nil, false
		}
		key, ok := j.text()
		if !ok || !j.skip(':') {
			return nil, false
		}
		if m[key], ok = j.value(); !ok {
			return nil, false
		}
		if !j.skip(',') {
			return m, j.skip('}')
		}
	}
}

func (j *jsonText) list() (any, bool) {
	list := []any{}
	j.skip('[')
	if j.skip(']') {
		return list, true
	}
	for {
		v, ok := j.value()
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if !j.skip(',') {
			return list, j.skip(']')
		}
	}
}

// integer reads a number without a fraction.
func (j *jsonText) integer() (any, bool) {
	digits := strings.TrimPrefix(j.rest, "-")
	rest := strings.TrimLeft(digits, "0123456789")
	n := len(digits) - len(rest)
	if n == 0 || n > 1 && digits[0] == '0' || rest != "" && strings.IndexByte(".eE", rest[0]) >= 0 {
		return nil, false
	}
	number := j.rest[:len(j.rest)-len(rest)]
	j.rest = rest
	return json.Number(number), true
}

// text reads a string, whose opening quote comes next.
func (j *jsonText) text() (string, bool) {
	s := j.rest[1:]
	var b strings.Builder // of a string with escapes
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			j.rest = s[i+1:]
			if b.Len() == 0 {
				return s[:i], true
			}
			b.WriteString(s[:i])
			return b.String(), true
		case c < ' ':
			return "", false
		case c == '\\':
			r, n := jsonEscape(s[i:])
			if n == 0 {
				return "", false
			}
			b.WriteString(s[:i])
			b.WriteRune(r)
			s, i = s[i+n:], -1
		}
	}
	return "", false
}

// jsonEscape is what the escape stands for with which s begins, and its length; 0
// if it is none, or half of a pair.
func jsonEscape(s string) (rune, int) {
	if r, ok := unit(s, 0); ok && !utf16.IsSurrogate(r) {
		return r, 6
	}
	const letters, meaning = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if len(s) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(letters, s[1]); i >= 0 {
		return rune(meaning[i]), 2
	}
	return 0, 0
}
