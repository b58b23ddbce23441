package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"example.com/cmctl/cmd/cmctl/internal/command"
	"example.com/cmctl/cmd/cmctl/internal/view"
	"example.com/cmctl/pkg/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// settle is what becomes of the draft when the edit ends with err: it is kept
// and named if there is work in it that the server didn't take, or may be in what
// an editor left beside it.
func (s *session) settle(err error) error {
	beside := s.draft.Beside()
	if err != nil && (s.work || s.touched() || len(beside) > 0) {
		return &keptError{path: s.draft.Path(), shown: s.draft.ShownPath(), beside: beside, next: s.resumeCommand(err), err: err}
	}
	if !s.leave {
		s.draft.Remove()
	}
	return err
}

// touched tells whether there may be work of the person in the draft. What can't
// be read just now may be.
func (s *session) touched() bool {
	text, err := s.draft.Read()
	if err != nil {
		return s.draft.Exists()
	}
	text = s.body(text)
	return !bytes.Equal(text, s.given) && len(bytes.TrimSpace(text)) > 0
}

// body is a saved text without the note, where the view has one: a value alone
// may begin with any line.
func (s *session) body(text []byte) []byte {
	if s.view.Notes() {
		_, text = view.SplitNote(text)
	}
	return text
}

// resumeCommand is what goes on from the draft after err.
func (s *session) resumeCommand(err error) string {
	line := "cmctl edit --resume " + command.Quote(s.draft.Path())
	switch {
	case errors.As(err, new(*deletedError)):
		line += " --save-as=" + s.draft.Shown.Name
	case errors.As(err, new(*retry.ReplacedError)), apierrors.IsAlreadyExists(err):
		line += " --save-as=OTHER-NAME"
	case s.saveAs != "":
		line += " --save-as=" + s.saveAs
	}
	return line + s.conn.where
}

// keptError adds to an error where the person's text is. report says it, after
// all that went wrong.
type keptError struct {
	path   string   // the text
	shown  string   // what it was made from
	beside []string // what else is there, such as an editor's unsaved text
	next   string   // the command that goes on from it
	err    error
}

func (e *keptError) Error() string { return e.err.Error() }
func (e *keptError) Unwrap() error { return e.err }

func (e *keptError) tell(w io.Writer) {
	fmt.Fprintf(w, "your text is kept in %s\n", e.path)
	if e.shown != "" {
		fmt.Fprintf(w, "what it was made from is beside it, in %s\n", e.shown)
	}
	for _, path := range e.beside {
		fmt.Fprintf(w, "an editor may have left unsaved text in %s; recover it with that editor first\n", path)
	}
	fmt.Fprintf(w, "go on with: %s\n", e.next)
}

// keptIn are the texts that were kept of one object, or of several.
func keptIn(err error) []*keptError {
	var kept *keptError
	if errors.As(err, &kept) {
		return []*keptError{kept}
	}
	many := manyError(nil)
	errors.As(err, &many)
	var all []*keptError
	for _, e := range many {
		all = append(all, keptIn(e)...)
	}
	return all
}
