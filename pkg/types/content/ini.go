package content

import "strings"

// parseINI reads sections, keys and values in the way that the many programs
// with such files have in common: [section], key = value or key: value, comments
// after ; and #, keys without a value, and lines that are indented more than a
// key's as the rest of its value. A section may come again and goes on; a key
// may come again only with [] at its end, which makes a list.
//
// This is our own and no library's, since gopkg.in/ini.v1 tells no lines, takes
// the last of repeated keys without a word, and reads indented lines either
// always or never as values.
func parseINI(text string) (*Tree, error) {
	r := iniReader{sections: map[string]map[string]*iniValue{}}
	for i, line := range strings.Split(text, "\n") {
		if err := r.read(i+1, strings.TrimRight(line, " \t\r\f\v")); err != nil {
			return nil, err
		}
	}
	sections := map[string]*Tree{}
	for name, keys := range r.sections {
		children := map[string]*Tree{}
		for key, v := range keys {
			children[key] = newLeaf(v.text)
		}
		sections[name] = newMap(children)
	}
	return newMap(sections), nil
}

type iniReader struct {
	sections map[string]map[string]*iniValue
	section  string
	last     *iniValue // what an indented line goes on with
}

type iniValue struct {
	line   int
	indent int
	text   string
}

func (r *iniReader) read(number int, line string) error {
	body := strings.TrimLeft(line, " \t")
	indent := len(line) - len(body)
	switch {
	case body == "" || body[0] == ';' || body[0] == '#':
		return nil
	case r.last != nil && indent > r.last.indent:
		r.last.text += "\n" + body
		return nil
	case body[0] == '[':
		return r.open(number, body)
	}
	key, value, separated := body, "", false
	if at := strings.IndexAny(body, "=:"); at >= 0 {
		key, value, separated = strings.TrimSpace(body[:at]), "="+strings.TrimSpace(body[at+1:]), true
	}
	if separated && key == "" {
		return faultf(number, "a key is missing before %q", body[:1])
	}
	return r.set(number, indent, key, value)
}

func (r *iniReader) open(number int, body string) error {
	end := strings.LastIndexByte(body, ']')
	if end < 0 {
		return faultf(number, "the section is not closed: ] is missing")
	}
	if rest := strings.TrimSpace(body[end+1:]); rest != "" && rest[0] != ';' && rest[0] != '#' {
		return faultf(number, "after the section's ] there is more: %q", rest)
	}
	r.section, r.last = body[1:end], nil
	return nil
}

func (r *iniReader) set(number, indent int, key, value string) error {
	keys := r.sections[r.section]
	if keys == nil {
		keys = map[string]*iniValue{}
		r.sections[r.section] = keys
	}
	known, found := keys[key]
	switch {
	case !found:
		known = &iniValue{line: number, indent: indent, text: value}
		keys[key] = known
	case strings.HasSuffix(key, "[]"):
		known.text += "\n" + value
	default:
		return repeated(number, key, known.line)
	}
	r.last = known
	return nil
}
