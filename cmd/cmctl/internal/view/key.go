package view

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/cmd/cmctl/internal/intake"
	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/pkg/types"
)

// Key shows the value of one key as it is.
func Key(key string) View { return keyView{types.Field{Section: "data", Key: key}} }

type keyView struct{ field types.Field }

// File is the key itself, so that editors know the kind of file by its extension.
func (v keyView) File(string) string { return v.field.Key }

func (v keyView) Notes() bool { return false }

// ErrBinary says that a value can't be shown as text.
var ErrBinary = errors.New("it is binary")

// value is the text of the key, empty if it isn't there.
func (v keyView) value(object types.Document) (string, error) {
	switch value := object.Fields()[v.field].(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	}
	return "", ErrBinary
}

func (v keyView) Show(object types.Document) (Shown, error) {
	value, err := v.value(object)
	return Shown{Text: []byte(value), Base: object}, err
}

// Tidy takes away the byte order mark that some editors put at the start, and the
// line feed that most put at the end of every file, where the value has none. One
// line feed more than that is the person's.
func (v keyView) Tidy(given, saved []byte, base types.Document) (text []byte, note string) {
	var notes []string
	text, marked := withoutOrderMark(given, saved)
	if marked {
		notes = append(notes, fmt.Sprintf("%s has no byte order mark, and gets none: the one in the file is taken for the editor's", v.field))
	}
	text = unixLines(given, text)
	if bare, ended := v.withoutLastFeed(text, base); ended {
		text = bare
		notes = append(notes, fmt.Sprintf("%s has no line feed at its end, and gets none: the one in the file is taken for the editor's (two would be stored)", v.field))
	}
	return text, strings.Join(notes, "\n")
}

func (v keyView) withoutLastFeed(text []byte, base types.Document) (bare []byte, ended bool) {
	value, err := v.value(base)
	if err != nil || value == "" || value[len(value)-1] == '\n' {
		return text, false
	}
	bare, ended = bytes.CutSuffix(text, []byte("\n"))
	return bare, ended && !bytes.HasSuffix(bare, []byte("\n"))
}

func (v keyView) Read(path string, text []byte, base types.Document) (types.Document, []error) {
	if len(text) == 0 {
		return nil, nil
	}
	if !utf8.Valid(text) {
		return nil, []error{intake.CheckText(path, text)}
	}
	mine := base.Clone()
	mine.Set(v.field, string(text))
	return mine, nil
}

func (v keyView) Mark(m types.Merged, marks func(types.Conflict) markers.Marks) (Marked, error) {
	if len(m.Conflicts) != 1 || m.Conflicts[0].Field != v.field {
		return Marked{}, fmt.Errorf("not only %s is in conflict", v.field)
	}
	c := m.Conflicts[0]
	merged, err := textOf(c)
	if err != nil {
		return Marked{}, err
	}
	shown := marks(c)
	shown.Size = sizeFor(m)
	return Marked{[]byte(shown.Text(merged)), shown.Size}, nil
}
