package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Rows prints rows as they come, in columns as wide as the widest cell so far,
// under a header that is printed once. The zero value is ready to use, by one
// goroutine.
type Rows struct {
	NoHeaders bool
	Colors    Palette // for the header

	widths []int // nil before the first rows
}

// Print writes more rows, which have as many cells as the header. A cell stays on
// its line, whatever is in it.
func (r *Rows) Print(w io.Writer, header []string, rows [][]string) error {
	headed := r.widths == nil && !r.NoHeaders
	if r.widths == nil {
		r.widths = make([]int, len(header))
	}
	if headed {
		rows = append([][]string{header}, rows...)
	}
	shown := make([][]string, len(rows))
	for i, row := range rows {
		for column, cell := range row {
			cell = Visible(cell, "")
			shown[i] = append(shown[i], cell)
			r.widths[column] = max(r.widths[column], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for i, row := range shown {
		line := r.line(row)
		if headed && i == 0 {
			line = r.Colors.Bold(line)
		}
		fmt.Fprintln(&text, line)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (r *Rows) line(row []string) string {
	var line strings.Builder
	for column, cell := range row {
		if column == len(row)-1 {
			line.WriteString(cell)
			break
		}
		fmt.Fprintf(&line, "%-*s   ", r.widths[column], cell)
	}
	return line.String()
}
