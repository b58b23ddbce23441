package render

import (
	"bytes"
	"iter"
)

// The functions here walk over JSON that encoding/json has made compact, and
// look at no more of it than they need: what a large value holds is skipped and
// not decoded. On other bytes they stop early, but don't panic.

// members are the names, with their quotes and escapes, and the values of an
// object. It has none if it is no object.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if len(object) == 0 || object[0] != '{' {
			return
		}
		rest := object
		for len(rest) > 0 && (rest[0] == '{' || rest[0] == ',') {
			name := rest[1 : 1+stringEnd(rest[1:])]
			rest = rest[1+len(name):]
			if len(name) == 0 || len(rest) == 0 || rest[0] != ':' {
				return
			}
			value := rest[1 : 1+valueEnd(rest[1:])]
			rest = rest[1+len(value):]
			if len(value) == 0 || !yield(name, value) {
				return
			}
		}
	}
}

// member is a value of an object by its name, which has no character that JSON
// escapes; nil if there is none.
func member(object []byte, name string) []byte {
	for n, value := range members(object) {
		if len(n) == len(name)+2 && string(n[1:len(n)-1]) == name {
			return value
		}
	}
	return nil
}

// HeadLength is the length of the beginning of an encoded object that ends with its
// metadata, which come first; 0 if there are none.
func HeadLength(value []byte) int {
	for name, meta := range members(value) {
		if string(name) != `"metadata"` {
			break
		}
		return len(`{"metadata":`) + len(meta)
	}
	return 0
}

// count is how many members an object has.
func count(object []byte) int {
	n := 0
	for range members(object) {
		n++
	}
	return n
}

// stringEnd is where the string that text begins with ends; 0 if it begins with
// none.
func stringEnd(text []byte) int {
	if len(text) == 0 || text[0] != '"' {
		return 0
	}
	for from := 1; ; {
		quote := bytes.IndexByte(text[from:], '"')
		if quote < 0 {
			return 0
		}
		quote += from
		escapes := 0
		for quote-escapes > from && text[quote-escapes-1] == '\\' {
			escapes++
		}
		if from = quote + 1; escapes%2 == 0 {
			return from
		}
	}
}

// valueEnd is where the value that text begins with ends; 0 if it begins with
// none.
func valueEnd(text []byte) int {
	depth := 0
	for at := 0; at < len(text); {
		switch text[at] {
		case '"':
			length := stringEnd(text[at:])
			if length == 0 {
				return 0
			}
			at += length
		case '{', '[':
			depth++
			at++
		case '}', ']':
			if depth == 0 {
				return 0
			}
			depth--
			at++
		case ',', ':':
			if depth == 0 {
				return 0
			}
			at++
		default:
			at += literalEnd(text[at:])
		}
		if depth == 0 {
			return at
		}
	}
	return 0
}

// literalEnd is where a number, true, false or null ends.
func literalEnd(text []byte) int {
	if end := bytes.IndexAny(text, ",:{}[]\""); end >= 0 {
		return end
	}
	return len(text)
}
