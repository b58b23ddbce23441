package conformance

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// request is what goes over the wire. A nil body is none.
type request struct {
	method, target string
	headers        object // name to text, or to nil: not sent
	body           []byte
}

// values are what stands for the placeholders {name} of a scenario.
type values map[string]string

func (v values) fill(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	var pairs []string
	for name, value := range v {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// expand fills the placeholders everywhere in a value, and writes out what
// stands as {"repeat": [text, count]}.
func (v values) expand(x any) (any, error) {
	switch x := x.(type) {
	case string:
		return v.fill(x), nil
	case array:
		out := array{}
		for _, item := range x {
			expanded, err := v.expand(item)
			if err != nil {
				return nil, err
			}
			out = append(out, expanded)
		}
		return out, nil
	case object:
		if repeat, ok := x.get("repeat").(array); ok && len(x) == 1 {
			return v.repeat(repeat)
		}
		return v.expandObject(x)
	default:
		return x, nil
	}
}

func (v values) expandObject(o object) (object, error) {
	out := object{}
	for _, m := range o {
		value, err := v.expand(m.value)
		if err != nil {
			return nil, err
		}
		out = out.with(v.fill(m.key), value)
	}
	return out, nil
}

func (v values) repeat(of array) (string, error) {
	if len(of) == 2 {
		text, isText := of[0].(string)
		count, isNumber := of[1].(json.Number)
		if n, err := count.Int64(); isText && isNumber && err == nil && n >= 0 {
			return strings.Repeat(v.fill(text), int(n)), nil
		}
	}
	return "", fmt.Errorf("repeat wants [text, count], not %s", encodeJSON(of))
}

// request makes a step's request.
func (v values) request(s Step) (request, error) {
	r := request{method: s.Method, target: v.fill(s.Path)}
	query, err := v.expandObject(s.Query)
	if err != nil {
		return r, err
	}
	if len(query) > 0 {
		r.target += "?" + encodeQuery(query)
	}
	if r.body, err = v.body(s); err != nil {
		return r, err
	}
	given, err := v.expandObject(s.Headers)
	if err != nil {
		return r, err
	}
	r.headers = withDefaults(given, r.body != nil)
	return r, nil
}

// body is the request's body; nil if the step has none.
func (v values) body(s Step) ([]byte, error) {
	text := s.Raw
	if text == nil {
		text = s.Body
	}
	if text == nil {
		return nil, nil
	}
	recorded, err := decodeJSON(text)
	if err != nil {
		return nil, err
	}
	expanded, err := v.expand(recorded)
	if err != nil {
		return nil, err
	}
	if s.Raw == nil {
		return []byte(encodeJSON(expanded)), nil
	}
	return join(expanded)
}

// join puts the texts of a raw body together.
func join(raw any) ([]byte, error) {
	parts, ok := raw.(array)
	if !ok {
		parts = array{raw}
	}
	body := []byte{}
	for _, part := range parts {
		text, ok := part.(string)
		if !ok {
			return nil, fmt.Errorf("raw wants texts, not %s", encodeJSON(part))
		}
		body = append(body, text...)
	}
	return body, nil
}

// defaultHeaders are sent with every request that does not say otherwise.
var defaultHeaders = object{{"User-Agent", "conformance"}, {"Accept", jsonType}}

const jsonType = "application/json"

// withDefaults adds the headers that a step leaves to the default.
func withDefaults(given object, hasBody bool) object {
	defaults := defaultHeaders
	if hasBody {
		defaults = defaults.with("Content-Type", jsonType)
	}
	out := given
	for _, d := range defaults {
		if !mentions(given, d.key) {
			out = out.with(d.key, d.value)
		}
	}
	return out
}

func mentions(headers object, name string) bool {
	for _, h := range headers {
		if strings.EqualFold(h.key, name) {
			return true
		}
	}
	return false
}

// encodeQuery writes parameters in their order; one with several values is
// repeated.
func encodeQuery(query object) string {
	var pairs []string
	for _, m := range query {
		several, ok := m.value.(array)
		if !ok {
			several = array{m.value}
		}
		for _, value := range several {
			pairs = append(pairs, url.QueryEscape(m.key)+"="+url.QueryEscape(fmt.Sprint(value)))
		}
	}
	return strings.Join(pairs, "&")
}
