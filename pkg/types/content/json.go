package content

import (
	"encoding/json"
	"errors"
	"strings"
)

// parseJSON reads one value, strictly. The library checks the text first; its
// tokens then show repeated keys, of which it would take the last.
func parseJSON(text string) (*Tree, error) {
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, jsonError(text, err)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	r := jsonReader{dec, &lineCounter{text: text}}
	return r.next()
}

func jsonError(text string, err error) *Error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return faultf(0, "%v", err)
	}
	at := int(syntax.Offset) - 1
	fault := faultf(lineAt(text, at), "%v", err)
	if at >= 0 && at < len(text) && strings.ContainsRune("/#", rune(text[at])) {
		fault.Message += "; JSON has no comments"
	}
	return fault
}

// lineCounter tells lines of places that are asked for from top to bottom.
type lineCounter struct {
	text     string
	at, seen int
}

func (c *lineCounter) line(offset int) int {
	c.seen += strings.Count(c.text[c.at:offset], "\n")
	c.at = offset
	return 1 + c.seen
}

// jsonReader makes a tree of a text that is known to be sound.
type jsonReader struct {
	*json.Decoder
	lines *lineCounter
}

func (r jsonReader) next() (*Tree, error) {
	token, err := r.Token()
	if err != nil {
		return nil, faultf(0, "%v", err)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return r.object()
		}
		return r.array()
	case json.Number:
		return newLeaf("number " + token.String()), nil
	case string:
		return newLeaf("string " + token), nil
	case bool:
		if token {
			return newLeaf("true"), nil
		}
		return newLeaf("false"), nil
	}
	return newLeaf("null"), nil
}

func (r jsonReader) object() (*Tree, error) {
	children, lines := map[string]*Tree{}, map[string]int{}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return nil, faultf(0, "%v", err)
		}
		key, _ := token.(string)
		line := r.lines.line(int(r.InputOffset()))
		if first, found := lines[key]; found {
			return nil, repeated(line, key, first)
		}
		lines[key] = line
		if children[key], err = r.next(); err != nil {
			return nil, err
		}
	}
	return newMap(children), r.close()
}

func (r jsonReader) array() (*Tree, error) {
	var items []*Tree
	for r.More() {
		item, err := r.next()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return newList(items), r.close()
}

func (r jsonReader) close() error {
	if _, err := r.Token(); err != nil {
		return faultf(0, "%v", err)
	}
	return nil
}
