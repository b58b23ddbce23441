package fromfiles_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/fromfiles"
	"example.com/cmctl/pkg/types"
)

// fill runs the sources and returns the keys with their values, binary ones in
// brackets.
func fill(s fromfiles.Sources) (data map[string]string, notes []string, errs []error) {
	s.Note = func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if s.KeySep == "" {
		s.KeySep = "_"
	}
	doc := types.NewDocument("", "x")
	errs = s.Fill(context.Background(), doc)
	data = map[string]string{}
	for f, v := range doc.Fields() {
		switch v := v.(type) {
		case string:
			data[f.Key] = v
		case types.Binary:
			raw, _ := v.Bytes()
			data[f.Key] = "[" + string(raw) + "]"
		}
	}
	return data, notes, errs
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEnvFiles(t *testing.T) {
	t.Setenv("IN_THE_ENVIRONMENT", "here")
	long := strings.Repeat("x", 70000)
	for _, c := range []struct {
		name, text string
		dotenv     bool
		want       map[string]string
		wrong      string // part of the error
	}{
		{name: "values as they stand", text: "A=\"x\"\nB='y' # no comment\nC= z \n", want: map[string]string{"A": `"x"`, "B": "'y' # no comment", "C": " z "}},
		{name: "comments, blank lines, blanks before a key", text: "# c\n\n  A=1\n", want: map[string]string{"A": "1"}},
		{name: "CRLF and a byte order mark", text: "\ufeffA=1\r\nB=2\r\n", want: map[string]string{"A": "1", "B": "2"}},
		{name: "no end of line at the end", text: "A=1", want: map[string]string{"A": "1"}},
		{name: "a line of any length", text: "A=1\nB=" + long + "\nC=3\n", want: map[string]string{"A": "1", "B": long, "C": "3"}},
		{name: "= in a value", text: "A=b=c\n", want: map[string]string{"A": "b=c"}},
		{name: "from the environment", text: "IN_THE_ENVIRONMENT\n", want: map[string]string{"IN_THE_ENVIRONMENT": "here"}},
		{name: "not in the environment", text: "A=1\nNOT_SET_HERE\n", wrong: ":2: NOT_SET_HERE has no value"},
		{name: "an open quote", text: "A=\"x\ny\"\n", wrong: ":1: the value of A begins with a quote"},
		{name: "a line that is no entry", text: "A=x\ny/z\n", wrong: `:2: "y/z" can't be a key: '/'`},
		{name: "a key twice", text: "A=1\nA=2\n", wrong: `key "A" is given twice`},
		{name: "bytes that are no text", text: "A=\xff\n", wrong: "not UTF-8 text: byte 2"},
		{name: "dotenv: quotes", dotenv: true, text: "A=\"x\"\nB='y'\n", want: map[string]string{"A": "x", "B": "y"}},
		{name: "dotenv: several lines", dotenv: true, text: "A=\"x\n # no comment\ny\" # comment\nB='1\r\n2'\n", want: map[string]string{"A": "x\n # no comment\ny", "B": "1\n2"}},
		{name: "dotenv: escapes in double quotes alone", dotenv: true, text: `A="a\nb\"c\\d\te"` + "\n" + `B='a\nb'` + "\n", want: map[string]string{"A": "a\nb\"c\\d\te", "B": `a\nb`}},
		{name: "dotenv: variables stay", dotenv: true, text: "A=\"$HOME\"\nB=${HOME}\n", want: map[string]string{"A": "$HOME", "B": "${HOME}"}},
		{name: "dotenv: export and blanks", dotenv: true, text: "export A = x # c\nB=a#b\n", want: map[string]string{"A": "x", "B": "a#b"}},
		{name: "dotenv: never closed", dotenv: true, text: "A='x\nB=1\n", wrong: ":1: the quote that begins the value is never closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, _, errs := fill(fromfiles.Sources{EnvFiles: []string{write(t, "app.env", c.text)}, Dotenv: c.dotenv})
			if c.wrong != "" {
				if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.wrong) {
					t.Errorf("errors %v, want one with %q", errs, c.wrong)
				}
				return
			}
			if len(errs) > 0 || !maps.Equal(data, c.want) {
				t.Errorf("%v, %.200v; want %.200v", errs, data, c.want)
			}
		})
	}
}

// An unreadable folder is an error, not an empty one.
func TestAFolderThatCantBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	_, _, errs := fill(fromfiles.Sources{Files: []string{dir}})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "dangling: no such file") {
		t.Errorf("errors %v", errs)
	}
}

func TestEncodingsAreGuessed(t *testing.T) {
	for _, c := range []struct{ name, bytes, guess string }{
		{"UTF-16 with a byte order mark", "\xff\xfeh\x00i\x00", "UTF-16LE"},
		{"the other byte order", "\xfe\xff\x00h\x00i", "UTF-16BE"},
		{"without a mark", "h\x00e\x00l\x00l\x00o\x00", "UTF-16LE"},
		{"Latin-1", "caf\xe9 cr\xe8me", "Latin-1"},
		{"a program", "\x7fELF\x02\x01\x01\xff\xfe\x00\x00", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, notes, errs := fill(fromfiles.Sources{Files: []string{write(t, "f", c.bytes)}})
			if len(errs) > 0 || len(notes) != 1 {
				t.Fatalf("%v, %v", errs, notes)
			}
			if _, guess, _ := strings.Cut(notes[0], "looks like "); strings.TrimSuffix(guess, ")") != c.guess {
				t.Errorf("said %q, want a guess of %q", notes[0], c.guess)
			}
		})
	}
}

// Whatever bytes a file holds, they are what is stored.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"", "a", "a\r\nb", "\xff\xfe", "a\x00b\x00", "\xef\xbb\xbfx"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		data, _, errs := fill(fromfiles.Sources{Files: []string{"k=" + write(t, "f", string(text))}})
		if got := strings.TrimSuffix(strings.TrimPrefix(data["k"], "["), "]"); len(errs) > 0 || data["k"] != string(text) && got != string(text) {
			t.Errorf("%v: %q became %q", errs, text, data["k"])
		}
	})
}

// An env file of any bytes gives keys that can be stored, or an error; and no
// entry is lost without a word: in kubectl's format each line is one.
func FuzzEnvFile(f *testing.F) {
	for _, seed := range []string{"A=1\nB=2\n", "A=\"x\ny\"", "export A='b'", "A=\\\"", "#\n\n A", "A=\"\\", "\ufeff"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, text string, dotenv bool) {
		data, _, errs := fill(fromfiles.Sources{EnvFiles: []string{write(t, "f", text)}, Dotenv: dotenv})
		if len(errs) > 0 || dotenv {
			return
		}
		entries := 0
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			if line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t"); line != "" && line[0] != '#' {
				entries++
			}
		}
		if len(data) != entries {
			t.Errorf("%d entries became the keys %v", entries, slices.Sorted(maps.Keys(data)))
		}
	})
}
