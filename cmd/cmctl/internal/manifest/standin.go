package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/pkg/types"
	yamlv3 "go.yaml.in/yaml/v3"
)

// parseInfinite is ParseYAML for a text that may have .inf or .nan where a string
// belongs, so that all that is wrong with it can be told together. JSON has no word
// for them: another number is read in their place, and then they are put back as
// numbers that nothing can encode. without is the error that it had as it is.
func parseInfinite(text []byte, without error) (types.Document, error) {
	readable, found := standIn(text)
	if found == nil {
		return nil, without
	}
	doc, err := ParseYAML(readable)
	if err != nil {
		return nil, err
	}
	objects := []types.Document{doc}
	if strings.HasSuffix(doc.Kind(), "List") {
		if objects, err = listItems(doc); err != nil {
			return doc, nil // which is told of the List
		}
	}
	for _, in := range found {
		raw, _ := objects[in.object].Value(in.path...)
		if entries, ok := raw.(map[string]any); ok {
			entries[in.key] = json.Number(in.typed)
		}
	}
	return doc, nil
}

// infinity is the place of an .inf or .nan.
type infinity struct {
	object     int // in the List
	path       []string
	key, typed string
}

// standIn puts a number in the place of each that it finds.
func standIn(text []byte) (replaced []byte, found []infinity) {
	// The parser panics on some broken texts, which have other faults.
	defer func() {
		if recover() != nil {
			replaced, found = nil, nil
		}
	}()
	var document yamlv3.Node
	if yamlv3.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return nil, nil
	}
	replaced = bytes.Clone(text)
	for i, object := range objectsIn(document.Content[0]) {
		for _, path := range stringMaps {
			entries := entriesAt(object, path)
			for k := 0; k+1 < len(entries); k += 2 {
				n := entries[k+1]
				if at := offsetOf(text, n); infinite(n) && at >= 0 {
					copy(replaced[at:], strings.Repeat("1", len(n.Value)))
					found = append(found, infinity{i, path, entries[k].Value, n.Value})
				}
			}
		}
	}
	return replaced, found
}

// objectsIn are the items of a List, or the one object that a document is.
func objectsIn(root *yamlv3.Node) []*yamlv3.Node {
	if kind := childOf(root, "kind"); kind == nil || !strings.HasSuffix(kind.Value, "List") {
		return []*yamlv3.Node{root}
	}
	if items := childOf(root, "items"); items != nil {
		return items.Content
	}
	return nil
}

// entriesAt are the keys and values of the map at a path, by turns.
func entriesAt(object *yamlv3.Node, path []string) []*yamlv3.Node {
	at := object
	for _, part := range path {
		if at = childOf(at, part); at == nil {
			return nil
		}
	}
	if at.Kind != yamlv3.MappingNode {
		return nil
	}
	return at.Content
}

// infinite tells .inf and .nan by what they lack. One with an anchor may be meant
// for another place too.
func infinite(n *yamlv3.Node) bool {
	return n.Kind == yamlv3.ScalarNode && n.Style == 0 && n.Anchor == "" && n.ShortTag() == "!!float" && !strings.ContainsAny(n.Value, "0123456789")
}

// offsetOf is where a plain scalar stands in the text, -1 if it doesn't.
func offsetOf(text []byte, n *yamlv3.Node) int {
	at := 0
	for range n.Line - 1 {
		at += bytes.IndexByte(text[at:], '\n') + 1
	}
	for column := 1; column < n.Column; column++ { // the parser counts characters
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	if !bytes.HasPrefix(text[at:], []byte(n.Value)) {
		return -1
	}
	return at
}
