package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/draft"
	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/cmd/cmctl/internal/markers"
	"example.com/cmctl/cmd/cmctl/internal/view"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// session is one object on its way through the editor, as often as needed: a
// round for each time that the editor opens.
type session struct {
	*editOptions
	conn   *connection
	object *client.Object
	view   view.View
	place  position

	start types.Document // the version that the text was made from, as the server has it
	base  types.Document // what the text said of it

	draft  *draft.Draft
	given  []byte // the text as the person got it in this round, without the note
	above  int    // lines of the note above it
	work   bool   // the text holds work already, whether they touch it or not
	reason error  // why the editor opens again; nil in the first round
	leave  bool   // an editor may still have the file open
}

// position is where one of several objects stands.
type position struct{ n, of int }

// edit edits one object.
func (o *editOptions) edit(ctx context.Context, conn *connection, name string, place position) error {
	s := &session{editOptions: o, conn: conn, object: conn.ConfigMaps(conn.namespace).Object(name), place: place}
	shown := draft.Shown{Server: conn.Target().String(), Namespace: conn.namespace, Name: name, Key: o.key, Format: o.format()}
	s.view = viewOf(shown)
	options := o.retryOptions(o.progress(s.object))
	options.Want = o.guard.want()
	start, err := retry.Read(ctx, s.object, options)
	if err != nil {
		return conn.explain(conn.namespace, name, err)
	}
	if err := s.begin(start, shown); err != nil {
		return conn.explain(conn.namespace, name, err)
	}
	return s.settle(s.run(ctx))
}

// format is what a whole object is edited as; a value has none.
func (o *editOptions) format() string {
	switch {
	case o.key != "":
		return ""
	case o.output == "":
		return "yaml"
	}
	return o.output
}

func viewOf(s draft.Shown) view.View {
	if s.Key != "" {
		return view.Key(s.Key)
	}
	return view.Whole(s.Format)
}

// begin makes the draft of the first round.
func (s *session) begin(start types.Document, from draft.Shown) error {
	shown, err := s.show(start)
	switch {
	case errors.Is(err, view.ErrBinary):
		return fmt.Errorf("data[%s] can't be edited as text: %w; read it with 'cmctl get %s --key %s%s', and store what you make of it with 'cmctl set %s --from-file=%s=FILE%s'", from.Key, err, from.Name, from.Key, s.conn.where, from.Name, from.Key, s.conn.where)
	case err != nil:
		return err
	}
	from.Document = start
	return s.put(from, shown.Text)
}

// show makes a version the one that the person's text will be compared with.
func (s *session) show(start types.Document) (view.Shown, error) {
	bare, _ := withoutRecord(start)
	shown, err := s.view.Show(bare)
	if err == nil {
		s.start, s.base = start, shown.Base
	}
	return shown, err
}

// put makes a new draft in the place of the one there is: what it was made from
// and its text are never of two versions.
func (s *session) put(from draft.Shown, text []byte) error {
	d, err := draft.New(s.view.File(from.Name), text, from)
	if err != nil {
		return err
	}
	if s.draft != nil {
		s.draft.Remove()
	}
	s.draft, s.given = d, text
	s.interrupts.keeps(d.Path())
	return s.open()
}

// open puts the note above the text.
func (s *session) open() error {
	annotated, above := s.annotate(s.noteLines(s.reason), s.given)
	s.above = above
	return s.draft.Write(annotated)
}

// maxScripted is how often the editor opens for one object where there is nobody
// to make anything of the reason.
const maxScripted = 5

