package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Table is rows of cells under a header, in aligned columns.
type Table struct {
	Header    []string
	Rows      [][]string
	NoHeaders bool
	Colors    Palette
}

// Print writes the table. A cell stays on its line, whatever is in it.
func (t Table) Print(w io.Writer) error {
	var laid bytes.Buffer
	cells := tabwriter.NewWriter(&laid, 0, 8, 3, ' ', 0)
	if !t.NoHeaders {
		fmt.Fprintln(cells, strings.Join(t.Header, "\t"))
	}
	for _, row := range t.Rows {
		shown := make([]string, len(row))
		for i, cell := range row {
			shown[i] = Visible(cell, "")
		}
		fmt.Fprintln(cells, strings.Join(shown, "\t"))
	}
	if err := cells.Flush(); err != nil {
		return err
	}
	text := laid.String()
	if header, rest, ok := strings.Cut(text, "\n"); ok && !t.NoHeaders {
		// Coloured once it is laid out: escape bytes have no width.
		text = t.Colors.Bold(header) + "\n" + rest
	}
	_, err := io.WriteString(w, text)
	return err
}

// Visible is text that can do nothing to a terminal: control characters are
// shown as escapes, but for those in keep.
func Visible(text, keep string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return hidden(r, keep) }) {
		return text
	}
	b := strings.Builder{}
	for _, r := range text {
		if !hidden(r, keep) {
			b.WriteRune(r)
			continue
		}
		quoted := fmt.Sprintf("%q", r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// hidden are control characters, and those that change the direction in which
// text is shown.
func hidden(r rune, keep string) bool {
	if strings.ContainsRune(keep, r) {
		return false
	}
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || r == 0xfeff || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
