package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"example.com/cmctl/pkg/types"
)

// Path is a jsonpath template: text with expressions in braces. It may be
// shared.
type Path struct {
	source string // as it was given
	text   string // as the library takes it
}

// ParsePath reads a jsonpath template as kubectl takes it. A lone expression
// needs no braces, and keys may be in brackets with either kind of quotes, where
// dots and slashes need no backslash: .data['app.yaml'].
func ParsePath(text string) (*Path, error) {
	p := &Path{source: text, text: text}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("the jsonpath expression is empty")
	}
	if !strings.Contains(text, "{") {
		expr := strings.TrimSpace(text)
		if !strings.ContainsRune(".[$@", rune(expr[0])) {
			expr = "." + expr
		}
		p.text = "{" + expr + "}"
	}
	p.text = bracketKeys(p.text)
	if err := checkLoops(p.text); err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", text, err)
	}
	// Some mistakes show only when the template is carried out.
	if _, err := p.find(types.Document{}, true); err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", text, err)
	}
	return p, nil
}

// checkLoops refuses a loop without an end, of which the library prints nothing.
func checkLoops(text string) error {
	parsed, err := jsonpath.Parse("loops", text)
	if err != nil {
		return err
	}
	open := 0
	for _, n := range parsed.Root.Nodes {
		list, ok := n.(*jsonpath.ListNode)
		if !ok || len(list.Nodes) == 0 {
			continue
		}
		if word, ok := list.Nodes[0].(*jsonpath.IdentifierNode); ok {
			switch word.Name {
			case "range":
				open++
			case "end":
				open--
			}
		}
	}
	if open > 0 {
		return errors.New("a {range} has no {end}")
	}
	return nil
}

// find returns the results of each action of the template, and its text, in
// order. The library's templates remember loops, so that each run needs its own.
func (p *Path) find(d types.Document, allowMissing bool) (results [][]reflect.Value, err error) {
	defer func() {
		// The library panics on some templates, such as a loop without an end.
		if cause := recover(); cause != nil {
			err = fmt.Errorf("it can't be carried out: %v", cause)
		}
	}()
	j := jsonpath.New("output").AllowMissingKeys(allowMissing)
	if err := j.Parse(p.text); err != nil {
		return nil, err
	}
	return j.FindResults(countable(map[string]any(d)))
}

// Text is what the template makes of an object. Something that isn't there is a
// *MissingError unless it may be missing, and then gives nothing.
func (p *Path) Text(d types.Document, allowMissing bool) (string, error) {
	results, err := p.find(d, allowMissing)
	if err != nil {
		if _, without := p.find(d, true); without == nil {
			return "", &MissingError{fmt.Sprintf("jsonpath %s: %v (--allow-missing prints nothing in its place)", p.source, err)}
		}
		return "", fmt.Errorf("jsonpath %s: %s", p.source, plainKinds.Replace(err.Error()))
	}
	b := strings.Builder{}
	for _, group := range results {
		for i, v := range group {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(asText(v.Interface()))
		}
	}
	return b.String(), nil
}

// plainKinds names what the library names as Go does.
var plainKinds = strings.NewReplacer("map[string]interface {}", "a map", "[]interface {}", "a list",
	"is not array or slice", "is no list")

// Values are what the template finds in an object, none if it isn't there.
func (p *Path) Values(d types.Document) ([]any, error) {
	results, err := p.find(d, true)
	if err != nil {
		return nil, fmt.Errorf("jsonpath %s: %w", p.source, err)
	}
	var values []any
	for _, group := range results {
		for _, v := range group {
			values = append(values, v.Interface())
		}
	}
	return values, nil
}

// asText is a value for a person: text as it is, everything else as JSON.
func asText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// countable is a value in which whole numbers are int64, so that expressions
// can compare them. Others remain text.
func countable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, child := range v {
			m[key] = countable(child)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, child := range v {
			l[i] = countable(child)
		}
		return l
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	}
	return v
}

// bracketKeys writes the keys in brackets as the library understands them:
// ["app.yaml"] becomes ['app\.yaml'].
func bracketKeys(text string) string {
	b := strings.Builder{}
	inAction := false
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case !inAction || c == '{' || c == '}':
			inAction = c == '{' || inAction && c != '}'
		case c == '\\' && i+1 < len(text):
			b.WriteString(text[i : i+2])
			i += 2
			continue
		case c == '"' || c == '\'':
			end := closingQuote(text, i)
			literal := text[i:end]
			if isKey(text, i, end) {
				literal = "'" + escapeKey(literal[1:len(literal)-1]) + "'"
			}
			b.WriteString(literal)
			i = end
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// closingQuote is the offset behind the string that begins at i, or the end.
func closingQuote(text string, i int) int {
	for end := i + 1; end < len(text); end++ {
		switch text[end] {
		case '\\':
			end++
		case text[i]:
			return end + 1
		}
	}
	return len(text)
}

// isKey tells whether the string in text[begin:end] stands in brackets.
func isKey(text string, begin, end int) bool {
	before, after := strings.TrimRight(text[:begin], " "), strings.TrimLeft(text[end:], " ")
	return end-begin >= 2 && before != "" && after != "" &&
		strings.ContainsRune("[,", rune(before[len(before)-1])) && strings.ContainsRune("],", rune(after[0]))
}

// escapeKey puts a backslash before what would end a key, unless one is there.
func escapeKey(key string) string {
	b := strings.Builder{}
	for i := 0; i < len(key); i++ {
		if key[i] == '\\' && i+1 < len(key) {
			i++
		}
		if strings.IndexByte(" \t.,[]$@{}", key[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(key[i])
	}
	return b.String()
}

// newPathPrinter prints what a template makes of the object or of the List; as
// JSON, one array for each action, where that is asked for.
func newPathPrinter(text string, asJSON bool, o Options) (Printer, error) {
	p, err := ParsePath(text)
	if err != nil {
		return nil, err
	}
	return printFunc(func(w *bytes.Buffer, objects Objects) error {
		d := objects.document()
		text, err := p.Text(d, o.AllowMissing)
		if err != nil || !asJSON {
			w.WriteString(text)
			return err
		}
		values, err := p.Values(d)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "    ")
		return enc.Encode(append([]any{}, values...))
	}), nil
}
