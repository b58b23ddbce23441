package types

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Text that is large but has few values is taken; text of too many is not, wherever
// they hide.
func TestNodesAreBoundedBeforeYAMLIsParsed(t *testing.T) {
	const enough = MaxYAMLNodes + 1
	indented := func(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
	list := strings.Repeat("a,", enough)
	dashboard, err := json.MarshalIndent(map[string][]int{"panels": make([]int, enough)}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "  k%d: 'a: [b, c]'\n", i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text string
		taken      bool
	}{
		{"JSON in a block", "# of a dashboard\n---\ndata:\n  board.json: |\n  " + indented(string(dashboard)) + "\nkind: ConfigMap\n", true},
		{"JSON in a block of a list", "items:\n- data:\n    board.json: |-\n    " + indented(indented(string(dashboard))) + "\n  kind: ConfigMap\n", true},
		{"numbers in a block", "data:\n  n.csv: >+2\n    " + list + "\n", true},
		{"JSON in quotes", "data:\n  board.json: '" + strings.ReplaceAll(string(dashboard), "\n", "") + "'\n", true},
		{"JSON in double quotes", "data:\n  board.json: \"" + strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(string(dashboard)) + "\"\n", true},
		{"numbers in a word", "data:\n  n.csv: " + list + "\n", true},
		{"many keys", "data:\n" + keys(MaxYAMLNodes/2-10), true},
		{"too many keys", "data:\n" + keys(MaxYAMLNodes), false},
		{"a list in brackets", "data: [" + list + "]\n", false},
		{"a list over lines", "data: [\n" + strings.ReplaceAll(list, ",", ",\n") + "]\n", false},
		{"maps in brackets", "data: [" + strings.Repeat("{},", enough) + "]\n", false},
		{"dashes", "data:\n" + strings.Repeat("- \n", enough), false},
		{"dashes on one line", "data:\n  " + strings.Repeat("- ", enough) + "a\n", false},
		{"after a block", "a: |\n  text\nb: [" + list + "]\n", false},
		{"under a block in a list", "- a: |\n    text\n  b: [" + list + "]\n", false},
		{"in what is no block", "a: 'x: |\n  ', b: [" + list + "]\n", false},
		{"in what is no block, in brackets", "a: [\n  x, \"y: |\n  \", " + list + "]\n", false},
		{"after a foreign break", "a: |\n  x\u2028b: [" + list + "]\n", false},
		{"after a tab", "a: |\n\tb: [" + list + "]\n", false},
		{"behind an anchor", "a: &x [" + list + "]\n", false},
	} {
		if err := checkNodes([]byte(c.text)); (err == nil) != c.taken {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The reckoning is never below what the parser makes of the text.
func FuzzMostNodes(f *testing.F) {
	for _, seed := range []string{
		"a: b\n", "a: |\n  [x, y]\nb: [c, d]\n", "- a: |\n   x\n  b: {c: d}\n", "- - - a\n", "a: 'b: |\n  ', c: d", "- |\n x\n- y\n", "a:\n  |\n x: y\n z\n",
		"{a: b}", "a: b\n  c\n", "? a\n: - b\n", "a: \"x\\\" [y]\"\n# c, d\n---\n", "a: |1\n  b\n c\n", "a: >-\n\n\n  b: [c]\n d: e\n", "a: |\n  x\u2028b: [c, d]\n", "- a: b\n  c: |\n   d\n- e\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<10 || checkCharacters(text) != nil {
			return
		}
		defer func() { _ = recover() }() // the parser's, of which nothing is made here
		n := 0
		for dec := yamlv3.NewDecoder(bytes.NewReader(text)); ; {
			var doc yamlv3.Node
			if dec.Decode(&doc) != nil {
				break
			}
			n += nodesOf(doc.Content[0])
		}
		if most := mostNodes(text); most < n {
			t.Errorf("%q has %d nodes, and was reckoned to have %d at most", text, n, most)
		}
		if most := indicators(text); most < n {
			t.Errorf("%q has %d nodes, and %d by its indicators", text, n, most)
		}
	})
}

func nodesOf(n *yamlv3.Node) int {
	count := 1
	for _, child := range n.Content {
		count += nodesOf(child)
	}
	return count
}
