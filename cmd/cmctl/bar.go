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
	n     int
	now   func() time.Time
	last  time.Time // when it was drawn, or began
	begun bool      // it was shown once
	drawn bool      // it is on the screen
}

const (
	barPace  = 200 * time.Millisecond // how often it is drawn, and how long it waits at first
	barWidth = 30
)

func newBar(w io.Writer, verb string, n int, now func() time.Time) *bar {
	b := &bar{verb: verb, n: n, now: now, last: now()}
	if f, ok := w.(*os.File); ok && n > 1 && term.IsTerminal(int(f.Fd())) {
		b.w = w
	}
	return b
}

// draw shows the bar on the last line.
func (b *bar) draw(done int) {
	soon := b.now().Sub(b.last) < barPace
	if b.w == nil || soon && (b.drawn || !b.begun) {
		return
	}
	b.last, b.begun, b.drawn = b.now(), true, true
	full := barWidth * done / b.n
	fmt.Fprintf(b.w, "\r%s [%s%s] %d of %d", b.verb, strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done, b.n)
}

// clear makes room for other lines.
func (b *bar) clear() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = false
	}
}
