package settings

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Addresses are those of the servers of one store, with commas in between. In the file
// they may stand as a list.
type Addresses string

// UnmarshalYAML reads either form.
func (a *Addresses) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return n.Decode((*string)(a))
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return err
	}
	*a = Addresses(strings.Join(list, ","))
	return nil
}

// joined is a list of texts as one text, and any other value as it is, so that it is
// refused where a text belongs.
func joined(value any) any {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return value
	}
	texts := make([]string, len(list))
	for i, one := range list {
		if texts[i], ok = one.(string); !ok {
			return value
		}
	}
	return strings.Join(texts, ",")
}