// run opens the editor until what the person made is written, or they give up.
func (s *session) run(ctx context.Context) error {
	for n := 1; ; n++ {
		err := s.round(ctx)
		var clash *clashError
		var faulty *faultyText
		switch {
		case errors.Is(err, errCancelled):
			return nil
		case errors.As(err, &clash):
			if err := s.meet(ctx, clash); err != nil {
				return err
			}
		case errors.As(err, &faulty) && (s.interactive() || n < maxScripted):
			if err := s.again(faulty); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// errCancelled ends an edit in which nothing is to be written.
var errCancelled = errors.New("edit cancelled")

// faultyText is a text that can't be written as it is: the editor opens again.
type faultyText struct {
	text []byte // as saved, without the note
	err  error
}

func (e *faultyText) Error() string { return e.err.Error() }
func (e *faultyText) Unwrap() error { return e.err }

// round opens the editor once and writes what the person made.
func (s *session) round(ctx context.Context) error {
	text, err := s.ask(ctx)
	if err != nil {
		return err
	}
	mine, err := s.read(text, s.above)
	if err != nil {
		return &faultyText{text, err}
	}
	if mine == nil {
		return s.emptied()
	}
	changes := types.Diff(s.base, mine)
	if len(changes) == 0 {
		s.note("Edit cancelled: nothing was changed but the layout, or what only the server sets.")
		return errCancelled
	}
	if err := s.mayWrite(changes); err != nil {
		return &faultyText{text, err}
	}
	if err := s.checkContent(ctx, &s.checks, s.object.Object(), s.base, mine); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &faultyText{text, err}
	}
	err = s.write(ctx, mine)
	if refused(err) {
		return &faultyText{text, s.immutableHint(err)}
	}
	return err
}

// ask opens the editor and returns what was saved.
func (s *session) ask(ctx context.Context) ([]byte, error) {
	opened := s.now()
	failed := s.openEditor(s.draft.Path())
	saved, err := s.draft.Read()
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	text, note := s.view.Tidy(s.given, s.body(saved), s.base)
	untouched := bytes.Equal(text, s.given)
	switch {
	case failed != nil && untouched && s.reason != nil:
		s.note("%v", failed)
		return nil, &editorError{s.reason}
	case failed != nil:
		return nil, failed
	case ctx.Err() != nil:
		return nil, endOf(ctx)
	case untouched && s.reason != nil:
		return nil, s.reason
	case untouched && !s.work:
		s.untouched(s.now().Sub(opened))
		return nil, errCancelled
	}
	if note != "" {
		s.note("%s", note)
	}
	return text, nil
}

// hasty is how soon an editor returns in which nobody can have edited.
const hasty = time.Second

func (s *session) untouched(after time.Duration) {
	s.note("Edit cancelled: nothing was changed.")
	if beside := s.draft.Beside(); len(beside) > 0 {
		s.leave = true
		s.note("An editor may have left unsaved text in %s\nThe draft is kept in %s\nwrite it with: %s", strings.Join(beside, ", "), s.draft.Path(), s.resumeCommand(nil))
		return
	}
	if after < hasty {
		s.leave = true
		s.note("The editor returned at once. If it opened a window of its own, it needs the flag that makes it wait (code --wait, subl -w, gvim -f).\nWhat you save there is in %s\nwrite it with: %s", s.draft.Path(), s.resumeCommand(nil))
	}
}

// emptied is the end of an edit whose text was emptied. Where there was a reason
// to open the editor again, the work until then is kept.
func (s *session) emptied() error {
	if s.reason == nil && !s.work {
		hint := "to delete the object: cmctl delete"
		if s.draft.Shown.Key != "" {
			hint = "an empty value is stored with 'cmctl set', the key removed with 'cmctl unset'"
		}
		s.note("Edit cancelled: the saved file is empty; nothing was written (%s).", hint)
		return errCancelled
	}
	if err := s.draft.Write(s.given); err != nil {
		return err
	}
	if s.reason == nil {
		return errors.New("edit cancelled: the saved file is empty; nothing was written")
	}
	return s.reason
}

// read makes an object of a text that stands below so many other lines. Nil
// without an error is a text without content.
func (s *session) read(text []byte, above int) (types.Document, error) {
	path := s.draft.Path()
	if size := s.draft.Shown.Markers; size > 0 {
		if left := markers.Left(string(text), size); len(left) > 0 {
			return nil, s.unresolved(left, above)
		}
	}
	if s.view.Notes() {
		text = append(bytes.Repeat([]byte("\n"), above), text...)
	}
	mine, faults := s.view.Read(path, text, s.base)
	if len(faults) > 0 {
		if doc, err := manifest.ParseYAML(text); err == nil && doc != nil && s.draft.Shown.Key == "" {
			if err := tooLarge(doc); err != nil {
				return nil, err
			}
		}
		return nil, oneOrMany(faults)
	}
	shown := s.start.Fields()
	for f := range mine.Fields() {
		if f.Bookkeeping() && shown[f] != nil {
			return nil, fmt.Errorf("%s: the annotation %s is kept by apply and can't be changed by edit; remove it from the text", path, f.Key)
		}
	}
	return mine, nil
}

// unresolved says which markers are left.
func (s *session) unresolved(left []int, above int) error {
	lines := make([]string, len(left))
	for i, n := range left {
		lines[i] = fmt.Sprint(n + above)
	}
	return &leftMarkers{s.conn.conflict(s.conn.namespace, s.draft.Shown.Name, fmt.Sprintf("conflict markers are left in your text (line %s); nothing was written", strings.Join(lines, ", ")), "")}
}

// leftMarkers is a conflict that is not decided yet.
type leftMarkers struct{ *conflictError }

func (e *leftMarkers) Unwrap() error { return e.conflictError }

// again makes the text, as it was saved, the one of the next round.
func (s *session) again(faulty *faultyText) error {
	s.given, s.reason, s.work = faulty.text, faulty.err, true
	s.note("%v\nThe editor opens again.", faulty.err)
	if s.view.Notes() {
		return s.openWithReason()
	}
	return s.draft.Write(s.given)
}

// openWithReason opens a text below the reason, which may name lines of it.
func (s *session) openWithReason() error {
	if s.view.Notes() {
		// The note moves the lines which it names; it has as many itself, whatever
		// their numbers are.
		_, above := s.annotate(s.noteLines(s.reason), nil)
		if _, moved := s.read(s.given, above); moved != nil {
			s.reason = moved
		}
	}
	return s.open()
}
