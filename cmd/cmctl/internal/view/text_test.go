package view

import (
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// A note is taken off where it was put and nowhere else.
func TestOnlyTheNoteIsTakenOff(t *testing.T) {
	note := string(Note([]string{"why", "#!/bin/sh"}))
	for _, c := range []struct{ name, text, want string }{
		{"as it was put", note + "a: 1\n# b\n", "a: 1\n# b\n"},
		{"no note", "# mine\na: 1\n", "# mine\na: 1\n"},
		{"comments above and below", "# mine\n\n" + note + "# too\na: 1\n", "# mine\n\n# too\na: 1\n"},
		{"written by an editor of CR LF", strings.ReplaceAll(note+"a: 1\n", "\n", "\r\n"), "a: 1\r\n"},
		{"written by an editor of byte order marks", "\ufeff" + note + "a: 1\n", "a: 1\n"},
		{"lines of it removed", strings.Replace(note, "# why\n", "", 1) + "a: 1\n", "a: 1\n"},
		{"its end removed", strings.Replace(note, noteEnd+"\n", "", 1) + "a: 1\n# b\n", strings.Replace(note, noteEnd+"\n", "", 1) + "a: 1\n# b\n"},
		{"one in a value", "a: |\n" + note + "b\n", "a: |\n" + note + "b\n"},
		{"two", note + note + "a: 1\n", note + "a: 1\n"},
		{"alone", note, ""},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := SplitNote([]byte(c.text)); string(got) != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTidyUndoesWhatEditorsDoByThemselves(t *testing.T) {
	for _, c := range []struct {
		name, value, given, saved, want string
		said                            bool
	}{
		{"nothing", "a\n", "a\n", "b\n", "b\n", false},
		{"CR LF throughout", "a\nb\n", "a\nb\n", "a\r\nc\r\n", "a\nc\n", false},
		{"CR LF in places", "a\nb\n", "a\nb\n", "a\r\nc\n", "a\r\nc\n", false},
		{"CR LF as it was", "a\r\nb\r\n", "a\r\nb\r\n", "a\r\nc\r\n", "a\r\nc\r\n", false},
		{"CR LF where there was one CR", "a\rb\n", "a\rb\n", "a\rc\r\n", "a\rc\r\n", false},
		{"a byte order mark", "a\n", "a\n", "\ufeffb\n", "b\n", true},
		{"a byte order mark as it was", "\ufeffa\n", "\ufeffa\n", "\ufeffb\n", "\ufeffb\n", false},
		{"a byte order mark, and CR LF", "a\n", "a\n", "\ufeffb\r\n", "b\n", true},
		{"a line feed at the end", "a", "a", "b\n", "b", true},
		{"two", "a", "a", "b\n\n", "b\n\n", false},
		{"one that was there", "a\n", "a\n", "b\n", "b\n", false},
		{"one removed", "a\n", "a\n", "b", "b", false},
		{"a new value", "", "", "b\n", "b\n", false},
		{"both", "a", "a", "b\r\n", "b", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := types.NewDocument("default", "flags")
			base.Set(types.Field{Section: "data", Key: "k"}, c.value)
			got, note := Key("k").Tidy([]byte(c.given), []byte(c.saved), base)
			if string(got) != c.want || c.said != (note != "") {
				t.Errorf("%q, want %q; said %q", got, c.want, note)
			}
		})
	}
}
