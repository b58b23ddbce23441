package view

import (
	"bytes"
	"strings"
)

// The lines between which a note stands at the top of a text. They and what is
// between them are all that is ever taken out of what a person saved.
const (
	noteBegin = "# cmctl: a note, down to the line that ends it; it is not part of the object"
	noteEnd   = "# cmctl: end of the note"
)

// Note is a text for the person, as lines of comment.
func Note(lines []string) []byte {
	var b bytes.Buffer
	b.WriteString(noteBegin + "\n")
	for line := range strings.SplitSeq(strings.Join(lines, "\n"), "\n") {
		b.WriteString(strings.TrimRight("# "+printable(line), " ") + "\n")
	}
	b.WriteString(noteEnd + "\n")
	return b.Bytes()
}

// printable keeps a line of a note a comment, whatever is quoted in it.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == 0xfffe || r == 0xffff:
			return '?'
		}
		return r
	}, line)
}

// SplitNote takes the note off a text. It is looked for among the comments at
// the top only, where no value can be; what a person wrote above it stays, but for
// the byte order mark of an editor.
func SplitNote(text []byte) (note, rest []byte) {
	text = bytes.TrimPrefix(text, orderMark)
	begin, at := -1, 0
	for line := range bytes.Lines(text) {
		start := at
		at += len(line)
		bare := string(bytes.TrimRight(line, "\r\n"))
		switch {
		case bare == noteBegin && begin < 0:
			begin = start
		case bare == noteEnd && begin >= 0:
			rest = append(append([]byte{}, text[:begin]...), text[at:]...)
			return text[begin:at], rest
		case bare != "" && bare[0] != '#':
			return nil, text
		}
	}
	return nil, text
}
