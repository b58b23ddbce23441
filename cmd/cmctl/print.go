package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/pkg/types"
	"sigs.k8s.io/yaml"
)

func checkOutput(o string, allowed ...string) error {
	if o != "" && !slices.Contains(allowed, o) {
		return usagef("-o %s is not known here; use one of %s", o, strings.Join(allowed, ", "))
	}
	return nil
}

// asYAML is the document as YAML, keys sorted as kubectl shows them.
func asYAML(d types.Document) ([]byte, error) {
	text, err := d.JSON()
	if err != nil {
		return nil, err
	}
	return types.JSONToReadableYAML(text)
}

// printDocument writes one object in a form for programs.
func printDocument(w io.Writer, form string, d types.Document) error {
	return printObjects(w, form, output.Objects{Items: []types.Document{d}})
}

func printObjects(w io.Writer, form string, o output.Objects) error {
	p, err := output.New(form, output.Options{})
	if err != nil {
		return err
	}
	return p.Print(w, o)
}

// printValue writes what is no object, as yaml or json.
func printValue(w io.Writer, form string, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	err := enc.Encode(v)
	out := text.Bytes()
	if err == nil && form == "yaml" {
		out, err = yaml.JSONToYAML(out)
	}
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// fieldNames are fields as messages show them.
func fieldNames(fields []types.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.String()
	}
	return names
}

// quote shows a value on one line of a message, shortened if it is long.
func quote(v any) string {
	const limit = 60
	switch v := v.(type) {
	case nil:
		return "(absent)"
	case string:
		if len(v) <= limit {
			return fmt.Sprintf("%q", v)
		}
		return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(v[:limit], ""), len(v))
	case types.Binary:
		if raw, ok := v.Bytes(); ok {
			return fmt.Sprintf("%d binary bytes", len(raw))
		}
		return "binary bytes"
	case types.Digest:
		return fmt.Sprintf("(sha256 %s...)", v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
