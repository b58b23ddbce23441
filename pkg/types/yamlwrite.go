package types

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	yamlv2 "go.yaml.in/yaml/v2"
)

// JSONToYAML writes JSON as YAML with its keys in order, byte for byte as
// Kubernetes' servers do. What is for people is for JSONToReadableYAML to write.
func JSONToYAML(asJSON []byte) ([]byte, error) {
	value, err := decodeNumbers(asJSON)
	if err != nil {
		return nil, err
	}
	return yamlv2.Marshal(withNumbers(value))
}

// withNumbers is the value with numbers that YAML writes as such. It changes what
// it is given.
func withNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			v[key] = withNumbers(child)
		}
	case []any:
		for i, child := range v {
			v[i] = withNumbers(child)
		}
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil {
			return n
		}
		return v.String()
	}
	return value
}

// JSONToReadableYAML writes JSON as YAML for people, in the layout that kubectl
// shows objects in: keys in order, two blanks of indentation, plain text unless
// it would be read as something else. Text of several lines is a literal block
// wherever YAML can say it so, no line is folded, and numbers stay as they came.
// A comment stands above text that had to be put in quotes because of a
// character that YAML can't show.
//
// What it returns was read back with YAMLToJSON and says exactly what the JSON
// does; a value for which that fails as a block is put in quotes.
func JSONToReadableYAML(asJSON []byte) ([]byte, error) {
	value, err := decodeNumbers(asJSON)
	if err != nil {
		return nil, err
	}
	for _, w := range []yamlWriter{{}, {checked: true}} {
		w.value(value)
		if saysExactly(w.out.Bytes(), value) {
			return w.out.Bytes(), nil
		}
	}
	return nil, errors.New("this can't be shown as YAML without changing it; ask for JSON")
}

func decodeNumbers(asJSON []byte) (value any, err error) {
	dec := json.NewDecoder(bytes.NewReader(asJSON))
	dec.UseNumber()
	err = dec.Decode(&value)
	return value, err
}

// saysExactly tells whether a text is read as that value.
func saysExactly(text []byte, value any) bool {
	asJSON, err := YAMLToJSON(text)
	if err != nil {
		return false
	}
	back, err := decodeNumbers(asJSON)
	return err == nil && sameValue(back, value)
}

// sameValue compares values, numbers by what they amount to: YAML's parser may
// write 1e3 as 1000.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, v := range a {
			if other, ok := b[key]; !ok || !sameValue(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || sameFloat(a, b))
	}
	return reflect.DeepEqual(a, b)
}

