package blame

import (
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/managed"
	"example.com/cmctl/pkg/types"
	"example.com/cmctl/pkg/types/lines"
)

// Line is a line of a value with its origin.
type Line struct {
	Text string // without its line feed
	Origin
}

// Lines finds out the last write of each line of one text value. It is made by
// NewLines and belongs to one goroutine.
type Lines struct {
	field types.Field
	live  types.Document
	lines []Line
	// at is where each line stands in the version that was added last, counted
	// from 1; 0 once its origin is known.
	at   []int
	open int
	text string // of the field in that version
	last types.HistoryEntry
	any  bool
}

// NewLines begins with the object as it is now. A value that is no text has no
// lines.
func NewLines(live types.Document, f types.Field) *Lines {
	l := &Lines{field: f, live: live}
	value, _ := live.Fields()[f].(string)
	if value == "" {
		return l
	}
	for i, text := range strings.Split(strings.TrimSuffix(value, "\n"), "\n") {
		l.lines = append(l.lines, Line{Text: text, Origin: Origin{Field: f}})
		l.at = append(l.at, i+1)
	}
	l.open = len(l.lines)
	return l
}

// Complete tells whether each line's last write is known.
func (l *Lines) Complete() bool { return l.open == 0 }

// Add takes the next older version, as Blame's does. A version without the
// value, or with a binary one, has none of its lines.
func (l *Lines) Add(e types.HistoryEntry, doc types.Document) {
	older, _ := doc.Fields()[l.field].(string)
	if l.any {
		moved := positions(lines.Diff(older, l.text))
		for i, at := range l.at {
			if at == 0 {
				continue
			}
			if l.at[i] = moved(at); l.at[i] == 0 {
				l.settle(i)
			}
		}
	}
	l.text, l.last, l.any = older, e, true
}

// Begin is as Blame's.
func (l *Lines) Begin() {
	for i, at := range l.at {
		if at != 0 {
			l.at[i] = 0
			l.settle(i)
		}
	}
}

func (l *Lines) settle(i int) {
	l.open--
	l.lines[i].Origin = Origin{
		Field: l.field, Manager: l.last.FieldManager, User: l.last.User, Time: l.last.Time.Time,
		Version: l.last.ResourceVersion, Verb: l.last.Verb, Exact: true,
	}
}

// Origins are the lines with the last write of each, as far as the versions
// tell. A line that is older than all of them was there by the oldest. Without
// any, all are as old as the last write of the value, by whomever.
func (l *Lines) Origins() []Line {
	_, written := managed.Last(l.live, l.field)
	for i, at := range l.at {
		switch {
		case at == 0:
		case l.any:
			l.lines[i].Version, l.lines[i].Time = l.last.ResourceVersion, l.last.Time.Time
		default:
			l.lines[i].Time = written
		}
	}
	return l.lines
}

// positions tells where a line of the newer text stands in the older one; 0 if
// it was added.
func positions(hunks []lines.Hunk) func(line int) int {
	return func(line int) int {
		shift := 0
		for _, h := range hunks {
			if line < h.To {
				break
			}
			if line < h.To+len(h.Added) {
				return 0
			}
			shift += len(h.Removed) - len(h.Added)
		}
		return line + shift
	}
}
