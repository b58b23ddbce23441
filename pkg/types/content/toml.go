package content

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// parseTOML reads a document. That keys are there once is the library's own
// rule, as it is TOML's.
func parseTOML(text string) (*Tree, error) {
	switch {
	case deepBrackets(text):
		return nil, faultf(0, "the values lie too deep inside each other")
	case strings.Count(text, "=")+strings.Count(text, "\n[") > maxTOMLKeys:
		return nil, faultf(0, "it has more than %d keys, which are too many to be checked", maxTOMLKeys)
	}
	var value map[string]any
	err := toml.Unmarshal([]byte(text), &value)
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, _ := at.Position()
		return nil, faultf(line, "%s", strings.TrimPrefix(at.Error(), "toml: "))
	}
	if err != nil {
		return nil, faultf(0, "%v", err)
	}
	return tomlTree(value), nil
}

// maxTOMLKeys bounds the time: the library compares each key with all others of
// its table.
const maxTOMLKeys = 10_000

// deepBrackets tells whether more brackets are open at once than values may lie
// inside each other: the library would go as deep as the text says. It counts
// those in strings too, of which no sound text has that many.
func deepBrackets(text string) bool {
	open := 0
	for _, c := range []byte(text) {
		switch c {
		case '[', '{':
			if open++; open > maxDepth {
				return true
			}
		case ']', '}':
			open = max(open-1, 0)
		}
	}
	return false
}

func tomlTree(value any) *Tree {
	switch value := value.(type) {
	case map[string]any:
		children := make(map[string]*Tree, len(value))
		for key, child := range value {
			children[key] = tomlTree(child)
		}
		return newMap(children)
	case []any:
		items := make([]*Tree, len(value))
		for i, child := range value {
			items[i] = tomlTree(child)
		}
		return newList(items)
	}
	return newLeaf(fmt.Sprintf("%T %v", value, value))
}
