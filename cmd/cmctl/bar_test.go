package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestTheBarAppearsOnceWorkTakesAWhile(t *testing.T) {
	var screen bytes.Buffer
	now := time.Unix(0, 0)
	b := newBar(&screen, "apply", 4, func() time.Time { return now })
	b.w = &screen // as if it were a terminal
	b.draw(1)
	b.clear()
	if screen.Len() > 0 {
		t.Errorf("at once it shows %q", &screen)
	}
	now = now.Add(barPace)
	b.draw(2)
	b.draw(3) // too soon after the last
	if want := "\rapply [" + strings.Repeat("#", 15) + strings.Repeat(".", 15) + "] 2 of 4"; screen.String() != want {
		t.Errorf("it shows %q, want %q", &screen, want)
	}
	screen.Reset()
	b.clear()
	b.draw(3) // back at once after other lines
	if got := screen.String(); !strings.HasPrefix(got, "\r\x1b[K\rapply [") || !strings.HasSuffix(got, "3 of 4") {
		t.Errorf("after other lines it shows %q", got)
	}
}

func TestTheBarIsForTerminals(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	now := time.Unix(0, 0)
	b := newBar(file, "apply", 4, func() time.Time { return now })
	now = now.Add(time.Hour)
	b.draw(2)
	b.clear()
	if info, err := file.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("%v, %v", info, err)
	}
}
