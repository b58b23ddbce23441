package types

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/cmctl/pkg/types/content"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// YAMLToJSON turns one YAML document into JSON, with the meaning that
// Kubernetes gives it, and refuses what that library would drop or change
// without a word: what follows the first document, a key that is no string
// (yes, 0755 and 1.10 would become true, 493 and 1.1), a repeated key, tags that
// it doesn't know, and line breaks that only YAML takes for such. Text without
// any content is null. An error begins with "line N: " where the line is known.
func YAMLToJSON(text []byte) ([]byte, error) {
	out, _, err := convertYAML(text, false)
	return out, err
}

// YAMLToJSONRepeated is YAMLToJSON for a server that answers as Kubernetes does:
// of a repeated key the last value counts, and repeated tells of each, as
// `line N: key "k" already set in map`. A text of more than MaxYAMLNodes is refused.
func YAMLToJSONRepeated(text []byte) (out []byte, repeated []string, err error) {
	if err := checkNodes(text); err != nil {
		return nil, nil, err
	}
	return convertYAML(text, true)
}

func convertYAML(text []byte, mayRepeat bool) (out []byte, repeated []string, err error) {
	defer func() {
		// The parser panics on some broken texts, which is no reason to end.
		if cause := recover(); cause != nil {
			out, repeated, err = nil, nil, fmt.Errorf("the YAML parser failed: %v", cause)
		}
	}()
	if err := checkCharacters(text); err != nil {
		return nil, nil, err
	}
	root, err := parseOne(text)
	if err != nil {
		return nil, nil, err
	}
	if root == nil {
		return []byte("null"), nil, nil
	}
	if err := checkAliases(root); err != nil {
		return nil, nil, err
	}
	kept := breaks{all: map[rune]int{}, raw: map[rune]int{}}
	if err := checkNode(root, kept); err != nil {
		return nil, nil, err
	}
	if err := checkBreaks(text, kept); err != nil {
		return nil, nil, err
	}
	out, err = yaml.YAMLToJSONStrict(text)
	if repeated = repeatedKeys(err); mayRepeat && repeated != nil {
		out, err = yaml.YAMLToJSON(text)
	}
	if err != nil {
		return nil, nil, yamlError(text, err)
	}
	return out, repeated, checkMeaning(root, out)
}

// unmarshalErrors is what the library puts before what it finds in a document
// that can be parsed.
const unmarshalErrors = "yaml: unmarshal errors:\n  "

var repeatedKey = regexp.MustCompile(`^line [0-9]+: key .* already set in map$`)

// repeatedKeys are the lines of an error that tells of nothing but repeated keys.
func repeatedKeys(err error) []string {
	if err == nil {
		return nil
	}
	text, ok := strings.CutPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), unmarshalErrors)
	lines := strings.Split(text, "\n  ")
	if !ok || slices.ContainsFunc(lines, func(line string) bool { return !repeatedKey.MatchString(line) }) {
		return nil
	}
	return lines
}

// parseOne is the only document of the text; nil if it has no content. Empty
// documents may follow, as many templates end with a marker.
func parseOne(text []byte) (*yamlv3.Node, error) {
	dec := yamlv3.NewDecoder(bytes.NewReader(text))
	var doc yamlv3.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, yamlError(text, err)
	}
	for {
		var more yamlv3.Node
		switch err := dec.Decode(&more); {
		case errors.Is(err, io.EOF):
			return doc.Content[0], nil
		case err != nil:
			return nil, yamlError(text, err)
		}
		if root := more.Content[0]; !isEmpty(root) {
			return nil, fmt.Errorf("line %d: another YAML document begins here; send them one by one", root.Line)
		}
	}
}

func isEmpty(n *yamlv3.Node) bool {
	return n.Kind == yamlv3.ScalarNode && n.Value == "" && n.Style == 0 && n.Anchor == ""
}

// maxExpanded is how many bytes a text with aliases may stand for: more than any
// object may have.
const maxExpanded = 4 << 20

// checkAliases refuses a text whose aliases stand for more than they should, before
// anything is made of them.
func checkAliases(root *yamlv3.Node) error {
	e := expansion{sizes: map[*yamlv3.Node]int{}}
	if size := e.of(root); e.aliases && !e.endless && size > maxExpanded {
		return fmt.Errorf("line %d: the aliases stand for too much text; write out what is meant", root.Line)
	}
	return nil
}

// expansion reckons what nodes amount to once aliases are replaced.
type expansion struct {
	aliases bool
	endless bool                 // a node is inside itself, which the parser refuses
	sizes   map[*yamlv3.Node]int // of those that have an anchor; beyond maxExpanded it is not exact
}

