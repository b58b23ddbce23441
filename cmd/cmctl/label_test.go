package main

import (
	"io"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
	"github.com/creack/pty"
)

// What an annotation holds can do nothing to a terminal, and reaches a program as
// it is.
func TestListedAnnotationsOnATerminal(t *testing.T) {
	backend, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	onlyServer(t, backend)
	doc := types.NewDocument("default", "an")
	doc.Set(types.Field{Section: "metadata.annotations", Key: "note"}, "\x1b[2Jgone")
	if _, err := directly(t, backend).Create(t.Context(), doc, ""); err != nil {
		t.Fatal(err)
	}
	list := func(out io.Writer) {
		t.Helper()
		var errs strings.Builder
		if code := run(t.Context(), []string{"annotate", "an", "--list"}, streams{In: strings.NewReader(""), Out: out, Err: &errs}, nil); code != exitOK {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
	}

	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	list(terminal)
	shown := make([]byte, 100)
	n, err := screen.Read(shown)
	if got := string(shown[:n]); err != nil || got != "note=\\x1b[2Jgone\r\n" {
		t.Errorf("the terminal got %q, %v", got, err)
	}
	terminal.Close()

	var program strings.Builder
	list(&program)
	if program.String() != "note=\x1b[2Jgone\n" {
		t.Errorf("the program got %q", program.String())
	}
}
