package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
)

// outputs are the forms that -o takes, the table being the empty one.
var outputs = []string{"wide", "yaml", "json", "name"}

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
	return types.JSONToYAML(text)
}

// printDocument writes one object in a form for programs.
func printDocument(w io.Writer, output string, d types.Document) error {
	switch output {
	case "name":
		_, err := fmt.Fprintf(w, "configmap/%s\n", d.Name())
		return err
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "    ")
		return enc.Encode(d)
	}
	text, err := asYAML(d)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// printWritten writes what a write made, without the bookkeeping that get hides
// too.
func printWritten(w io.Writer, output string, d types.Document) error {
	d = d.Clone()
	d.SetMeta("managedFields", nil)
	return printDocument(w, output, d)
}

// asList puts objects into a List as kubectl shows several.
func asList(items []types.Document) types.Document {
	list := make([]any, len(items))
	for i, d := range items {
		list[i] = map[string]any(d)
	}
	return types.Document{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": list}
}

// table is what get shows a person.
type table struct {
	namespaces bool // a NAMESPACE column, for -A
	wide       bool
	now        time.Time
}

func (t table) print(out io.Writer, items []types.Document) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	header := []string{"NAME", "DATA", "AGE"}
	if t.namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if t.wide {
		header = append(header, "VERSION", "KEYS")
	}
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, d := range items {
		row := []string{d.Name(), fmt.Sprint(d.DataCount()), t.age(d)}
		if t.namespaces {
			row = append([]string{d.Namespace()}, row...)
		}
		if t.wide {
			row = append(row, d.ResourceVersion(), strings.Join(d.DataKeys(), ","))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func (t table) age(d types.Document) string {
	meta, _ := d["metadata"].(map[string]any)
	text, _ := meta["creationTimestamp"].(string)
	created, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<unknown>"
	}
	return duration.HumanDuration(t.now.Sub(created))
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
