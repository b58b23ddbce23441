package manifest

import (
	"fmt"
	"testing"
)

func TestRepeatedKeysAreNamedWithBothLines(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"none", "a: 1\nb: {a: 1}\nc: {a: 1}\n", "[]"},
		{"at the top", "a: 1\nb: 2\na: 3\n", `[f:3: the key "a" is given twice, here and in line 1; only one could be kept]`},
		{"below", "data:\n  k: 1\n  l: 2\n  \"k\": 3\n", `[f:4: the key "k" is given twice in data, here and in line 2; only one could be kept]`},
		{"three times", "k: 1\nk: 2\nk: 3\n", `[f:2: the key "k" is given twice, here and in line 1; only one could be kept f:3: the key "k" is given twice, here and in line 1; only one could be kept]`},
		{"in JSON", "{\n\"a\": 1,\n\"a\": 2}", `[f:3: the key "a" is given twice, here and in line 2; only one could be kept]`},
		{"in a list", "l:\n- a: 1\n  a: 2\n", `[f:3: the key "a" is given twice in l, here and in line 2; only one could be kept]`},
		{"no YAML", "a: [", "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(RepeatedKeys("f", []byte(c.text))); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
