package view

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/pkg/types"
	"example.com/cmctl/pkg/types/lines"
)

// Mark shows the merged object with each conflict marked: inside a value of
// several lines the lines, anything else as a whole entry, in each place where
// one of the sides has it.
//
// The object is written with a token in the place of each such entry, and then
// the line with the token is replaced, so that the entries stand where they would
// without a conflict.
func (v wholeView) Mark(m types.Merged, marks func(types.Conflict) markers.Marks) (Marked, error) {
	doc := m.Document.Clone()
	doc.SetMeta("managedFields", nil)
	token := "conflict-" + rand.Text()
	size := sizeFor(m)
	entries := map[string]entry{}
	for _, c := range m.Conflicts {
		shown := marks(c)
		shown.Size = size
		doc.Set(c.Field, nil)
		for _, place := range places(c) {
			name := fmt.Sprintf("%s-%d-", token, len(entries))
			put(doc, place, c.Field.Key, name)
			entries[name] = entry{wholeView: v, conflict: c, place: place, marks: shown}
		}
	}
	text, err := v.render(doc)
	if err != nil {
		return Marked{}, err
	}
	marked, err := replaceTokens(string(text), token, entries)
	if err != nil {
		return Marked{}, err
	}
	return Marked{[]byte(marked), size}, v.check(m, marked, size)
}

// check demands that taking one side everywhere gives that side's object.
func (v wholeView) check(m types.Merged, marked string, size int) error {
	for s := markers.Mine; s <= markers.Theirs; s++ {
		want := m.Document.Clone()
		for _, c := range m.Conflicts {
			value := sideOf(c, s)
			if c.Lines != nil {
				value = markers.Resolve(c.Lines, s)
			}
			want.Set(c.Field, value)
		}
		got, err := v.parse([]byte(markers.Take(marked, size, s)))
		if err != nil {
			return fmt.Errorf("the conflict can't be shown as %s: %w", v.format, err)
		}
		if changes := types.Diff(want, got); len(changes) > 0 {
			return fmt.Errorf("the conflict can't be shown as %s without changing %s", v.format, changes[0].Field)
		}
	}
	return nil
}

// place is where an entry stands: the maps that lead to it.
type place []string

func placeOf(f types.Field, value any) place {
	switch _, binary := value.(types.Binary); {
	case binary && f.Section == "data":
		return place{"binaryData"}
	case f.Section == "":
		return place{}
	}
	return strings.Split(f.Section, ".")
}

// places are those in which any of the sides has the field: a text and bytes
// stand in two.
func places(c types.Conflict) []place {
	var found []place
	seen := map[string]bool{}
	for s := markers.Mine; s <= markers.Theirs; s++ {
		value := sideOf(c, s)
		p := placeOf(c.Field, value)
		if name := strings.Join(p, "."); value != nil && !seen[name] {
			seen[name] = true
			found = append(found, p)
		}
	}
	return found
}

func put(doc types.Document, p place, key, value string) {
	at := map[string]any(doc)
	for _, part := range p {
		next, ok := at[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[part] = next
		}
		at = next
	}
	at[key] = value
}

// replaceTokens puts the entries in the places of the lines that hold their
// tokens.
func replaceTokens(text, token string, entries map[string]entry) (string, error) {
	var out []string
	for line := range strings.Lines(text) {
		at := strings.Index(line, token)
		if at < 0 {
			out = append(out, line)
			continue
		}
		end := at + len(token)
		if n := strings.Index(line[end+1:], "-"); n >= 0 {
			end += n + 2
		}
		e, ok := entries[line[at:end]]
		if !ok {
			return "", errors.New("a place for a conflict was lost")
		}
		if strings.HasPrefix(strings.TrimLeft(line, " "), ": ") {
			out = out[:len(out)-1] // a long key has the line before for itself
		}
		shown, err := e.inPlaceOf(line)
		if err != nil {
			return "", err
		}
		out = append(out, shown)
	}
	return strings.Join(out, ""), nil
}

// entry is a field in conflict, in one place.
type entry struct {
	wholeView
	conflict types.Conflict
	place    place
	marks    markers.Marks
}

// inPlaceOf is the entry with its markers, for the place of that line.
func (e entry) inPlaceOf(line string) (string, error) {
	if text, ok := e.block(); ok {
		return text, nil
	}
	comma := strings.HasSuffix(strings.TrimRight(line, "\n"), ",") && e.format == "json"
	region := lines.Region{Conflict: true}
	for s, to := range map[markers.Side]*string{markers.Mine: &region.Mine, markers.Base: &region.Base, markers.Theirs: &region.Theirs} {
		value := sideOf(e.conflict, s)
		if e.conflict.Lines != nil {
			value = markers.Resolve(e.conflict.Lines, s) // with what is merged already
		}
		if value == nil || strings.Join(placeOf(e.conflict.Field, value), ".") != strings.Join(e.place, ".") {
			continue
		}
		text, err := e.nested(value)
		if err != nil {
			return "", err
		}
		*to = e.bare(text)
		if comma {
			*to = strings.TrimSuffix(*to, "\n") + ",\n"
		}
	}
	return e.marks.Text(lines.Merged{region}), nil
}

// nested is the entry with that value, inside of as many maps as it is in.
func (e entry) nested(value any) (string, error) {
	if b, ok := value.(types.Binary); ok {
		value = string(b)
	}
	doc := map[string]any{e.conflict.Field.Key: value}
	for range e.place {
		doc = map[string]any{"in": doc}
	}
	text, err := e.render(doc)
	return string(text), err
}

// bare takes the maps around an entry away.
func (e entry) bare(nested string) string {
	all := strings.SplitAfter(nested, "\n")
	around := len(e.place)
	if e.format == "json" {
		around++
		return strings.Join(all[around:len(all)-1-around], "")
	}
	return strings.Join(all[around:], "")
}

// block is the entry as a block of lines with the markers among them, if
// whichever side is taken there is then that side's text: a line feed at the
// end, or blanks at the beginning, may be written once for all of a block.
func (e entry) block() (string, bool) {
	merged := e.conflict.Lines
	if merged == nil || e.format != "yaml" {
		return "", false
	}
	text := e.marks.Text(merged)
	if !strings.HasSuffix(markers.Resolve(merged, markers.Mine), "\n") {
		text = strings.TrimSuffix(text, "\n")
	}
	nested, err := e.nested(text)
	if err != nil || len(markers.Left(nested, e.marks.Size)) == 0 {
		return "", false
	}
	path := append(slices.Repeat([]string{"in"}, len(e.place)), e.conflict.Field.Key)
	for s := markers.Mine; s <= markers.Theirs; s++ {
		doc, err := e.parse([]byte(markers.Take(nested, e.marks.Size, s)))
		if got, _ := doc.Value(path...); err != nil || got != markers.Resolve(merged, s) {
			return "", false
		}
	}
	return e.bare(nested), true
}
