package types

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Decoders put U+FFFD in the place of what is not valid Unicode, and say
// nothing. The functions here find it before, so that it can be refused; that
// kube-apiserver takes such bodies makes no difference to a server that
// promises to change nothing silently.

const bytesAdvice = "; a ConfigMap keeps bytes in binaryData, as base64"

// checkUTF8 refuses JSON that holds bytes which are not UTF-8.
func checkUTF8(body []byte) error {
	if utf8.Valid(body) {
		return nil
	}
	at := InvalidUTF8(body)
	return BadRequest(fmt.Sprintf("the body is not UTF-8 text: byte 0x%02x at offset %d%s", body[at], at, bytesAdvice))
}

// checkEscapes refuses JSON with an escape for half of a surrogate pair, which
// is no character. The server takes it as kube-apiserver is on record to do, and
// shows in its answer what it made of it; whoever writes a document for others
// is better told.
func checkEscapes(body []byte) error {
	for i := 0; i < len(body); {
		next := bytes.IndexByte(body[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		first, ok := unit(body, i)
		if !ok || !utf16.IsSurrogate(first) {
			i += 2
			continue
		}
		second, ok := unit(body, i+6)
		if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
			return fmt.Errorf("%s at offset %d is half of a surrogate pair and no character%s", body[i:i+6], i, bytesAdvice)
		}
		i += 12
	}
	return nil
}

// unit reads an escape \uXXXX.
func unit(body []byte, i int) (rune, bool) {
	if i+6 > len(body) || body[i] != '\\' || body[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(body[i+2:i+6]), 16, 16)
	return rune(n), err == nil
}

// checkStrings refuses a value with a string in it that is not valid UTF-8.
func checkStrings(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.String:
		if at := InvalidUTF8([]byte(v.String())); at >= 0 {
			return BadRequest(fmt.Sprintf("%s is not UTF-8 text: byte 0x%02x at offset %d%s",
				path, v.String()[at], at, bytesAdvice))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return checkStrings(v.Elem(), path)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil // bytes may be any
		}
		for i := range v.Len() {
			if err := checkStrings(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := checkStrings(it.Key(), "a key of "+path); err != nil {
				return err
			}
			if err := checkStrings(it.Value(), fmt.Sprintf("%s[%v]", path, it.Key())); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if err := checkStrings(v.Field(i), join(path, f)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// join adds a field's name on the wire to a path.
func join(path string, f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "":
		return path
	case path == "":
		return name
	}
	return path + "." + name
}
