package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/cmctl/cmd/cmctl/internal/fromfiles"
	"example.com/cmctl/pkg/types"
)

// What export writes into an env file, create reads back byte for byte; what
// that can't be said of is refused.
func FuzzEnvFilesAreReadBack(f *testing.F) {
	for _, value := range []string{"", " ", "a=b", "# a", "'", `"a"`, `"a`, "a\r", "\ra", "a\nb", "\\", "$HOME", "\x00", "\u2028", "\ufeff", "\t a\t", "é"} {
		f.Add(value)
	}
	path := filepath.Join(f.TempDir(), "env")
	f.Fuzz(func(t *testing.T, value string) {
		if !utf8.ValidString(value) {
			t.Skip() // such a value is binary
		}
		key := types.Field{Section: "data", Key: "KEY"}
		doc := types.NewDocument("", "flags")
		doc.Set(key, value)
		doc.Set(types.Field{Section: "data", Key: "NEXT"}, "next")
		o := &exportOptions{factory: newFactory(streams{Err: os.Stderr}, nil)}
		text, err := o.asEnv(doc)
		if err != nil {
			if !strings.ContainsAny(value, "\n\r\"'") {
				t.Fatalf("%q is refused: %v", value, err)
			}
			return
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		back := types.NewDocument("", "flags")
		from := fromfiles.Sources{EnvFiles: []string{path}, Note: t.Logf}
		if errs := from.Fill(t.Context(), back); len(errs) > 0 || !back.Equal(doc) {
			t.Errorf("%q was written as %q and read as %v, %v", value, text, back, errs)
		}
	})
}

func TestEnvFilesRefuseBinaryValues(t *testing.T) {
	doc := types.NewDocument("", "flags")
	doc.Set(types.Field{Section: "data", Key: "raw"}, types.Binary("aGk="))
	o := &exportOptions{factory: newFactory(streams{Err: os.Stderr}, nil)}
	if text, err := o.asEnv(doc); err == nil || !strings.Contains(err.Error(), `"raw"`) {
		t.Errorf("%q, %v", text, err)
	}
}
