package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/cmd/cmctl/internal/view"
	"example.com/cmctl/pkg/types"
)

// noteLines are what stands above the text: what is edited, and why the editor opens
// again if it does.
func (s *session) noteLines(why error) []string {
	lines := []string{s.title()}
	var met *meeting
	var left *leftMarkers
	switch {
	case errors.As(why, &met):
		lines = append(lines, met.lines()...)
	case errors.As(why, &left):
		lines = append(lines, reasons(why)...)
		lines = append(lines, decideLines...)
	case why != nil:
		lines = append(lines, "This was not written:")
		lines = append(lines, reasons(why)...)
		lines = append(lines, "Put it right and save. To give up, leave it as it is: it is then kept.")
	case s.work:
		lines = append(lines,
			"This text was kept by an earlier edit. It is written even if you leave it as it is;",
			"what others changed meanwhile stays. To cancel, empty it, or leave the editor with",
			"an error (:cq in vi): it is then kept.")
	case s.view.Notes():
		lines = append(lines, "What you save is written; what others change meanwhile stays.", "To cancel, leave the text as it is, or empty it.")
	}
	if s.dryRun != dryRunNone {
		lines = append(lines, "A dry run: what would be written is shown, and nothing is.")
	}
	immutable, _ := s.start["immutable"].(bool)
	switch {
	case s.saveAs == "" && helmRecord(s.start):
		lines = append(lines, "A release record of Helm: its data is Helm's, and is not written without --force.")
	case s.saveAs != "":
		lines = append(lines, fmt.Sprintf("What you save becomes the new object %q; this one stays as it is.", s.saveAs))
	case immutable:
		lines = append(lines, "immutable: data cannot change; metadata can; --save-as NAME makes a changed copy")
	}
	if s.saveAs == "" && beingDeleted(s.start) {
		lines = append(lines, fmt.Sprintf("being deleted (%s): what you write goes with it", deletionOf(s.start)))
	}
	if key := s.draft.Shown.Key; key != "" && s.base.Fields()[types.Field{Section: "data", Key: key}] == nil {
		lines = append(lines, fmt.Sprintf("The key %q is not there yet; what you save becomes its value.", key))
	}
	return lines
}

// decideLines tell what to do with markers that are left.
var decideLines = []string{
	"A marked part shows what you wrote, after <<< yours; what was there when you opened",
	"it, after |||; and what is there now, between === and >>>. Keep one side, or write",
	"what both mean, and remove the marker lines; nothing is written until none is left.",
	"To give up, empty the text or leave the markers: it is then kept.",
}

// annotate is the text with that note above it, and how many lines the note has.
// Where the text can't hold one, it goes to stderr.
func (s *session) annotate(lines []string, text []byte) (annotated []byte, above int) {
	if !s.view.Notes() {
		s.note("%s", strings.Join(lines, "\n"))
		return text, 0
	}
	note := view.Note(lines)
	return append(note, text...), bytes.Count(note, []byte("\n"))
}

// title names what is edited.
func (s *session) title() string {
	title := fmt.Sprintf("%s on %s, version %s", s.object.Object(), s.conn.Target(), s.start.ResourceVersion())
	if s.place.of > 1 {
		title += fmt.Sprintf(" (%d of %d)", s.place.n, s.place.of)
	}
	return title
}

// reasons are an error, or several, as lines of a note that stands in the file
// which they are about.
func reasons(err error) []string {
	var lines []string
	for _, err := range allErrors(err) {
		var fault *manifest.Fault
		var conflict *conflictError
		text := err.Error()
		switch {
		case errors.As(err, &fault):
			text = fmt.Sprintf("line %d: %s", fault.Line, fault.Message)
		case errors.As(err, &conflict):
			text = conflict.what
		}
		lines = append(lines, "  "+strings.ReplaceAll(text, "\n", "\n  "))
	}
	return lines
}
