package output

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"example.com/cmctl/pkg/types"
)

// Sorter orders objects by one key after the other. The zero value leaves them
// as they are.
type Sorter []sortKey

type sortKey struct {
	path     *Path
	reversed bool
}

// sortColumns are the columns of the table that can be sorted by, with what
// they show. The youngest have the smallest age.
var sortColumns = map[string]sortKey{
	"name":      {path: mustPath(".metadata.name")},
	"namespace": {path: mustPath(".metadata.namespace")},
	"age":       {path: mustPath(".metadata.creationTimestamp"), reversed: true},
}

func mustPath(text string) *Path { return &Path{source: text, text: "{" + text + "}"} }

// ParseSorter reads the values of --sort-by: jsonpath expressions that lead to a
// field, or NAME, NAMESPACE or AGE.
func ParseSorter(keys []string) (Sorter, error) {
	var s Sorter
	for _, text := range keys {
		if key, ok := sortColumns[strings.ToLower(text)]; ok {
			s = append(s, key)
			continue
		}
		p, err := ParsePath(text)
		if err != nil {
			return nil, err
		}
		if len(p.steps()) == 0 {
			return nil, fmt.Errorf("%q doesn't lead to a field: give one expression such as .metadata.labels.rank", text)
		}
		s = append(s, sortKey{path: p})
	}
	return s, nil
}

// steps are the nodes of a template that is nothing but one expression; nil if
// it is anything else.
func (p *Path) steps() []jsonpath.Node {
	parsed, err := jsonpath.Parse("sort", p.text)
	if err != nil || len(parsed.Root.Nodes) != 1 {
		return nil
	}
	list, ok := parsed.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok {
		return nil
	}
	for _, n := range list.Nodes {
		if field, ok := n.(*jsonpath.FieldNode); ok && field.Value == "" {
			return nil // a dot that nothing follows
		}
		switch n.Type() {
		case jsonpath.NodeField, jsonpath.NodeArray, jsonpath.NodeFilter, jsonpath.NodeWildcard, jsonpath.NodeUnion, jsonpath.NodeRecursive:
		default:
			return nil
		}
	}
	return list.Nodes
}

// NeedsContents tells whether it takes more than the metadata to sort.
func (s Sorter) NeedsContents() bool {
	return slices.ContainsFunc(s, func(k sortKey) bool {
		field, ok := k.path.steps()[0].(*jsonpath.FieldNode)
		return !ok || field.Value != "metadata"
	})
}

// Sort orders the items, whose objects document returns. What lacks a field
// comes after what has it. Numbers come first, by their size, then text.
func Sort[T any](s Sorter, items []T, document func(T) types.Document) error {
	if len(s) == 0 {
		return nil
	}
	type keyed struct {
		item   T
		values []sortValue
	}
	all := make([]keyed, len(items))
	for i, item := range items {
		all[i].item = item
		for _, k := range s {
			v, err := k.valueOf(document(item))
			if err != nil {
				return err
			}
			all[i].values = append(all[i].values, v)
		}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		for i, k := range s {
			if c := k.compare(a.values[i], b.values[i]); c != 0 {
				return c
			}
		}
		return 0
	})
	for i, k := range all {
		items[i] = k.item
	}
	return nil
}

// sortValue is what a key finds in an object.
type sortValue struct {
	missing bool
	number  *big.Rat // nil if it is text
	text    string
}

func (k sortKey) valueOf(d types.Document) (sortValue, error) {
	values, err := k.path.Values(d)
	if err != nil {
		return sortValue{}, err
	}
	if len(values) == 0 || values[0] == nil {
		return sortValue{missing: true}, nil
	}
	text := asText(values[0])
	return sortValue{text: text, number: parseNumber(text)}, nil
}

// parseNumber is the number that a text is, nil if it is none. Exponents are
// none: they could make it too large to compare, and so could many digits.
func parseNumber(text string) *big.Rat {
	const maxDigits = 80
	whole, fraction, dotted := strings.Cut(strings.TrimLeft(text, "+-"), ".")
	signs := len(text) - len(strings.TrimLeft(text, "+-"))
	if signs > 1 || len(text) > maxDigits || !digits(whole) || dotted && !digits(fraction) {
		return nil
	}
	n, _ := new(big.Rat).SetString(text)
	return n
}

func digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

func (k sortKey) compare(a, b sortValue) int {
	if a.missing || b.missing {
		return before(b.missing, a.missing)
	}
	c := a.compare(b)
	if k.reversed {
		return -c
	}
	return c
}

func (v sortValue) compare(other sortValue) int {
	if v.number == nil || other.number == nil {
		return cmp.Or(before(v.number != nil, other.number != nil), strings.Compare(v.text, other.text))
	}
	return v.number.Cmp(other.number)
}

// before is negative if only the first is true, positive if only the second.
func before(first, second bool) int {
	switch {
	case first == second:
		return 0
	case first:
		return -1
	}
	return 1
}