func sameFloat(a, b json.Number) bool {
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// yamlWriter writes one document. Its zero value is ready.
type yamlWriter struct {
	out     bytes.Buffer
	checked bool // take a block only for a value that is read back from one by itself
}

// indentation is how much deeper what is inside something stands.
const indentation = 2

// value writes the whole document.
func (w *yamlWriter) value(v any) {
	if isBlock(v) {
		w.block(v, 0)
		return
	}
	w.scalar(v, 0)
}

// isBlock is true for maps and lists that have content, which begin on a line
// of their own.
func isBlock(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// block writes a map or a list whose first line is indented already.
func (w *yamlWriter) block(v any, indent int) {
	if list, ok := v.([]any); ok {
		w.list(list, indent)
		return
	}
	w.mapping(v.(map[string]any), indent)
}

func (w *yamlWriter) mapping(m map[string]any, indent int) {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareNatural)
	for i, key := range keys {
		if i > 0 {
			w.indent(indent)
		}
		v := m[key]
		if text, ok := v.(string); ok {
			w.comment(text, indent)
		}
		w.key(key, indent)
		switch _, isList := v.([]any); {
		case !isBlock(v):
			w.out.WriteByte(' ')
			w.scalar(v, indent)
		case isList:
			w.out.WriteByte('\n')
			w.indent(indent)
			w.block(v, indent)
		default:
			w.out.WriteByte('\n')
			w.indent(indent + indentation)
			w.block(v, indent+indentation)
		}
	}
}

// maxSimpleKey is how long a key may be, in bytes as written, to stand before
// its colon: the parsers stop looking for one after 1024 characters.
const maxSimpleKey = 1000

func (w *yamlWriter) key(key string, indent int) {
	text := oneLine(key)
	if len(text) > maxSimpleKey {
		w.out.WriteString("? " + text + "\n")
		w.indent(indent)
		w.out.WriteByte(':')
		return
	}
	w.out.WriteString(text + ":")
}

func (w *yamlWriter) list(l []any, indent int) {
	for i, v := range l {
		if i > 0 {
			w.indent(indent)
		}
		w.out.WriteString("- ")
		if isBlock(v) {
			w.block(v, indent+indentation)
			continue
		}
		w.scalar(v, indent)
	}
}

// scalar writes what isn't a map or a list with content, and ends its line.
func (w *yamlWriter) scalar(v any, indent int) {
	switch v := v.(type) {
	case string:
		w.text(v, indent)
	case nil:
		w.out.WriteString("null\n")
	case map[string]any:
		w.out.WriteString("{}\n")
	case []any:
		w.out.WriteString("[]\n")
	default:
		fmt.Fprintf(&w.out, "%v\n", v) // a boolean, or a number as it came
	}
}

func (w *yamlWriter) text(s string, indent int) {
	if !strings.Contains(s, "\n") || !w.takesBlock(s) {
		w.out.WriteString(oneLine(s))
		w.out.WriteByte('\n')
		return
	}
	w.literal(s, indent+indentation)
}

func (w *yamlWriter) takesBlock(s string) bool {
	if at := unshowable(s); at >= 0 {
		return false
	}
	if !w.checked {
		return true
	}
	alone := yamlWriter{}
	alone.value(map[string]any{"k": s})
	return saysExactly(alone.out.Bytes(), map[string]any{"k": s})
}

// literal writes a literal block. The indentation is given as a number where
// the parsers would take it from a line that begins with blanks of its own.
func (w *yamlWriter) literal(s string, indent int) {
	w.out.WriteByte('|')
	if strings.ContainsRune(" \t\n", rune(s[0])) {
		w.out.WriteString(strconv.Itoa(indentation))
	}
	body, ended := strings.CutSuffix(s, "\n")
	switch {
	case !ended:
		w.out.WriteByte('-')
	case body == "" || strings.HasSuffix(body, "\n"):
		w.out.WriteByte('+')
	}
	w.out.WriteByte('\n')
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			w.indent(indent)
			w.out.WriteString(line)
		}
		w.out.WriteByte('\n')
	}
}

func (w *yamlWriter) indent(n int) {
	for range n {
		w.out.WriteByte(' ')
	}
}

// comment says above a value why it is in quotes.
func (w *yamlWriter) comment(s string, indent int) {
	at := unshowable(s)
	if at < 0 {
		return
	}
	r := []rune(s[at:min(at+4, len(s))])[0]
	fmt.Fprintf(&w.out, "# in quotes because of %s on line %d of the value\n", runeName(r), 1+strings.Count(s[:at], "\n"))
	w.indent(indent)
}

// compareNatural orders keys as Kubernetes' YAML does, where that has an order:
// a run of digits counts as a number, and letters come after everything else.
func compareNatural(a, b string) int {
	x, y := []rune(a), []rune(b)
	i := 0
	for i < len(x) && i < len(y) && x[i] == y[i] {
		i++
	}
	if i == len(x) || i == len(y) {
		return len(x) - len(y)
	}
	switch dx, dy := isDigit(x[i]), isDigit(y[i]); {
	case dx && dy, (dx || dy) && i > 0 && isDigit(x[i-1]):
		return compareDigits(digitsAround(x, i), digitsAround(y, i))
	}
	return cmp.Or(rank(x[i])-rank(y[i]), int(x[i]-y[i]))
}

// rank is the place of a character's class among the others.
func rank(r rune) int {
	switch {
	case unicode.IsLetter(r):
		return 2
	case isDigit(r):
		return 1
	}
	return 0
}

// digitsAround is the run of digits that goes over position i, or ends there.
func digitsAround(s []rune, i int) string {
	begin, end := i, i
	for begin > 0 && isDigit(s[begin-1]) {
		begin--
	}
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	return string(s[begin:end])
}

// compareDigits compares numbers of any length, then how long they are written.
func compareDigits(a, b string) int {
	x, y := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(len(x)-len(y), strings.Compare(x, y), len(a)-len(b))
}
