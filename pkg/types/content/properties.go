package content

import (
	"regexp"
	"strings"

	"github.com/magiconair/properties"
)

// parseProperties reads Java properties. The library takes the last of repeated
// keys without a word and tells no lines, so that it gets one entry at a time.
func parseProperties(text string) (*Tree, error) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	children, lines := map[string]*Tree{}, map[string]int{}
	for _, e := range entries(text) {
		p, err := loader.LoadBytes([]byte(e.text))
		if err != nil {
			return nil, propertiesError(e, err)
		}
		for key, value := range p.Map() {
			if first, found := lines[key]; found {
				return nil, repeated(e.line, key, first)
			}
			lines[key] = e.line
			children[key] = newLeaf(value)
		}
	}
	return newMap(children), nil
}

// entry is one key with its value, on one or more lines.
type entry struct {
	line int // its first
	text string
}

// placeInEntry is where in its text the library found something.
var placeInEntry = regexp.MustCompile(`^properties: (Line [0-9]+: )?`)

func propertiesError(e entry, err error) *Error {
	return faultf(e.line, "%s", placeInEntry.ReplaceAllString(err.Error(), ""))
}

// entries cuts the text where an entry ends: at the end of a line, unless an odd
// number of backslashes is there.
func entries(text string) []entry {
	var all []entry
	open := false
	for i, line := range strings.SplitAfter(text, "\n") {
		trimmed := strings.TrimLeft(line, " \t\f\r\n")
		switch {
		case open:
			all[len(all)-1].text += line
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == '!':
			continue
		default:
			all = append(all, entry{i + 1, line})
		}
		body := strings.TrimRight(line, "\r\n")
		open = (len(body)-len(strings.TrimRight(body, `\`)))%2 == 1
	}
	return all
}
