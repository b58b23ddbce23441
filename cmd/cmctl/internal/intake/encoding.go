package intake

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// CheckText refuses what is no UTF-8 text, which YAML, JSON and env files are made
// of: with the first byte that isn't, and the encoding that it looks like. A
// person's tools often write UTF-16 where they aren't told otherwise.
func CheckText(name string, b []byte) error {
	guess := Encoding(b)
	bad := bytes.IndexByte(b, 0)
	switch {
	case !utf8.Valid(b):
		bad = len(validStart(b))
	case guess == "":
		return nil
	}
	if guess != "" {
		guess = " (it looks like " + guess + "; save it as UTF-8)"
	}
	return fmt.Errorf("%s is not UTF-8 text: byte %d%s", name, bad, guess)
}

// validStart is what comes before the first byte that is not UTF-8.
func validStart(b []byte) []byte {
	at := 0
	for at < len(b) {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return b[:at]
}

// Encoding guesses the encoding of text that is not meant to be UTF-8, empty if it
// doesn't look like text in another one.
func Encoding(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return "UTF-16LE"
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return "UTF-16BE"
	case zeros(b, 1) && !zeros(b, 0):
		return "UTF-16LE"
	case zeros(b, 0) && !zeros(b, 1):
		return "UTF-16BE"
	case !utf8.Valid(b) && onlyLatin1(b):
		return "Latin-1"
	}
	return ""
}

// zeros tells whether nearly every other byte is zero, as in UTF-16 text of
// European languages.
func zeros(b []byte, from int) bool {
	if len(b) < 4 || len(b)%2 != 0 {
		return false
	}
	n := 0
	for i := from; i < len(b); i += 2 {
		if b[i] == 0 {
			n++
		}
	}
	return n*10 >= len(b)/2*9
}

// onlyLatin1 tells whether there are none but printable characters of ISO 8859-1,
// most of them ASCII.
func onlyLatin1(b []byte) bool {
	ascii := 0
	for _, c := range b {
		switch {
		case c >= 0xa0:
		case c >= ' ' && c < 0x7f, c == '\n', c == '\r', c == '\t':
			ascii++
		default:
			return false
		}
	}
	return ascii*2 > len(b)
}
