package view

import (
	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/pkg/types"
	"example.com/cmctl/pkg/types/lines"
)

// textOf is a conflict between texts, as lines where it has them, else as a
// whole. What is absent is shown as nothing.
func textOf(c types.Conflict) (lines.Merged, error) {
	if c.Lines != nil {
		return c.Lines, nil
	}
	whole := lines.Region{Conflict: true}
	for _, s := range []struct {
		from any
		to   *string
	}{{c.Mine, &whole.Mine}, {c.Base, &whole.Base}, {c.Live, &whole.Theirs}} {
		text, ok := s.from.(string)
		if !ok && s.from != nil {
			return nil, ErrBinary
		}
		*s.to = text
	}
	return lines.Merged{whole}, nil
}

// sideOf is what one side made of a field.
func sideOf(c types.Conflict, s markers.Side) any {
	switch s {
	case markers.Mine:
		return c.Mine
	case markers.Base:
		return c.Base
	}
	return c.Live
}

// sizeFor is the size of markers that look like nothing in the values of a merge.
func sizeFor(m types.Merged) int {
	var texts []string
	add := func(v any) {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	for _, v := range m.Document.Fields() {
		add(v)
	}
	for _, c := range m.Conflicts {
		for s := markers.Mine; s <= markers.Theirs; s++ {
			add(sideOf(c, s))
		}
	}
	return markers.Size(texts...)
}
