package fromfiles

import (
	"bytes"
	"unicode/utf8"
)

// encodingOf guesses the encoding of text that is not meant to be UTF-8, empty if
// it doesn't look like text in another one.
func encodingOf(b []byte) string {
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
