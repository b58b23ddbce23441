package output

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// newTemplate prints what a Go template makes of the object or of the List.
func newTemplate(text string, o Options) (Printer, error) {
	if text == "" {
		return nil, errors.New("the template is empty; give -o go-template='...'")
	}
	t, err := template.New("output").Funcs(template.FuncMap{"base64decode": base64decode, "exists": exists}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("go-template: %w", err)
	}
	return printFunc(func(w *bytes.Buffer, objects Objects) error {
		data := countable(map[string]any(objects.document()))
		if o.AllowMissing {
			return carryOut(t, w, data)
		}
		err := carryOut(t.Option("missingkey=error"), w, data)
		if err != nil && carryOut(t.Option("missingkey=default"), new(bytes.Buffer), data) == nil {
			return &MissingError{fmt.Sprintf("%v (--allow-missing prints <no value> in its place)", err)}
		}
		return err
	}), nil
}

func carryOut(t *template.Template, w *bytes.Buffer, data any) error {
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
