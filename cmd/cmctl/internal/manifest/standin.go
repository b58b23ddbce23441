package manifest

import (
	"bytes"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
)

// standIn puts a number in the place of .inf and .nan where a string belongs, so
// that a text which has them can be read, and all that is wrong with it be told
// together. JSON has no word for them. The checker takes no number there, and what
// was typed is looked up in the text itself. It returns nil if there is none.
func standIn(text []byte) (replaced []byte) {
	// The parser panics on some broken texts, which have other faults.
	defer func() {
		if recover() != nil {
			replaced = nil
		}
	}()
	var document yamlv3.Node
	if yamlv3.Unmarshal(text, &document) != nil || len(document.Content) == 0 {
		return nil
	}
	for _, object := range objectsIn(document.Content[0]) {
		for _, path := range stringMaps {
			for _, n := range valuesAt(object, path) {
				if at := offsetOf(text, n); infinite(n) && at >= 0 {
					if replaced == nil {
						replaced = bytes.Clone(text)
					}
					copy(replaced[at:], strings.Repeat("1", len(n.Value)))
				}
			}
		}
	}
	return replaced
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

// valuesAt are the values of the map at a path.
func valuesAt(object *yamlv3.Node, path []string) (values []*yamlv3.Node) {
	at := object
	for _, part := range path {
		if at = childOf(at, part); at == nil {
			return nil
		}
	}
	if at.Kind != yamlv3.MappingNode {
		return nil
	}
	for i := 1; i < len(at.Content); i += 2 {
		values = append(values, at.Content[i])
	}
	return values
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
