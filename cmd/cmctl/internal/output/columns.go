package output

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// column is one of custom-columns.
type column struct {
	header string
	path   *Path
}

// newColumns reads NAME:.metadata.name,MODE:.data.mode.
func newColumns(spec string, o Options) (Printer, error) {
	if spec == "" {
		return nil, errors.New("-o custom-columns needs columns: custom-columns=NAME:.metadata.name,MODE:.data.mode")
	}
	var columns []column
	for _, part := range splitColumns(spec) {
		header, path, ok := strings.Cut(part, ":")
		if !ok || header == "" {
			return nil, fmt.Errorf("custom-columns: %q is not HEADER:PATH", part)
		}
		p, err := ParsePath(path)
		if err != nil {
			return nil, fmt.Errorf("custom-columns: column %s: %w", header, err)
		}
		columns = append(columns, column{header, p})
	}
	return columnsPrinter(columns, o), nil
}

// newColumnsOfFile reads a file with a line of headers and a line of paths.
func newColumnsOfFile(text string, o Options) (Printer, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 {
		return nil, errors.New("custom-columns-file: the file must have two lines, one of headers and one of paths")
	}
	headers, paths := strings.Fields(lines[0]), strings.Fields(lines[1])
	if len(headers) != len(paths) {
		return nil, fmt.Errorf("custom-columns-file: there are %d headers and %d paths", len(headers), len(paths))
	}
	var columns []column
	for i, header := range headers {
		p, err := ParsePath(paths[i])
		if err != nil {
			return nil, fmt.Errorf("custom-columns-file: column %s: %w", header, err)
		}
		columns = append(columns, column{header, p})
	}
	return columnsPrinter(columns, o), nil
}

// splitColumns cuts at the commas that are not inside brackets or quotes.
func splitColumns(spec string) []string {
	var parts []string
	depth, quote, begin := 0, rune(0), 0
	for i, r := range spec {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case strings.ContainsRune("[({", r):
			depth++
		case strings.ContainsRune("])}", r):
			depth--
		case r == ',' && depth == 0:
			parts, begin = append(parts, spec[begin:i]), i+1
		}
	}
	return append(parts, spec[begin:])
}

// columnsPrinter prints a row for each object, with <none> for what isn't there.
// What it prints later goes on under the same header.
func columnsPrinter(columns []column, o Options) Printer {
	below := &Rows{NoHeaders: o.NoHeaders, Colors: o.Colors}
	var header []string
	for _, c := range columns {
		header = append(header, c.header)
	}
	return printFunc(func(w *bytes.Buffer, objects Objects) error {
		var rows [][]string
		for _, d := range objects.Items {
			row := make([]string, 0, len(columns))
			for _, c := range columns {
				values, err := c.path.Values(d)
				if err != nil {
					return err
				}
				row = append(row, cell(values))
			}
			rows = append(rows, row)
		}
		return below.Print(w, header, rows)
	})
}

func cell(values []any) string {
	if len(values) == 0 {
		return "<none>"
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = asText(v)
	}
	return strings.Join(texts, ",")
}
