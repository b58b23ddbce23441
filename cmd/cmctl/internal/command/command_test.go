package command_test

import (
	"os"
	"slices"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/command"
	"mvdan.cc/sh/v3/shell"
)

func TestWords(t *testing.T) {
	t.Setenv("SET", "two words; rm x")
	if err := os.Unsetenv("UNSET"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		want []string // nil: it is no command
	}{
		{"vi", []string{"vi"}},
		{"code --wait", []string{"code", "--wait"}},
		{`'/a b/vi' "-c" x\ y`, []string{"/a b/vi", "-c", "x y"}},
		{`echo "$SET"`, []string{"echo", "two words; rm x"}},
		{`sh -c 'cat "$0"'`, []string{"sh", "-c", `cat "$0"`}},
		{`sh -c "cat $0 $UNSET"`, []string{"sh", "-c", "cat $0 $UNSET"}},
		{"", nil},
		{" ", nil},
		{"a 'b", nil},
		{"a $(b)", nil},
	} {
		t.Run(c.line, func(t *testing.T) {
			got, err := command.Words(c.line)
			if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// Whatever is quoted is read back as one word.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "a", "a b", "it's", `"$HOME"`, "\n", "\t\x01", "~", "é", "!"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := command.Quote(text)
		words, err := shell.Fields(quoted, nil)
		if quoted != text && (err != nil || len(words) != 1 || words[0] != text) {
			t.Errorf("%q is quoted as %q, which is %q, %v", text, quoted, words, err)
		}
	})
}
