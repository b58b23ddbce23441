package types

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

// readByItself is JSON that readJSON reads, readByOthers is not.
var (
	readByItself = []string{
		`{}`, ` { "a" : [ ] , "b":{},"c":[1,-2,0,"x"],"d":true,"e":false,"f":null } `, `{"a":"ü\"\\\/\b\f\n\r\t\u0041\u00e4\u2028"}`,
		`{"a":1,"a":2}`, `{"":""}`, `{"a":9007199254740993000000}`, `{"a":"x\ny\nz","b":"\\"}`, "{\"a\":\"\x7f\"}", `{"\n":"\n"}`, `{"a":"\u0000b"}`,
	}
	readByOthers = []string{
		``, `1`, `[]`, `null`, `"a"`, `{`, `{}}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":01}`, `{"a":-}`, `{"a":1.5}`, `{"a":1e3}`, `{"a":nul}`,
		`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"`, `{"a":"\`, "{\"a\":\"\n\"}", `{a:1}`, `{"a":truely}`, `{"a":1"b":2}`, "{\"a\":\v1}", "{} \x00",
	}
)

func TestWhatReadJSONReadsByItself(t *testing.T) {
	for _, text := range readByItself {
		if _, ok := readJSON(text); !ok {
			t.Errorf("left to others: %s", text)
		}
		sameAsJSON(t, []byte(text))
	}
	for _, text := range readByOthers {
		if v, ok := readJSON(text); ok {
			t.Errorf("%s is read as %v", text, v)
		}
	}
}

// What readJSON reads is what encoding/json reads.
func FuzzReadJSON(f *testing.F) {
	for _, text := range append(readByItself, readByOthers...) {
		f.Add([]byte(text))
	}
	f.Fuzz(sameAsJSON)
}

func sameAsJSON(t *testing.T, text []byte) {
	got, ok := readJSON(string(text))
	if !ok || !utf8.Valid(text) {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var want map[string]any
	if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(got, want) || !json.Valid(text) {
		t.Errorf("%q\nis read as %v\nand by encoding/json as %v, %v", text, got, want, err)
	}
}
