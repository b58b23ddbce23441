// Package schema reads the OpenAPI v3 document of a server and tells what it
// says about the fields of ConfigMaps.
//
//	root, err := schema.ConfigMap(document)
//	field, err := root.At("metadata", "labels")
//	field.Write(os.Stdout, false)
package schema

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// node is a schema as the document has it.
type node struct {
	Ref                  string           `json:"$ref"`
	AllOf                []*node          `json:"allOf"`
	Type                 string           `json:"type"`
	Description          string           `json:"description"`
	Properties           map[string]*node `json:"properties"`
	Required             []string         `json:"required"`
	Items                *node            `json:"items"`
	AdditionalProperties *node            `json:"additionalProperties"`
}

// Field is one field of the object, or the object itself. It may be shared.
type Field struct {
	path        []string
	typeName    string
	description string
	node        *node // what is inside: the schema of a map's or a list's elements, too
	all         map[string]*node
}

const refPrefix = "#/components/schemas/"

// ConfigMap finds the schema of ConfigMaps in a document.
func ConfigMap(document []byte) (*Field, error) {
	var doc struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("the schema can't be read: %w", err)
	}
	// The document describes every kind there is; only what can be reached from
	// this one is taken apart.
	const root = "io.k8s.api.core.v1.ConfigMap"
	all := map[string]*node{}
	if err := load(root, doc.Components.Schemas, all); err != nil {
		return nil, err
	}
	if all[root] == nil {
		return nil, errors.New("the server's schema knows no ConfigMaps")
	}
	return newField(nil, &node{Ref: refPrefix + root}, all), nil
}

// load takes a schema apart, and those that it refers to.
func load(name string, raw map[string]json.RawMessage, all map[string]*node) error {
	text, ok := raw[name]
	if !ok || all[name] != nil {
		return nil
	}
	n := &node{}
	if err := json.Unmarshal(text, n); err != nil {
		return fmt.Errorf("the schema of %s can't be read: %w", name, err)
	}
	all[name] = n
	for _, ref := range n.refs() {
		if err := load(ref, raw, all); err != nil {
			return err
		}
	}
	return nil
}

// refs are the names of the schemas that a schema refers to.
func (n *node) refs() []string {
	if n == nil {
		return nil
	}
	var names []string
	if name, ok := strings.CutPrefix(n.Ref, refPrefix); ok {
		names = append(names, name)
	}
	children := slices.Concat(n.AllOf, slices.Collect(maps.Values(n.Properties)), []*node{n.Items, n.AdditionalProperties})
	for _, child := range children {
		names = append(names, child.refs()...)
	}
	return names
}

func newField(path []string, n *node, all map[string]*node) *Field {
	f := &Field{path: path, description: n.Description, all: all}
	f.typeName, f.node = f.resolve(n)
	if f.description == "" && f.node != nil {
		f.description = f.node.Description
	}
	return f
}

// resolve names the type of a schema and finds the one with its fields.
func (f *Field) resolve(n *node) (typeName string, inner *node) {
	switch {
	case n == nil:
		return "Object", nil
	case n.Ref != "":
		name := strings.TrimPrefix(n.Ref, refPrefix)
		target := f.all[name]
		if target != nil && target.Ref == "" && target.Type != "object" {
			return f.resolve(target)
		}
		return name[strings.LastIndex(name, ".")+1:], target
	case len(n.AllOf) == 1:
		return f.resolve(n.AllOf[0])
	case n.Items != nil:
		typeName, inner = f.resolve(n.Items)
		return "[]" + typeName, inner
	case n.AdditionalProperties != nil:
		typeName, inner = f.resolve(n.AdditionalProperties)
		return "map[string]" + typeName, inner
	case n.Type == "", n.Type == "object":
		return "Object", n
	}
	return n.Type, n
}

// UnknownFieldError says that there is no such field, and which there are.
type UnknownFieldError struct {
	Field string
	In    string
	Known []string
}

func (e *UnknownFieldError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no field %q: %s has no fields", e.Field, e.In)
	}
	return fmt.Sprintf("there is no field %q in %s; there are %s", e.Field, e.In, strings.Join(e.Known, ", "))
}

// At is the field at a path. The error is an *UnknownFieldError.
func (f *Field) At(path ...string) (*Field, error) {
	for _, name := range path {
		next := f.child(name)
		if next == nil {
			return nil, &UnknownFieldError{Field: name, In: strings.Join(append([]string{"configmap"}, f.path...), "."), Known: f.names()}
		}
		f = next
	}
	return f, nil
}

func (f *Field) child(name string) *Field {
	if f.node == nil || f.node.Properties[name] == nil {
		return nil
	}
	return newField(append(slices.Clone(f.path), name), f.node.Properties[name], f.all)
}

// names are the fields inside, in order.
func (f *Field) names() []string {
	if f.node == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(f.node.Properties))
}

// Write tells about the field and those inside it; recursive, about all that
// are inside those too, without their descriptions.
func (f *Field) Write(out io.Writer, recursive bool) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "KIND:       ConfigMap\nVERSION:    v1\n\n")
	if len(f.path) > 0 {
		fmt.Fprintf(w, "FIELD: %s <%s>\n\n", strings.Join(f.path, "."), f.typeName)
	}
	fmt.Fprintf(w, "DESCRIPTION:\n%s", wrap(f.description, "    "))
	if names := f.names(); len(names) > 0 {
		fmt.Fprint(w, "\nFIELDS:\n")
		f.writeFields(w, "  ", recursive)
	}
	return w.Flush()
}

func (f *Field) writeFields(w io.Writer, indent string, recursive bool) {
	for _, name := range f.names() {
		child := f.child(name)
		required := ""
		if slices.Contains(f.node.Required, name) {
			required = " -required-"
		}
		fmt.Fprintf(w, "%s%s\t<%s>%s\n", indent, name, child.typeName, required)
		if recursive {
			child.writeFields(w, indent+"  ", true)
			continue
		}
		fmt.Fprintf(w, "%s\n", wrap(child.description, indent+"  "))
	}
}

// width is how long the lines of a description may be.
const width = 80

// wrap breaks each paragraph into indented lines.
func wrap(text, indent string) string {
	b := strings.Builder{}
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := indent
		for _, word := range strings.Fields(paragraph) {
			if len(line)+len(word) > width && line != indent {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = indent
			}
			line += word + " "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
