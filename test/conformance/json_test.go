package conformance

import (
	"encoding/json"
	"testing"
)

func TestJSONKeepsOrderAndNumbers(t *testing.T) {
	for given, want := range map[string]string{
		`{"b":1.50,"a":[true,null,"é<\n"],"c":{}}`: `{"b": 1.50, "a": [true, null, "é<\n"], "c": {}}`,
		`{"b":1,"a":2,"b":3}`:                      `{"b": 3, "a": 2}`,
		` 5 `:                                      `5`,
	} {
		if got := encodeJSON(mustDecode(t, given)); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
	for _, text := range []string{"", "{", "{} {}", "{x}", "[1,]", "nan"} {
		if v, err := decodeJSON([]byte(text)); err == nil {
			t.Errorf("%s: got %s, want an error", text, encodeJSON(v))
		}
	}
}

func FuzzJSONStaysTheSame(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2.0, -3e5, "x", null, true], "b": {"": {}}}`))
	f.Add([]byte(`"\ud800 \u2028 <"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := decodeJSON(text)
		if err != nil {
			return
		}
		again, err := decodeJSON([]byte(encodeJSON(v)))
		if err != nil || len(Compare(v, again)) > 0 || !json.Valid([]byte(encodeJSON(v))) {
			t.Errorf("%s became %s (%v)", text, encodeJSON(v), err)
		}
	})
}
