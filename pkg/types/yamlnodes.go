package types

import (
	"bytes"
	"fmt"
	"regexp"
)

// MaxYAMLNodes is how many values and keys YAML that a server is sent may have: what
// it takes to parse one is more than five hundred bytes, and it may be sent in two. The
// largest ConfigMap has far fewer.
const MaxYAMLNodes = 100_000

// checkNodes refuses, before it is parsed, a text that may have too many nodes. It
// reckons from above: what it doesn't understand counts as if each indicator in it began a
// node. So it may refuse a text that has fewer, and passes none that has more.
func checkNodes(text []byte) error {
	if indicators(text) <= MaxYAMLNodes {
		return nil // nearly always
	}
	if n := mostNodes(text); n > MaxYAMLNodes {
		return fmt.Errorf("this may be %d values, and at most %d are taken as YAML; send it as JSON", n, MaxYAMLNodes)
	}
	return nil
}

// indicators is the most nodes that a text can have by the characters which part them:
// each may bring a key and a value.
func indicators(text []byte) int {
	n := 2
	for _, c := range text {
		switch c {
		case '\n', ',', '[', '{', ':', '-', '?':
			n += 2
		}
	}
	return n
}

// plainLine is a line that is whole in itself, whatever comes after it: an entry of a map
// or a list whose value is words, a quoted text, nothing, or the header of a block of text;
// or one that holds no node. What stands inside such a value is no node. The groups are
// what comes before the key, and the header.
var plainLine = regexp.MustCompile(`^( *(?:- +)*)(?:[\w./][\w./:-]*:(?: +|$))?` +
	`(?:[\w./](?:[^:]|:[^\s:])*|'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|\{\}|\[\]|([|>][-+0-9]*))? *$|^ *#|^---$`)

// foreignBreaks are what ends a line for the parser, and not here.
var foreignBreaks = string([]rune{nextLine, lineSep, paraSep, '\r'})

// mostNodes is the most nodes that a text can have. As long as each line is a plain one, a
// block of text can be told by its indentation and passed over. With the first that
// is none, which may leave a quote or a bracket open, all that follows is counted by its
// indicators.
func mostNodes(text []byte) int {
	if bytes.ContainsAny(text, foreignBreaks) {
		return indicators(text)
	}
	n, block := 1, -1 // the column that the lines of a block of text are right of; -1: in none
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		if blank := len(bytes.TrimLeft(line, " ")) == 0; blank || block >= 0 && indent(line) > block {
			text = rest
			continue
		}
		m := plainLine.FindSubmatchIndex(line)
		if m == nil {
			return n + indicators(text)
		}
		block = -1
		n += 2
		if m[2] >= 0 {
			n += bytes.Count(line[m[2]:m[3]], []byte("-"))
		}
		if m[4] >= 0 {
			block = m[3]
		}
		text = rest
	}
	return n
}

func indent(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }
