package view

import (
	"strings"
	"testing"
)

// What is edited as JSON is read as JSON: as YAML a broken string would be another.
func TestEditedJSONIsReadAsJSON(t *testing.T) {
	v := Whole("json")
	shown, err := v.Show(object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"a":"1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, now, want string }{
		{"a value", `"x,}"`, `x,}`},
		{"a comma after the last one", `"1",`, `1`},
		{"a line feed in a string", "\"x\ny\"", `draft.json:4: not valid JSON: invalid character '\n' in string literal`},
		{"a word", "foo", `draft.json:4: not valid JSON: invalid character 'o'`},
		{"a number that is larger than others read", "1e999", `draft.json:4: data[a] must be a string, not the number 1e999`},
		{"a key alone", `"1", b`, `draft.json:4: not valid JSON: invalid character 'b'`},
		{"two commas", `"1",,`, `draft.json:5: not valid JSON: invalid character '}'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, faults := v.Read("draft.json", []byte(strings.Replace(string(shown.Text), `"1"`, c.now, 1)), shown.Base)
			if len(faults) > 0 {
				if !strings.HasPrefix(faults[0].Error(), c.want) {
					t.Errorf("%v, want %s", faults[0], c.want)
				}
				return
			}
			if value, _ := got.Value("data", "a"); value != c.want {
				t.Errorf("%q, want %q", value, c.want)
			}
		})
	}
}
