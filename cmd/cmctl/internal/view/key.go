package view

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

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

// Tidy takes away the line feed that most editors put at the end of every file,
// where the value has none. One more than that is the person's.
func (v keyView) Tidy(given, saved []byte, base types.Document) (text []byte, note string) {
	text = encodedAs(given, saved)
	value, err := v.value(base)
	if err != nil || value == "" || value[len(value)-1] == '\n' {
		return text, ""
	}
	bare, ended := bytes.CutSuffix(text, []byte("\n"))
	if !ended || bytes.HasSuffix(bare, []byte("\n")) {
		return text, ""
	}
	return bare, fmt.Sprintf("%s has no line feed at its end, and gets none: the one in the file is taken for the editor's (two would be stored)", v.field)
}

func (v keyView) Read(path string, text []byte, base types.Document) (types.Document, []error) {
	if len(text) == 0 {
		return nil, nil
	}
	if !utf8.Valid(text) {
		return nil, []error{fmt.Errorf("%s is not UTF-8 text, from byte %d on", path, len(bytes.ToValidUTF8(text, nil)))}
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
