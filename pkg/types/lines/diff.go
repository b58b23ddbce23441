package lines

import (
	"fmt"
	"strings"
)

// Hunk is one change: the lines Removed, at line From of the one text, gave way
// to the lines Added, at line To of the other. Lines count from 1 and have their
// terminators; where none was removed (or added), From (or To) is the line that
// follows.
type Hunk struct {
	From    int
	Removed []string
	To      int
	Added   []string
}

// Diff lists what turns one text into the other, from top to bottom. It is a
// shortest list unless the texts differ very much.
func Diff(from, to string) []Hunk {
	a, b, changes := changesOf(from, to)
	hunks := make([]Hunk, len(changes))
	for i, c := range changes {
		hunks[i] = Hunk{From: c.a0 + 1, Removed: a[c.a0:c.a1], To: c.b0 + 1, Added: b[c.b0:c.b1]}
	}
	return hunks
}

func changesOf(from, to string) (a, b []string, changes []change) {
	a, b = split(from), split(to)
	numbers := numbering{}
	x, y := numbers.of(a), numbers.of(b)
	return a, b, compare(x, y, len(numbers))
}

// Unified shows what turns one text into the other as patch tools do: each part
// under a line @@ -line,count +line,count @@, with so many lines of context
// around the changes. It has no file names at its head, and is empty for equal
// texts.
func Unified(from, to string, context int) string {
	a, b, changes := changesOf(from, to)
	var out strings.Builder
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].a0-changes[n-1].a1 <= 2*context {
			n++
		}
		writePart(&out, a, b, changes[:n], context)
		changes = changes[n:]
	}
	return out.String()
}

// writePart shows changes that are close to each other.
func writePart(out *strings.Builder, a, b []string, changes []change, context int) {
	first, last := changes[0], changes[len(changes)-1]
	before := min(context, first.a0)
	after := min(context, len(a)-last.a1)
	at := first.a0 - before
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(at, last.a1+after), span(first.b0-before, last.b1+after))
	for _, c := range changes {
		writeLines(out, ' ', a[at:c.a0])
		writeLines(out, '-', a[c.a0:c.a1])
		writeLines(out, '+', b[c.b0:c.b1])
		at = c.a1
	}
	writeLines(out, ' ', a[at:last.a1+after])
}

// span names lines as patch tools do: the first and how many, which is left out
// if it is one. An empty span has the line before it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(out *strings.Builder, mark byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
