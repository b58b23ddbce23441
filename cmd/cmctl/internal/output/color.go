package output

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Palette colours text, or leaves it as it is: the zero value does. It may be
// shared.
type Palette struct{ on bool }

// ColorModes are what --color takes.
var ColorModes = []string{"auto", "always", "never"}

// NewPalette is the palette for what is written to w. Mode "auto" means colours
// on a terminal only, unless NO_COLOR is set to anything.
func NewPalette(mode string, w io.Writer) Palette {
	switch mode {
	case "always":
		return Palette{on: true}
	case "never":
		return Palette{}
	}
	file, ok := w.(*os.File)
	return Palette{on: ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Bold is for headings.
func (p Palette) Bold(text string) string { return p.wrap("1", text) }

// Red is for what goes or is wrong.
func (p Palette) Red(text string) string { return p.wrap("31", text) }

// Green is for what comes or is right.
func (p Palette) Green(text string) string { return p.wrap("32", text) }

// Cyan is for places, such as the line numbers of a difference.
func (p Palette) Cyan(text string) string { return p.wrap("36", text) }

func (p Palette) wrap(code, text string) string {
	if !p.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
