package view

import (
	"bytes"
	"encoding/json"
	"fmt"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/types"
)

// Whole shows an object whole, in the format yaml or json.
func Whole(format string) View { return wholeView{format} }

type wholeView struct{ format string }

func (v wholeView) File(name string) string { return name + "." + v.format }

func (v wholeView) Notes() bool { return v.format != "json" }

// render is a document or a part of one as text.
func (v wholeView) render(value map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if v.format == "json" {
		enc.SetIndent("", indentJSON)
		err := enc.Encode(value)
		return b.Bytes(), err
	}
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return types.JSONToReadableYAML(b.Bytes())
}

// withoutLastCommas puts blanks in the place of the commas of a JSON text that
// stand before a closing bracket: where the last entry is in conflict, one is left
// above it if it is taken out.
func withoutLastCommas(text []byte) []byte {
	out := bytes.Clone(text)
	comma, inString := -1, false
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString, comma = !inString, -1
		case inString, c == ' ', c == '\t', c == '\r', c == '\n':
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		default:
			comma = -1
		}
	}
	return out
}

// meant is the format that a saved text must have.
func (v wholeView) meant() manifest.Format {
	if v.format == "json" {
		return manifest.JSON
	}
	return manifest.Any
}

const indentJSON = "    "

// parse reads what render wrote, or what a person made of it.
func (v wholeView) parse(text []byte) (types.Document, error) {
	if v.format == "json" {
		return types.ParseDocument(withoutLastCommas(text))
	}
	return manifest.ParseYAML(text)
}

// Show leaves managedFields out: they are the server's.
func (v wholeView) Show(object types.Document) (Shown, error) {
	object = object.Clone()
	object.SetMeta("managedFields", nil)
	text, err := v.render(object)
	if err != nil {
		return Shown{}, err
	}
	base, err := v.parse(text)
	if err != nil {
		return Shown{}, fmt.Errorf("this object can't be shown as %s without changing it: %w", v.format, err)
	}
	if changes := types.Diff(object, base); len(changes) > 0 && changes[0].Field.Section != "" {
		return Shown{}, fmt.Errorf("this object can't be shown as %s without changing %s", v.format, changes[0].Field)
	}
	return Shown{text, base}, nil
}

func (v wholeView) Tidy(given, saved []byte, _ types.Document) (text []byte, note string) {
	saved, _ = withoutOrderMark(given, saved)
	return unixLines(given, saved), ""
}

// Read refuses what can't be meant, and changes of the object's identity.
func (v wholeView) Read(path string, text []byte, base types.Document) (types.Document, []error) {
	if v.format == "json" {
		text = withoutLastCommas(text)
	}
	docs := manifest.Split(text)
	if len(docs) > 1 {
		return nil, []error{&manifest.Fault{File: path, Line: docs[1].Line, Message: "a second document begins here; edit writes one object"}}
	}
	found, faults := manifest.Parse(path, text, v.meant(), base)
	if len(faults) > 0 {
		if repeated := manifest.RepeatedKeys(path, text); len(repeated) > 0 {
			return nil, repeated // with both lines
		}
	}
	if len(faults) > 0 || len(found) == 0 {
		return nil, faults
	}
	mine := found[0].Document
	source := &manifest.Source{Text: text, Begin: 1}
	for _, p := range mine.Problems(false) {
		if !manifest.Untouched(base, mine, p.Path) {
			faults = append(faults, &manifest.Fault{File: path, Line: source.LineOf(p.Path), Message: p.Message})
		}
	}
	for _, id := range []struct{ field, was, now string }{
		{"name", base.Name(), mine.Name()},
		{"namespace", base.Namespace(), mine.Namespace()},
		{"uid", base.UID(), mine.UID()},
	} {
		if id.was != id.now {
			faults = append(faults, &manifest.Fault{File: path, Line: source.LineOf([]string{"metadata", id.field}),
				Message: fmt.Sprintf("metadata.%s can't be changed by edit (from %q to %q); --save-as NAME makes another object", id.field, id.was, id.now)})
		}
	}
	return mine, faults
}
