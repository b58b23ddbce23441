package types

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// oneLine is text as a scalar on one line: plain where that is read as the same
// string, else in single quotes, else in double quotes.
func oneLine(s string) string {
	switch {
	case s == "":
		return `""`
	case strings.ContainsAny(s, "\n\t") || unshowable(s) >= 0:
		return doubleQuoted(s)
	case !plainString(s) || looksTyped.MatchString(s) || s == "<<" || s == "=":
		return doubleQuoted(s)
	case !plainSyntax(s):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return s
}

// looksTyped are the strings that YAML 1.1 reads as dates, or as numbers to the
// base of sixty.
var looksTyped = regexp.MustCompile(`^(\d{4}-\d{1,2}-\d{1,2}([Tt ].*)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)

// plainSyntax tells whether a line can stand without quotes as far as YAML's
// own signs go.
func plainSyntax(s string) bool {
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") ||
		s[0] == ' ' || s[len(s)-1] == ' ' || strings.ContainsRune("#,[]{}&*!|>'\"%@`", rune(s[0])) {
		return false
	}
	if strings.ContainsRune("-?:", rune(s[0])) && (len(s) == 1 || s[1] == ' ') {
		return false
	}
	return !strings.Contains(s, ": ") && !strings.HasSuffix(s, ":") && !strings.Contains(s, " #")
}

// unshowable is the offset of the first character that a YAML text can't hold
// as it is, or that its parsers change or skip; -1 if there is none.
func unshowable(s string) int {
	for i, r := range s {
		switch {
		case r == '\n', r == '\t', r >= ' ' && r < 0x7f:
		case r < ' ', r < 0xa0, r == lineSep, r == paraSep, r == orderMark, r == 0xfffe, r == 0xffff:
			return i
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			return i
		}
	}
	return -1
}

// runeName names a character for people.
func runeName(r rune) string {
	switch r {
	case '\r':
		return `a carriage return (\r)`
	case nextLine, lineSep, paraSep:
		return fmt.Sprintf("%U, which YAML takes for a line break,", r)
	case orderMark:
		return "a byte order mark (U+FEFF)"
	case '\x1b':
		return `an escape character (\e)`
	}
	return fmt.Sprintf("the control character %U", r)
}

// escapes are the characters with an escape of their own in double quotes.
var escapes = map[rune]string{
	'"': `\"`, '\\': `\\`, 0: `\0`, '\a': `\a`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\v': `\v`, '\f': `\f`, '\r': `\r`,
	0x1b: `\e`, nextLine: `\N`, lineSep: `\L`, paraSep: `\P`,
}

func doubleQuoted(s string) string {
	b := strings.Builder{}
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for _, r := range s {
		escape, named := escapes[r]
		switch {
		case named:
			b.WriteString(escape)
		case r < ' ', r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\x%02X`, r)
		case r == orderMark, r == 0xfffe, r == 0xffff:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
