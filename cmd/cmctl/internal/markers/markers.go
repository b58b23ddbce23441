// Package markers shows in a text what two sides made of the same lines, as
// people know it from git, and finds what is left of that:
//
//	<<<<<<< yours
//	mode: red
//	||||||| when you opened it
//	mode: green
//	=======
//	mode: white
//	>>>>>>> now
//
// The markers are made longer where the text has lines that look like them.
package markers

import (
	"strings"

	"example.com/cmctl/pkg/types/lines"
)

// Side is one of those that a conflict shows.
type Side int

// The sides, in the order in which they are shown.
const (
	Mine Side = iota
	Base
	Theirs
)

// of is what a side has in a region.
func of(r lines.Region, s Side) string {
	switch s {
	case Mine:
		return r.Mine
	case Base:
		return r.Base
	}
	return r.Theirs
}

// Resolve is the text if one side is taken everywhere.
func Resolve(merged lines.Merged, s Side) string {
	return merged.Resolve(func(r lines.Region) string { return of(r, s) })
}

// Marks are the markers of one text.
type Marks struct {
	Size int // of each marker, see Size
	// What stands behind the markers, on the same line.
	Mine, Base, Theirs string
}

// signs begin a conflict, its middle parts, and end it.
const signs = "<|=>"

const usualSize = 7

// Size is how long markers must be in a text that holds these.
func Size(texts ...string) int {
	size := usualSize
	for _, text := range texts {
		for line := range strings.Lines(text) {
			size = max(size, len(run(line))+1)
		}
	}
	return size
}

// run is the row of one sign that a line begins with, blanks aside.
func run(line string) string {
	line = strings.TrimLeft(line, " \t")
	if line == "" || !strings.Contains(signs, line[:1]) {
		return ""
	}
	return line[:len(line)-len(strings.TrimLeft(line, line[:1]))]
}

// Text is the whole text, with markers around what is in conflict. A side that
// ends without a line feed gets one: the marker after it needs a line of its own.
func (m Marks) Text(merged lines.Merged) string {
	var b strings.Builder
	for _, r := range merged {
		if !r.Conflict {
			b.WriteString(r.Text)
			continue
		}
		m.line(&b, '<', m.Mine)
		part(&b, r.Mine)
		m.line(&b, '|', m.Base)
		part(&b, r.Base)
		m.line(&b, '=', "")
		part(&b, r.Theirs)
		m.line(&b, '>', m.Theirs)
	}
	return b.String()
}

func (m Marks) line(b *strings.Builder, sign byte, label string) {
	b.WriteString(strings.Repeat(string(sign), m.Size))
	if label != "" {
		b.WriteString(" " + oneLine(label))
	}
	b.WriteByte('\n')
}

func part(b *strings.Builder, text string) {
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

// oneLine keeps a label from becoming more than that, or anything that YAML
// doesn't have.
func oneLine(label string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, label)
}

// sign is the marker that a line is, 0 if it is none.
func sign(line string, size int) byte {
	r := run(line)
	rest := strings.TrimLeft(line, " \t")[len(r):]
	if len(r) != size || rest != "" && !strings.ContainsAny(rest[:1], " \r\n") {
		return 0
	}
	return r[0]
}

// Left are the lines, from 1, that still are markers of that size.
func Left(text string, size int) []int {
	var found []int
	n := 0
	for line := range strings.Lines(text) {
		if n++; sign(line, size) != 0 {
			found = append(found, n)
		}
	}
	return found
}

// Take is what a person makes of a marked text who takes the same side
// everywhere.
func Take(text string, size int, side Side) string {
	var b strings.Builder
	within := map[byte]Side{'<': Mine, '|': Base, '=': Theirs}
	at, settled := Mine, true
	for line := range strings.Lines(text) {
		switch s := sign(line, size); {
		case s == '>':
			settled = true
		case s != 0:
			at, settled = within[s], false
		case settled || at == side:
			b.WriteString(line)
		}
	}
	return b.String()
}
