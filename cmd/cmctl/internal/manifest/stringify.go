package manifest

import (
	"encoding/json"
	"slices"
)

// stringMaps are the maps of a ConfigMap whose values are strings.
var stringMaps = [][]string{{"data"}, {"binaryData"}, {"metadata", "labels"}, {"metadata", "annotations"}}

// stringify makes strings of the values that were typed without quotes, such as
// yes, 0755, 1e3 or ~. A key with nothing after its colon stays without a value,
// and lists and maps stay what they are.
func (c *checker) stringify() {
	for _, path := range stringMaps {
		raw, _ := c.Value(path...)
		entries, _ := raw.(map[string]any)
		for key, value := range entries {
			if typed := c.typed(value, append(slices.Clone(path), key)); typed != "" {
				entries[key] = typed
			}
		}
	}
}

// typed is the value as it stands in the text, empty if it is none to make a
// string of.
func (c *checker) typed(value any, path []string) string {
	switch value.(type) {
	case nil, bool, json.Number:
	default:
		return ""
	}
	if !c.doc.json {
		return c.doc.Typed(slices.Concat(c.at, path))
	}
	// JSON has one way to write these, except for numbers, whose text is kept.
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
