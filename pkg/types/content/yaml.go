package content

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads a stream of documents.
func parseYAML(text string) (*Tree, error) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	var docs []*Tree
	for {
		var doc yaml.Node
		switch err := dec.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return newList(docs), nil
		case err != nil:
			return nil, YAMLError(text, err)
		}
		tree, err := (&yamlReader{anchors: map[*yaml.Node]string{}, uses: map[string]int{}}).tree(&doc)
		if err != nil {
			return nil, err
		}
		docs = append(docs, tree)
	}
}

// yamlReader makes a tree of one document. An alias is a leaf that names its
// anchor: it is never replaced, so that aliases of aliases cost nothing, and a
// change to what it stands for is one at the anchor's own place.
type yamlReader struct {
	anchors map[*yaml.Node]string
	uses    map[string]int // how often an anchor's name was given so far
}

func (r *yamlReader) tree(n *yaml.Node) (*Tree, error) {
	anchor := ""
	if n.Anchor != "" {
		r.uses[n.Anchor]++
		anchor = fmt.Sprintf("%s %d", n.Anchor, r.uses[n.Anchor])
		r.anchors[n] = anchor
	}
	tree, err := r.value(n)
	if err != nil || anchor == "" {
		return tree, err
	}
	return newList([]*Tree{newLeaf(anchor), tree}), nil
}

func (r *yamlReader) value(n *yaml.Node) (*Tree, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return newLeaf("alias " + r.anchors[n.Alias]), nil
	case yaml.MappingNode:
		return r.mapping(n)
	case yaml.DocumentNode, yaml.SequenceNode:
		items := make([]*Tree, len(n.Content))
		for i, child := range n.Content {
			var err error
			if items[i], err = r.tree(child); err != nil {
				return nil, err
			}
		}
		return newList(items), nil
	}
	return newLeaf(n.ShortTag() + " " + n.Value), nil
}

func (r *yamlReader) mapping(n *yaml.Node) (*Tree, error) {
	children, lines := map[string]*Tree{}, map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, err := r.name(key)
		if err != nil {
			return nil, err
		}
		if first, found := lines[name]; found {
			return nil, repeated(key.Line, key.Value, first)
		}
		lines[name] = key.Line
		if children[name], err = r.tree(value); err != nil {
			return nil, err
		}
	}
	return newMap(children), nil
}

// name makes keys comparable. Scalars go by their text, so that 1 and "1" are
// the same, as they are to those who read YAML as JSON.
func (r *yamlReader) name(key *yaml.Node) (string, error) {
	if key.Kind == yaml.ScalarNode && key.Anchor == "" {
		return "scalar " + key.Value, nil
	}
	tree, err := r.tree(key)
	if err != nil {
		return "", err
	}
	return "tree " + string(tree.sum[:]), nil
}

// zeroBased are the messages of the library's parser, which counts lines from
// 0; its other parts count from 1.
var zeroBased = regexp.MustCompile(`^(did not find expected (node content|'-' indicator|key$|',' or|<)|` +
	`found (duplicate %|incompatible YAML|undefined tag handle))`)

// positioned are messages about a place, which lack it if it is line 0.
var positioned = regexp.MustCompile(`^(did not find|found|mapping (keys|values) are not|block (sequence|mapping)|could not find)`)

// YAMLError is what a YAML library says about a text, with the line counted
// from 1 throughout.
func YAMLError(text string, err error) *Error {
	message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	message = strings.TrimPrefix(message, "unmarshal errors:\n  ")
	message = strings.ReplaceAll(message, "\n  ", "; ")
	line := 0
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, message = n, after
			}
		}
	}
	switch {
	case zeroBased.MatchString(message):
		line++
	case line == 0 && positioned.MatchString(message):
		line = 1
	}
	// The end of the text is on a line of its own to the parser.
	last := 1 + strings.Count(strings.TrimSuffix(text, "\n"), "\n")
	return &Error{Line: min(line, last), Message: message}
}
