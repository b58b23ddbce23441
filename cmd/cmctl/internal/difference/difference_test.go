package difference_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/difference"
	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
)

func TestShow(t *testing.T) {
	field := types.Field{Section: "data", Key: "k"}
	binary := func(s string) types.Binary { return types.Binary(base64.StdEncoding.EncodeToString([]byte(s))) }
	for _, c := range []struct {
		name     string
		from, to any
		want     string
	}{
		{"a line of several", "a\nb\nc\n", "a\nB\nc\n", "--- live data[k]\n+++ file data[k]\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"a short value", "blue", "green", "--- live data[k]\n+++ file data[k]\n@@ -1 +1 @@\n-blue\n+green\n"},
		{"the last line feed alone", "x", "x\n", "--- live data[k]\n+++ file data[k]\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"},
		{"a key that comes", nil, "x", "--- /dev/null\n+++ file data[k]\n@@ -0,0 +1 @@\n+x\n"},
		{"a key that goes", "x", nil, "--- live data[k]\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		{"an empty value that comes", nil, "", "--- /dev/null\n+++ file data[k]\n@@ absent -> empty @@\n"},
		{"text that becomes binary", "x", binary("\xff"), "--- live data[k]\n+++ file data[k]\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+binary, 1 bytes, sha256 a8100ae6aa1940d0b663bb31cd466142\n"},
		{"what is no string", []any{"a"}, []any{"a", "b"}, "--- live data[k]\n+++ file data[k]\n@@ -1,3 +1,4 @@\n [\n-  \"a\"\n+  \"a\",\n+  \"b\"\n ]\n"},
		{"what a terminal obeys", "a\tb\x1b[2J", "\u202ec\r\n", "--- live data[k]\n+++ file data[k]\n@@ -1 +1 @@\n-a\tb\\x1b[2J\n\\ No newline at end of file\n+\\u202ec\\r\n"},
		{"a boolean", nil, true, "--- /dev/null\n+++ file data[k]\n@@ -0,0 +1 @@\n+true\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := difference.Show([]types.Change{{Field: field, From: c.from, To: c.to}}, difference.Options{Context: 3})
			if got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestColoursEndWithTheirLine(t *testing.T) {
	change := []types.Change{{Field: types.Field{Section: "data", Key: "k"}, From: "a\nb\n", To: "a\nc\n"}}
	plain := difference.Show(change, difference.Options{Context: 1})
	colored := difference.Show(change, difference.Options{Context: 1, Palette: output.NewPalette("always", nil)})
	for line := range strings.Lines(colored) {
		if strings.HasPrefix(line, "\x1b[") != strings.HasSuffix(line, "\x1b[0m\n") {
			t.Errorf("%q", line)
		}
	}
	bare := strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[36m", "", "\x1b[0m", "").Replace(colored)
	if bare != plain {
		t.Errorf("without colours\n%swant\n%s", bare, plain)
	}
}
