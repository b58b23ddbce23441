package manifest

import (
	"bytes"
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// checkFlow refuses in a text that begins with a bracket what may be broken JSON
// and would become another value as YAML: a quoted text over several lines, of
// which YAML makes one, and an entry without a colon, which is a null. The text
// must be YAML that can be parsed.
func checkFlow(text []byte) error {
	if inBrackets, _ := opening(blankLead(text)); !inBrackets {
		return nil
	}
	// An empty line more between any two is nothing but within a scalar.
	apart := bytes.ReplaceAll(text, []byte("\n"), []byte("\n\n"))
	var as, with yamlv3.Node
	if err := yamlv3.Unmarshal(text, &as); err != nil {
		return err
	}
	if err := yamlv3.Unmarshal(apart, &with); err != nil {
		return err
	}
	return sameFlow(&as, &with)
}

func sameFlow(as, with *yamlv3.Node) error {
	const quoted = yamlv3.DoubleQuotedStyle | yamlv3.SingleQuotedStyle
	switch {
	case as.Style&quoted != 0 && as.Value != with.Value:
		return &lineError{as.Line, "a text in quotes goes over several lines, which YAML would join; write each line feed as \\n in double quotes"}
	case len(as.Content) != len(with.Content):
		return &lineError{as.Line, "this can be read in more than one way"}
	}
	for i, child := range as.Content {
		if as.Kind == yamlv3.MappingNode && i%2 == 1 && child.Kind == yamlv3.ScalarNode && child.Style == 0 && child.Value == "" {
			key := as.Content[i-1]
			return &lineError{key.Line, fmt.Sprintf("%q has no value; write null if that is meant", key.Value)}
		}
		if err := sameFlow(child, with.Content[i]); err != nil {
			return err
		}
	}
	return nil
}
