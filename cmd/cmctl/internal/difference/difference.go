// Package difference shows what changes in a ConfigMap as people and tools know it
// from files: in unified form, line by line inside each value.
//
//	text := difference.Show(changes, difference.Options{Context: 3})
package difference

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
	"example.com/cmctl/pkg/types/lines"
)

// Options adjust Show. The zero value is usable: no context, no colours.
type Options struct {
	Context int // equal lines around a difference
	Palette output.Palette
	// From and To are what the sides are called: live and file unless given.
	From, To string
	// Mark is said behind the name of the field, such as "conflict".
	Mark string
}

// Show is one part for each change, with the field's name in the place of a file's.
// A binary value is shown by its size and digest, and nothing in a value can do
// anything to a terminal.
func Show(changes []types.Change, o Options) string {
	var out strings.Builder
	for _, c := range changes {
		var part strings.Builder
		fmt.Fprintf(&part, "--- %s\n+++ %s\n", o.name(cmp.Or(o.From, "live"), c.Field, c.From), o.name(cmp.Or(o.To, "file"), c.Field, c.To))
		from, to := text(c.From), text(c.To)
		if from == to { // an empty value came or went
			fmt.Fprintf(&part, "@@ %s -> %s @@\n", kind(c.From), kind(c.To))
		}
		part.WriteString(lines.Unified(ended(from, c.From, to), ended(to, c.To, from), o.Context))
		out.WriteString(o.color(output.Visible(part.String(), "\t\n")))
	}
	return out.String()
}

func (o Options) name(side string, f types.Field, value any) string {
	if value == nil {
		return "/dev/null"
	}
	name := side + " " + f.String()
	if o.Mark != "" {
		name += " (" + o.Mark + ")"
	}
	return name
}

// text is a value as lines.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case types.Binary:
		return describe(v)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return fmt.Sprintln(value)
	}
	return b.String()
}

// ended is a text with a line feed at its end where neither it nor the other has
// one: only where they differ in that is it worth a line.
func ended(text string, value any, other string) string {
	if value == nil || text == "" || strings.HasSuffix(text, "\n") || strings.HasSuffix(other, "\n") {
		return text
	}
	return text + "\n"
}

func describe(b types.Binary) string {
	raw, ok := b.Bytes()
	if !ok {
		return "not base64: " + string(b) + "\n"
	}
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("binary, %d bytes, sha256 %x\n", len(raw), sum[:16])
}

func kind(value any) string {
	if value == nil {
		return "absent"
	}
	return "empty"
}

// color gives each line the colour of its mark.
func (o Options) color(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		bare, end := strings.CutSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			bare = o.Palette.Bold(bare)
		case strings.HasPrefix(line, "@@"):
			bare = o.Palette.Cyan(bare)
		case strings.HasPrefix(line, "-"):
			bare = o.Palette.Red(bare)
		case strings.HasPrefix(line, "+"):
			bare = o.Palette.Green(bare)
		}
		out.WriteString(bare)
		if end {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
