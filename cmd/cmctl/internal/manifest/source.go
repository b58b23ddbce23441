package manifest

import (
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Source finds the place in a text that a part of a document came from. The
// text is parsed when the first place is asked for, and once.
type Source struct {
	Text   []byte
	Begin  int // the line to name where the text doesn't tell
	root   *yamlv3.Node
	parsed bool
}

// LineOf is the line of the deepest part of the path that the text has.
func (s *Source) LineOf(path []string) int {
	if len(path) == 0 {
		return s.Begin // without parsing the text once more
	}
	if n := s.node(path); n != nil && n.Line > 0 {
		return n.Line
	}
	return s.Begin
}

// Typed is the scalar at the path as it was typed: 0755, yes, 1e3.
func (s *Source) Typed(path []string) string {
	n := target(s.node(path))
	if n == nil || n.Kind != yamlv3.ScalarNode {
		return ""
	}
	return n.Value
}

// node is the deepest part of the path that the text has, nil if the text
// can't be parsed.
func (s *Source) node(path []string) *yamlv3.Node {
	if !s.parsed {
		s.parsed = true
		var document yamlv3.Node
		if err := yamlv3.Unmarshal(s.Text, &document); err == nil && len(document.Content) > 0 {
			s.root = document.Content[0]
		}
	}
	at := s.root
	for _, part := range path {
		next := childOf(at, part)
		if next == nil {
			break
		}
		at = next
	}
	return at
}

// childOf is an entry of a map, those that it merges included, or an item of a
// list.
func childOf(n *yamlv3.Node, part string) *yamlv3.Node {
	if n = target(n); n == nil {
		return nil
	}
	switch n.Kind {
	case yamlv3.MappingNode:
		return entryOf(n, part)
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

func entryOf(n *yamlv3.Node, key string) *yamlv3.Node {
	var merged []*yamlv3.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch name, value := target(n.Content[i]), n.Content[i+1]; {
		case name.Value == "<<" && target(value).Kind == yamlv3.SequenceNode:
			merged = append(merged, target(value).Content...)
		case name.Value == "<<":
			merged = append(merged, value)
		case name.Value == key:
			return value
		}
	}
	for _, m := range merged {
		if found := childOf(m, key); found != nil {
			return found
		}
	}
	return nil
}

// target is what an alias stands for.
func target(n *yamlv3.Node) *yamlv3.Node {
	if n != nil && n.Kind == yamlv3.AliasNode {
		return n.Alias
	}
	return n
}
