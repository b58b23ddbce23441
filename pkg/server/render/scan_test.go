package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"
)

func TestMembersOfObjects(t *testing.T) {
	for object, want := range map[string]map[string]string{
		`{}`:                               {},
		`{"a":1,"b":"x"}`:                  {`"a"`: `1`, `"b"`: `"x"`},
		`{"a":{"b":[1,{"c":"}"}]},"d":{}}`: {`"a"`: `{"b":[1,{"c":"}"}]}`, `"d"`: `{}`},
		`{"a\"b":"c\\","d":"\\\"","e":""}`: {`"a\"b"`: `"c\\"`, `"d"`: `"\\\""`, `"e"`: `""`},
		`{"a":null,"b":true,"c":-1.5e3}`:   {`"a"`: `null`, `"b"`: `true`, `"c"`: `-1.5e3`},
	} {
		got := map[string]string{}
		for name, value := range members([]byte(object)) {
			got[string(name)] = string(value)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v", object, got)
		}
	}
}

func TestWhatIsNoObjectHasNoMembers(t *testing.T) {
	for _, text := range []string{"", "{", `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":"`, `{"a":{`, `{"a":}`, `{1:2}`, `[]`, `[{"a":1}]`, `null`, `{"a"1}`} {
		if got := count([]byte(text)); got != 0 {
			t.Errorf("%q: got %d members", text, got)
		}
	}
}

func FuzzMembersEqualFullDecoding(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":["}"]},"c\\":"\\\\\""}`, `{"data":{"k":"v"}}`, `{`, `{"\"":{"\\":{}}}`, `[1]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		count(text) // whatever it is, it does not panic
		var compact bytes.Buffer
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil || json.Compact(&compact, text) != nil {
			return
		}
		got := map[string]json.RawMessage{}
		for name, value := range members(compact.Bytes()) {
			var text string
			if err := json.Unmarshal(name, &text); err != nil {
				t.Fatalf("name %q: %v", name, err)
			}
			got[text] = value
		}
		if len(got) != len(want) {
			t.Fatalf("%s: got %d members, want %d", compact.Bytes(), len(got), len(want))
		}
		for name, value := range want {
			var exact bytes.Buffer
			if err := json.Compact(&exact, value); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[name], exact.Bytes()) {
				t.Errorf("%s: member %q: got %s, want %s", compact.Bytes(), name, got[name], exact.Bytes())
			}
		}
	})
}