func (e *expansion) of(n *yamlv3.Node) int {
	if n.Kind == yamlv3.AliasNode {
		e.aliases = true
		n = n.Alias
	}
	if n.Anchor != "" {
		if size, ok := e.sizes[n]; ok {
			e.endless = e.endless || size == 0
			return size
		}
		e.sizes[n] = 0 // until it is known
	}
	size := len(n.Value) + 1
	for _, child := range n.Content {
		size = min(size+e.of(child), maxExpanded+1)
	}
	if n.Anchor != "" {
		e.sizes[n] = size
	}
	return size
}

// The characters that YAML takes for line breaks besides LF and CR LF, and the
// byte order mark, which it skips at the start of a line.
const (
	nextLine  = '\u0085'
	lineSep   = '\u2028'
	paraSep   = '\u2029'
	orderMark = '\ufeff'
)

// checkCharacters refuses, with their line, characters that YAML doesn't have
// and line breaks that it always turns into something else.
func checkCharacters(text []byte) error {
	text = bytes.TrimPrefix(text, []byte(string(orderMark)))
	for i, line := 0, 1; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("line %d: byte 0x%02x is not UTF-8 text; bytes belong into binaryData, as base64", line, text[i])
		case r == '\n':
			line++
		case r == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			return foreignBreak(line, r)
		case r == nextLine:
			return foreignBreak(line, r)
		case r < ' ' && r != '\t' && r != '\r', r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff:
			return fmt.Errorf("line %d: control character %U; write it as an escape in double quotes", line, r)
		}
		i += size
	}
	return nil
}

func foreignBreak(line int, r rune) error {
	return fmt.Errorf("line %d: %U is a line break in YAML, or nothing; write it as an escape in double quotes", line, r)
}

// escapesOf are the escapes that stand for the characters which checkBreaks
// counts.
var escapesOf = map[rune]*regexp.Regexp{
	lineSep:   regexp.MustCompile(`\\(?:L|u2028|U00002028)`),
	paraSep:   regexp.MustCompile(`\\(?:P|u2029|U00002029)`),
	orderMark: regexp.MustCompile(`\\(?:u|U0000)[fF][eE][fF][fF]`),
}

// breaks counts characters in values: in all of them, and in those that have no
// escapes, where each must have stood in the text as it is.
type breaks struct{ all, raw map[rune]int }

// checkBreaks compares how often a character stands in the text with how often
// it stands in the values: what is missing there was taken for a line break. If
// the values without escapes have all of them, none is missing. Otherwise some
// stand in double quotes, where escapes count too; text that only looks like an
// escape makes the count too high then, and is refused at worst.
func checkBreaks(text []byte, kept breaks) error {
	text = bytes.TrimPrefix(text, []byte(string(orderMark)))
	for r, escape := range escapesOf {
		raw := []byte(string(r))
		n := bytes.Count(text, raw)
		if n != kept.raw[r] && n+len(escape.FindAllIndex(text, -1)) != kept.all[r] {
			before := text[:bytes.Index(text, raw)]
			return foreignBreak(1+bytes.Count(before, []byte("\n")), r)
		}
	}
	return nil
}

// knownTags are those of JSON's types. !!binary is not among them: its bytes
// would end up in a JSON string, which can't hold them.
var knownTags = map[string]bool{"!!str": true, "!!int": true, "!!float": true, "!!bool": true, "!!null": true,
	"!!map": true, "!!seq": true, "!!timestamp": true, "!!merge": true}

// checkNode refuses keys that are no strings and unknown tags, at any depth. It
// counts in kept the characters that checkBreaks asks for. It follows no alias,
// so that it sees each node once.
func checkNode(n *yamlv3.Node, kept breaks) error {
	if n.Style&yamlv3.TaggedStyle != 0 && !knownTags[n.ShortTag()] {
		advice := "write the value without it"
		if n.ShortTag() == "!!binary" {
			advice = "put the base64 into binaryData, without the tag"
		}
		return fmt.Errorf("line %d: tag %s is not known here; %s", n.Line, n.ShortTag(), advice)
	}
	if n.Kind == yamlv3.ScalarNode && !isASCII(n.Value) {
		for _, r := range n.Value {
			if r == lineSep || r == paraSep || r == orderMark {
				kept.all[r]++
				if n.Style&yamlv3.DoubleQuotedStyle == 0 {
					kept.raw[r]++
				}
			}
		}
	}
	for i, child := range n.Content {
		if n.Kind == yamlv3.MappingNode && i%2 == 0 {
			if err := checkKey(child); err != nil {
				return err
			}
		}
		if n.Kind == yamlv3.MappingNode && i%2 == 1 && infinite(child) {
			return fmt.Errorf("line %d: the value %s of %s is no number in JSON; put it in quotes: %q", child.Line, child.Value, n.Content[i-1].Value, child.Value)
		}
		if err := checkNode(child, kept); err != nil {
			return err
		}
	}
	return nil
}

