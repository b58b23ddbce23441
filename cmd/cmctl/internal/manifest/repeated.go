package manifest

import (
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// RepeatedKeys finds the keys that a map of a YAML or JSON text has twice, and
// names the lines of both. A text that can't be parsed has none.
func RepeatedKeys(file string, text []byte) (faults []error) {
	// The parser panics on some broken texts, which have other faults.
	defer func() {
		if recover() != nil {
			faults = nil
		}
	}()
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(text, &document); err != nil {
		return nil
	}
	return repeatedIn(file, &document, "")
}

func repeatedIn(file string, n *yamlv3.Node, path string) (faults []error) {
	first := map[string]int{}
	for i, child := range n.Content {
		at := path
		if n.Kind == yamlv3.MappingNode {
			key := n.Content[i-i%2]
			at = joined(path, key.Value)
			if line, twice := first[key.Value]; i%2 == 0 && twice && key.Kind == yamlv3.ScalarNode {
				faults = append(faults, &Fault{File: file, Line: child.Line,
					Message: fmt.Sprintf("the key %q is given twice%s, here and in line %d; only one could be kept", key.Value, within(path), line)})
			} else if i%2 == 0 {
				first[key.Value] = child.Line
			}
		}
		faults = append(faults, repeatedIn(file, child, at)...)
	}
	return faults
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func within(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}
