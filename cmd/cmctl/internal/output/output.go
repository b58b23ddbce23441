// Package output prints objects in the forms that -o names: yaml, json, name,
// jsonpath, go-template and custom-columns. It also has the tables, the sorting
// and the colours that go with them.
//
//	p, err := output.New("jsonpath={.data.app\\.yaml}", output.Options{})
//	err = p.Print(os.Stdout, output.Objects{Items: docs})
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"example.com/cmctl/pkg/types"
)

// Objects are what is to be printed.
type Objects struct {
	Items []types.Document
	// List is true if they are shown as a List, however many they are. Without
	// it there is exactly one.
	List bool
}

// document is the one object, or the List of all.
func (o Objects) document() types.Document {
	if !o.List {
		return o.Items[0]
	}
	items := make([]any, len(o.Items))
	for i, d := range o.Items {
		items[i] = map[string]any(d)
	}
	return types.Document{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}
}

// Printer writes objects in one form. What it returns an error for it has not
// begun to write.
type Printer interface {
	Print(w io.Writer, o Objects) error
}

// Options adjust what New makes.
type Options struct {
	// Template is the text for go-template and jsonpath where -o doesn't have it.
	Template string
	// AllowMissing lets an expression about a key that isn't there give nothing;
	// otherwise that is a *MissingError.
	AllowMissing bool
	// NoHeaders leaves out the first line of custom-columns.
	NoHeaders bool
	// Colors are for the first line of custom-columns.
	Colors Palette
}

// MissingError says that something asked for by name isn't in an object.
type MissingError struct{ Message string }

func (e *MissingError) Error() string { return e.Message }

// Formats are the names that New knows, as usage shows them.
var Formats = []string{"yaml", "json", "name", "jsonpath=...", "jsonpath-as-json=...", "jsonpath-file=FILE",
	"go-template=...", "go-template-file=FILE", "custom-columns=...", "custom-columns-file=FILE"}

// New makes the printer that spec, the value of -o, asks for. It refuses
// expressions that can't be meant, so that nothing is read for them.
func New(spec string, o Options) (Printer, error) {
	name, text, given := strings.Cut(spec, "=")
	if base, ok := strings.CutSuffix(name, "-file"); ok && slices.Contains([]string{"jsonpath", "go-template", "custom-columns"}, base) {
		content, err := os.ReadFile(text)
		if err != nil {
			return nil, fmt.Errorf("-o %s: %w", name, err)
		}
		name, text = base, string(content)
		if base == "custom-columns" {
			return newColumnsOfFile(text, o)
		}
	}
	if !given && o.Template != "" {
		text = o.Template
	}
	switch name {
	case "yaml", "json", "name":
		if given {
			return nil, fmt.Errorf("-o %s takes nothing after it, and not %q", name, text)
		}
	}
	switch name {
	case "yaml":
		return printFunc(printYAML), nil
	case "json":
		return printFunc(printJSON), nil
	case "name":
		return printFunc(printNames), nil
	case "jsonpath", "jsonpath-as-json":
		return newPathPrinter(text, name == "jsonpath-as-json", o)
	case "go-template", "template": // kubectl has both
		return newTemplate(text, o)
	case "custom-columns":
		return newColumns(text, o)
	}
	return nil, fmt.Errorf("-o %s is not known here; use one of %s", spec, strings.Join(Formats, ", "))
}

// printFunc is a Printer that writes to memory what is then written at once.
type printFunc func(w *bytes.Buffer, o Objects) error

func (f printFunc) Print(w io.Writer, o Objects) error {
	var b bytes.Buffer
	if err := f(&b, o); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func printYAML(w *bytes.Buffer, o Objects) error {
	text, err := o.document().JSON()
	if err != nil {
		return err
	}
	if text, err = types.JSONToReadableYAML(text); err != nil {
		return err
	}
	w.Write(text)
	return nil
}

func printJSON(w *bytes.Buffer, o Objects) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	return enc.Encode(o.document())
}

func printNames(w *bytes.Buffer, o Objects) error {
	for _, d := range o.Items {
		fmt.Fprintf(w, "configmap/%s\n", d.Name())
	}
	return nil
}
