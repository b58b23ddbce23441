package conformance

import (
	"fmt"
	"strconv"
	"strings"
)

// absent stands for a value that is not there, which null is.
type absent struct{}

// Mismatch is a place at which an answer is not what was wanted.
type Mismatch struct {
	Path      string // as in body.items[0].metadata.name; "" for the whole answer
	Want, Got string // as JSON, or (absent)
}

// String tells the mismatch in a line.
func (m Mismatch) String() string {
	path := m.Path
	if path == "" {
		path = "answer"
	}
	return fmt.Sprintf("%s: want %s, got %s", path, m.Want, m.Got)
}

// Compare tells where two answers differ. The order of members does not count;
// everything else does: 1 is not 1.0, and neither absent, null nor "" is another
// of these.
func Compare(want, got any) []Mismatch {
	return compare(nil, "", want, got)
}

func compare(found []Mismatch, path string, want, got any) []Mismatch {
	switch want := want.(type) {
	case object:
		if got, ok := got.(object); ok {
			return compareObjects(found, path, want, got)
		}
	case array:
		if got, ok := got.(array); ok {
			return compareArrays(found, path, want, got)
		}
	default:
		if want == got { // unlike types are unequal, so this can't panic
			return found
		}
	}
	return append(found, Mismatch{path, show(want), show(got)})
}

func compareObjects(found []Mismatch, path string, want, got object) []Mismatch {
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	for _, m := range want {
		found = compare(found, prefix+m.key, m.value, got.get(m.key))
	}
	for _, m := range got {
		if want.get(m.key) == (absent{}) {
			found = compare(found, prefix+m.key, absent{}, m.value)
		}
	}
	return found
}

func compareArrays(found []Mismatch, path string, want, got array) []Mismatch {
	for i := range max(len(want), len(got)) {
		found = compare(found, path+"["+strconv.Itoa(i)+"]", at(want, i), at(got, i))
	}
	return found
}

func at(list array, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

// show writes a value for a person, its middle left out if it is long.
func show(v any) string {
	const most, head, tail = 600, 400, 100
	if v == (absent{}) {
		return "(absent)"
	}
	s := encodeJSON(v)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:head], "") + " … " + strings.ToValidUTF8(s[len(s)-tail:], "")
}

// dig finds the value at a dotted path whose parts are members and indexes, as
// in 0.object.metadata.name; absent{} if there is none.
func dig(v any, path string) any { return digKeys(v, strings.Split(path, ".")) }

func digKeys(v any, keys []string) any {
	for _, key := range keys {
		switch in := v.(type) {
		case object:
			v = in.get(key)
		case array:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 {
				return absent{}
			}
			v = at(in, i)
		default:
			return absent{}
		}
	}
	return v
}
