package output

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

// newTemplate prints what a Go template makes of the object or of the List.
func newTemplate(text string, o Options) (Printer, error) {
	if text == "" {
		return nil, errors.New("the template is empty; give -o go-template='...'")
	}
	t, err := template.New("output").Funcs(template.FuncMap{"base64decode": base64decode, "exists": exists, "index": index}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("go-template: %w", err)
	}
	return printFunc(func(w *bytes.Buffer, objects Objects) error {
		data := countable(map[string]any(objects.document()))
		lax := func(w *bytes.Buffer) error { return carryOut(t, "missingkey=default", indexAny, w, data) }
		if o.AllowMissing {
			return lax(w)
		}
		err := carryOut(t, "missingkey=error", index, w, data)
		if err != nil && lax(new(bytes.Buffer)) == nil {
			return &MissingError{fmt.Sprintf("%v (--allow-missing prints <no value> in its place)", err)}
		}
		return err
	}), nil
}

// indexer is what the function index is: the one of the language doesn't obey
// missingkey.
type indexer func(in any, at ...any) (any, error)

func carryOut(t *template.Template, missing string, index indexer, w *bytes.Buffer, data any) error {
	t.Option(missing).Funcs(template.FuncMap{"index": index})
	if err := t.Execute(w, data); err != nil {
		return fmt.Errorf("go-template: %s", strings.TrimPrefix(err.Error(), "template: output:"))
	}
	return nil
}

// base64decode is for the values of binaryData.
func base64decode(text string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	return string(raw), err
}

// exists tells whether there is something at a path of keys.
func exists(at any, path ...string) bool {
	for _, key := range path {
		m, _ := at.(map[string]any)
		next, ok := m[key]
		if !ok {
			return false
		}
		at = next
	}
	return true
}

// index is what stands at a place, an error if nothing does.
func index(in any, at ...any) (any, error) {
	for _, place := range at {
		next, err := indexOne(in, place)
		if err != nil {
			return nil, err
		}
		in = next
	}
	return in, nil
}

// indexAny is index for which nothing is fine where a key isn't there.
func indexAny(in any, at ...any) (any, error) {
	found, err := index(in, at...)
	if errors.As(err, new(noKeyError)) {
		return nil, nil
	}
	return found, err
}

// noKeyError names a key that a map doesn't have.
type noKeyError string

func (e noKeyError) Error() string { return fmt.Sprintf("there is no key %q", string(e)) }

func indexOne(in, place any) (any, error) {
	switch in := in.(type) {
	case nil: // what was before it isn't there
		return nil, noKeyError(fmt.Sprint(place))
	case map[string]any:
		key, ok := place.(string)
		if !ok {
			return nil, fmt.Errorf("a key is text, not %v", place)
		}
		if found, ok := in[key]; ok {
			return found, nil
		}
		return nil, noKeyError(key)
	case []any:
		i, err := strconv.Atoi(fmt.Sprint(place))
		if err != nil || i < 0 || i >= len(in) {
			return nil, fmt.Errorf("there is no item %v among %d", place, len(in))
		}
		return in[i], nil
	}
	return nil, fmt.Errorf("index takes a map or a list, not %s", asText(in))
}
