package types

import (
	"encoding/base64"
	"unicode/utf8"
)

// ValueOf is bytes as a document holds them under a key of data: a string if they
// are UTF-8, else a Binary.
func ValueOf(raw []byte) any {
	if utf8.Valid(raw) {
		return string(raw)
	}
	return Binary(base64.StdEncoding.EncodeToString(raw))
}

// RawValue are the bytes that a value of data or binaryData stands for. ok is false
// if it stands for none: there is no value, or one that is no text, or base64 that
// is none.
func RawValue(value any) (raw []byte, ok bool) {
	switch v := value.(type) {
	case string:
		return []byte(v), true
	case Binary:
		return v.Bytes()
	}
	return nil, false
}

// InvalidUTF8 is the offset of the first byte that is no UTF-8, -1 if none.
func InvalidUTF8(text []byte) int {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}
