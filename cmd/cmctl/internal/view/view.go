// Package view is how an object stands in an editor, and how what a person saved
// there is read back: whole, as YAML or JSON, or one of its values as a plain
// file.
//
//	v := view.Whole("yaml")
//	shown, err := v.Show(object)
//	… the person edits shown.Text …
//	mine, faults := v.Read(path, saved, shown.Base)
package view

import (
	"bytes"

	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/pkg/types"
)

// View shows objects and reads what became of them. It may be shared. Objects
// that it is given are without the record of the last apply, which is no text of
// a person's.
type View interface {
	// File is what the file to edit in is called for an object of that name.
	File(name string) string
	// Notes tells whether notes can stand in the text. Else they must be told
	// elsewhere.
	Notes() bool
	// Show is the object as text.
	Show(object types.Document) (Shown, error)
	// Tidy undoes what an editor does by itself to a text that it is given, and
	// says so if a person should know.
	Tidy(given, saved []byte, base types.Document) (text []byte, note string)
	// Read makes an object of a text, which is in the file at path, and tells
	// all that is wrong with it. Nil without a fault is a text without content.
	Read(path string, text []byte, base types.Document) (types.Document, []error)
	// Mark is the outcome of a merge as text, with its conflicts marked; marks
	// says what stands behind the markers of one.
	Mark(m types.Merged, marks func(types.Conflict) markers.Marks) (Marked, error)
}

// Shown is an object as text.
type Shown struct {
	Text []byte
	// Base is what the text says. What was changed is found by comparing with
	// this, so that whatever the text can't show counts as untouched.
	Base types.Document
}

// Marked is a text with conflict markers.
type Marked struct {
	Text []byte
	Size int // of each marker
}

var orderMark = []byte("\ufeff")

// withoutOrderMark takes off the byte order mark that an editor put at the start of
// a text that it was given without one.
func withoutOrderMark(given, saved []byte) (text []byte, taken bool) {
	if bytes.HasPrefix(given, orderMark) {
		return saved, false
	}
	return bytes.CutPrefix(saved, orderMark)
}

// unixLines turns CR LF into LF in a text that an editor saved so throughout,
// if it was given one without any CR.
func unixLines(given, saved []byte) []byte {
	lines := bytes.Count(saved, []byte("\n"))
	if lines == 0 || bytes.ContainsRune(given, '\r') || bytes.Count(saved, []byte("\r\n")) != lines {
		return saved
	}
	return bytes.ReplaceAll(saved, []byte("\r\n"), []byte("\n"))
}