// infinite is true for .inf and .nan, for which JSON has no word.
func infinite(n *yamlv3.Node) bool {
	return n.Kind == yamlv3.ScalarNode && n.ShortTag() == "!!float" && strings.HasPrefix(strings.TrimLeft(n.Value, "+-"), ".") && !strings.ContainsAny(n.Value, "0123456789")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func checkKey(key *yamlv3.Node) error {
	n := key
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind != yamlv3.ScalarNode:
		return fmt.Errorf("line %d: a key must be a string, not a map or a list", key.Line)
	case n.Style&yamlv3.TaggedStyle != 0:
		if tag := n.ShortTag(); tag != "!!str" && tag != "!!merge" {
			return fmt.Errorf("line %d: a key must be a string, not %s", key.Line, tag)
		}
	case n.Style != 0 || isMerge(n):
	case n.Value == "":
		return fmt.Errorf("line %d: a key is missing before the colon", key.Line)
	case !plainString(n.Value):
		return fmt.Errorf(`line %d: key %s is not a string in YAML; put it in quotes: "%s"`, key.Line, n.Value, n.Value)
	}
	return nil
}

// isMerge is true for the key << that takes over the entries of another map.
func isMerge(n *yamlv3.Node) bool {
	return n.Kind == yamlv3.ScalarNode && n.Value == "<<" && (n.Style == 0 || n.ShortTag() == "!!merge")
}

// resolvable tells of a plain scalar whether it could be something else than a
// string: a number, or a word such as yes, the longest of which is false.
func resolvable(value string) bool {
	switch {
	case value == "":
		return false
	case strings.IndexByte("yYnNtTfFoO", value[0]) >= 0:
		return len(value) <= len("false")
	}
	return strings.IndexByte("-+.~0123456789", value[0]) >= 0 && strings.Trim(value, numeric) == ""
}

// numeric are the characters of numbers, in any base and notation.
const numeric = "-+.~_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// plainString tells whether Kubernetes takes an unquoted scalar for a string, by
// asking the library that it uses.
func plainString(value string) bool {
	if !resolvable(value) {
		return true
	}
	// Inside brackets, a marker such as --- is not one.
	asJSON, err := yaml.YAMLToJSON([]byte("[ " + value + " ]"))
	if err != nil {
		// It reads as a string, or has no JSON, such as .inf.
		return !strings.HasPrefix(strings.TrimLeft(value, "+-"), ".")
	}
	return len(asJSON) > 1 && asJSON[1] == '"'
}

// checkMeaning compares what was written with what came out. The two are read
// by different parsers, so this also finds where these disagree.
func checkMeaning(root *yamlv3.Node, out []byte) error {
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return err
	}
	return sameMeaning(root, value)
}

func sameMeaning(n *yamlv3.Node, value any) error {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	ambiguous := fmt.Errorf("line %d: this can be read in more than one way; write it in double quotes", n.Line)
	switch value := value.(type) {
	case map[string]any:
		entries := map[string]*yamlv3.Node{}
		if n.Kind != yamlv3.MappingNode || !collect(n, entries) || len(entries) != len(value) {
			return ambiguous
		}
		for key, child := range entries {
			v, ok := value[key]
			if !ok {
				return ambiguous
			}
			if err := sameMeaning(child, v); err != nil {
				return err
			}
		}
	case []any:
		if n.Kind != yamlv3.SequenceNode || len(n.Content) != len(value) {
			return ambiguous
		}
		for i, child := range n.Content {
			if err := sameMeaning(child, value[i]); err != nil {
				return err
			}
		}
	case string:
		if n.Kind != yamlv3.ScalarNode || n.Value != value {
			return ambiguous
		}
	default:
		if n.Kind != yamlv3.ScalarNode || n.Style&^yamlv3.TaggedStyle != 0 && n.Style&yamlv3.TaggedStyle == 0 {
			return ambiguous
		}
	}
	return nil
}

// collect gathers the entries of a map, those that it merges included.
func collect(n *yamlv3.Node, entries map[string]*yamlv3.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := deref(n.Content[i]), deref(n.Content[i+1])
		if !isMerge(key) {
			entries[key.Value] = value
			continue
		}
		from := []*yamlv3.Node{value}
		if value.Kind == yamlv3.SequenceNode {
			from = value.Content
		}
		for _, m := range from {
			if m = deref(m); m.Kind != yamlv3.MappingNode || !collect(m, entries) {
				return false
			}
		}
	}
	return true
}

func deref(n *yamlv3.Node) *yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		return n.Alias
	}
	return n
}

// yamlError words an error of the YAML library as "line N: what is wrong".
func yamlError(doc []byte, err error) error {
	fault := content.YAMLError(string(doc), err)
	if strings.HasPrefix(fault.Message, "did not find expected <document start>") {
		fault.Message = "the YAML document has ended before this line, and more follows; send documents one by one"
	}
	return fault
}
