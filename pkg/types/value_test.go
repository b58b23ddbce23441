package types_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"example.com/cmctl/pkg/types"
)

// Bytes survive the way into a document and back, as text where they are text.
func FuzzValueOf(f *testing.F) {
	for _, raw := range []string{"", "a", "é", "\xff", "a\xc3", "\x00"} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		value := types.ValueOf(raw)
		back, ok := types.RawValue(value)
		if !ok || !bytes.Equal(back, raw) {
			t.Errorf("%q is kept as %#v, which is %q, %t", raw, value, back, ok)
		}
		_, isText := value.(string)
		at := types.InvalidUTF8(raw)
		if isText != (at < 0) || isText != utf8.Valid(raw) {
			t.Errorf("%q is kept as %#v; the first byte that is no text: %d", raw, value, at)
		}
		if at >= 0 && !utf8.Valid(raw[:at]) {
			t.Errorf("%q is no text before byte %d", raw, at)
		}
	})
}

func TestWhatStandsForNoBytes(t *testing.T) {
	for _, v := range []any{nil, types.Binary("no base64!"), int64(1), map[string]any{}} {
		if raw, ok := types.RawValue(v); ok {
			t.Errorf("%#v stands for %q", v, raw)
		}
	}
}
