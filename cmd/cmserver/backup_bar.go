package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// bar shows on a terminal how far many objects are, once that takes a while. On
// anything else it shows nothing.
type bar struct {
	w     io.Writer // nil if there is no terminal
	verb  string
	now   func() time.Time
	next  time.Time // not drawn before
	drawn bool
}

const (
	barPace  = 200 * time.Millisecond // how often it is drawn, and how long it waits at first
	barWidth = 30
)

func newBar(w io.Writer, verb string) *bar {
	b := &bar{verb: verb, now: time.Now}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.w = w
	}
	b.next = b.now().Add(barPace)
	return b
}

func (b *bar) draw(done, of int) {
	if b.w == nil || b.now().Before(b.next) || done > of {
		return
	}
	b.next, b.drawn = b.now().Add(barPace), true
	full := barWidth * done / of
	fmt.Fprintf(b.w, "\r%s [%s%s] %d of %d objects", b.verb, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done, of)
}

// clear makes room for other lines.
func (b *bar) clear() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = false
	}
}
