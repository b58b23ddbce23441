package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/pkg/types"
)

// tooLarge refuses an object that is larger than any server takes, and says what
// makes it so. Nil is a size that Kubernetes allows.
func tooLarge(doc types.Document) error {
	var values, annotations sizes
	for f, v := range doc.Fields() {
		switch v := v.(type) {
		case string:
			switch f.Section {
			case "data":
				values.add(f, len(v))
			case lastApplied.Section:
				annotations.add(f, len(f.Key)+len(v))
			}
		case types.Binary:
			raw, _ := v.Bytes() // what is no base64 is refused for that
			values.add(f, len(raw))
		}
	}
	switch {
	case values.total > types.MaxDataBytes:
		return values.refusal("the values", types.MaxDataBytes)
	case annotations.total > maxAnnotations:
		return annotations.refusal("the annotations", maxAnnotations)
	}
	return nil
}

// sizes are those of some fields, in bytes.
type sizes struct {
	total  int
	fields []fieldSize
}

type fieldSize struct {
	field types.Field
	bytes int
}

func (s *sizes) add(f types.Field, n int) {
	s.total += n
	s.fields = append(s.fields, fieldSize{f, n})
}

// refusal names the largest of the fields.
func (s *sizes) refusal(what string, limit int) error {
	const shown = 5
	slices.SortFunc(s.fields, func(a, b fieldSize) int {
		return cmp.Or(b.bytes-a.bytes, cmp.Compare(a.field.String(), b.field.String()))
	})
	names := make([]string, 0, shown)
	for _, f := range s.fields[:min(shown, len(s.fields))] {
		names = append(names, fmt.Sprintf("%s %d", f.field, f.bytes))
	}
	return &tooLargeError{fmt.Sprintf("too large: %s are %d bytes together, %d more than the %d that are allowed; the largest: %s",
		what, s.total, s.total-limit, limit, strings.Join(names, ", "))}
}

// tooLargeError is an object that no server would take.
type tooLargeError struct{ message string }

func (e *tooLargeError) Error() string { return e.message }
