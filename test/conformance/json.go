package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
)

// A JSON value is nil, a bool, a json.Number, a string, an array or an object.
type (
	array = []any
	// object keeps its members in the order of the text: values are numbered in
	// the order in which they first appear, and a request is sent as recorded.
	object []member
	member struct {
		key   string
		value any
	}
)

// get finds a member's value; absent{} if there is none.
func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return absent{}
}

// text is a member's value if it is a string, else "".
func (o object) text(key string) string {
	s, _ := o.get(key).(string)
	return s
}

// with is the object with a member set. The receiver stays as it is.
func (o object) with(key string, value any) object {
	out := append(make(object, 0, len(o)+1), o...)
	for i := range out {
		if out[i].key == key {
			out[i].value = value
			return out
		}
	}
	return append(out, member{key, value})
}

// without is the object less a member. The receiver stays as it is.
func (o object) without(key string) object {
	var out object
	for _, m := range o {
		if m.key != key {
			out = append(out, m)
		}
	}
	return out
}

// UnmarshalJSON takes an object and nothing else.
func (o *object) UnmarshalJSON(text []byte) error {
	v, err := decodeJSON(text)
	if err != nil {
		return err
	}
	decoded, ok := v.(object)
	if !ok {
		return errors.New("not a JSON object")
	}
	*o = decoded
	return nil
}

// decodeJSON reads the one value that the text must be. Of repeated members the
// last one counts.
func decodeJSON(text []byte) (any, error) {
	if !json.Valid(text) {
		return nil, errors.New("not a JSON value")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return decodeValue(d)
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return decodeObject(d)
	case json.Delim('['):
		return decodeArray(d)
	default:
		return token, nil
	}
}

func decodeObject(d *json.Decoder) (object, error) {
	out := object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		out = out.with(key.(string), value) // a member begins with a string
	}
	_, err := d.Token()
	return out, err
}

func decodeArray(d *json.Decoder) (array, error) {
	out := array{}
	for d.More() {
		value, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	_, err := d.Token()
	return out, err
}

// encodeJSON writes a value with a space behind each comma and colon: some
// answers quote the request, whose bytes were these when it was recorded.
func encodeJSON(v any) string {
	var out bytes.Buffer
	appendJSON(&out, v)
	return out.String()
}

func appendJSON(out *bytes.Buffer, v any) {
	switch v := v.(type) {
	case object:
		out.WriteByte('{')
		for i, m := range v {
			separate(out, i)
			appendScalar(out, m.key)
			out.WriteString(": ")
			appendJSON(out, m.value)
		}
		out.WriteByte('}')
	case array:
		out.WriteByte('[')
		for i, item := range v {
			separate(out, i)
			appendJSON(out, item)
		}
		out.WriteByte(']')
	default:
		appendScalar(out, v)
	}
}

func separate(out *bytes.Buffer, i int) {
	if i > 0 {
		out.WriteString(", ")
	}
}

// appendScalar writes what has no members. It can't fail: it gets what
// decodeJSON made, and texts.
func appendScalar(out *bytes.Buffer, v any) {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err == nil {
		out.Truncate(out.Len() - 1) // the newline that Encode adds
	}
}
