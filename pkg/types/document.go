package types

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"
)

// Document is a ConfigMap as it came, fields that this release doesn't know
// included, so that a client which reads, edits and writes drops nothing.
// Numbers are json.Number: no value goes through a float. The zero value is
// not usable; a Document may be read by many goroutines and changed by one.
type Document map[string]any

// ParseDocument decodes one JSON object.
func ParseDocument(text []byte) (Document, error) {
	if !utf8.Valid(text) {
		// The decoder would put U+FFFD in the place of the bytes, and no word.
		return nil, errors.New("not UTF-8 text")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var d Document
	if err := dec.Decode(&d); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("not an object but null")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return d, checkEscapes(text)
}

// NewDocument is a ConfigMap with that name and nothing else. An empty
// namespace is left out.
func NewDocument(namespace, name string) Document {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return Document{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
}

// JSON is the document on one line, keys sorted.
func (d Document) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // six bytes for each < would burst the server's limit
	if err := enc.Encode(map[string]any(d)); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Clone is a deep copy.
func (d Document) Clone() Document { return Document(cloneValue(map[string]any(d)).(map[string]any)) }

// Equal tells whether both hold the same, field by field.
func (d Document) Equal(other Document) bool {
	return reflect.DeepEqual(map[string]any(d), map[string]any(other))
}

// Name is metadata.name, empty if there is none.
func (d Document) Name() string { return d.metaString("name") }

// Namespace is metadata.namespace.
func (d Document) Namespace() string { return d.metaString("namespace") }

// UID is metadata.uid.
func (d Document) UID() string { return d.metaString("uid") }

// ResourceVersion is metadata.resourceVersion, an opaque string.
func (d Document) ResourceVersion() string { return d.metaString("resourceVersion") }

// Kind is the kind, empty if there is none.
func (d Document) Kind() string { s, _ := d["kind"].(string); return s }

// APIVersion is the apiVersion.
func (d Document) APIVersion() string { s, _ := d["apiVersion"].(string); return s }

// Annotation is one annotation's value and whether it is there.
func (d Document) Annotation(key string) (string, bool) {
	s, ok := d.section(section{"metadata", "annotations"})[key].(string)
	return s, ok
}

// Label is one label's value and whether it is there.
func (d Document) Label(key string) (string, bool) {
	s, ok := d.section(labelSection)[key].(string)
	return s, ok
}

// SetMeta sets a field of metadata, or removes it if value is nil.
func (d Document) SetMeta(field string, value any) {
	meta, ok := d["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		d["metadata"] = meta
	}
	if value == nil {
		delete(meta, field)
		return
	}
	meta[field] = value
}

// serverFields are set by the server alone: they take no part in edits.
var serverFields = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "selfLink", "managedFields"}

// DropServerFields removes what only the server sets and returns the names of
// the fields that had a value.
func (d Document) DropServerFields() []string {
	var dropped []string
	meta, _ := d["metadata"].(map[string]any)
	for _, f := range serverFields {
		if v, ok := meta[f]; ok {
			delete(meta, f)
			if v != nil {
				dropped = append(dropped, "metadata."+f)
			}
		}
	}
	if v, ok := d["status"]; ok {
		delete(d, "status")
		if m, isMap := v.(map[string]any); v != nil && (!isMap || len(m) > 0) {
			dropped = append(dropped, "status")
		}
	}
	return dropped
}

// DataCount is the number of keys in data and binaryData together.
func (d Document) DataCount() int {
	return len(d.section(dataSection)) + len(d.section(binarySection))
}

// Problem is one thing wrong with a document that a person wrote. Path leads to
// it, so that whoever has the text can name the line.
type Problem struct {
	Path    []string
	Message string
}

// Problems finds the values whose type is wrong: the maps of a ConfigMap take
// strings alone, and a YAML number or boolean there is a mistake that is better
// named than coerced. So is a key in both data and binaryData, of which Fields
// could take one only. nulls allows null values in the maps, which apply reads
// as "this key must not exist".
func (d Document) Problems(nulls bool) []Problem {
	var found []Problem
	add := func(path []string, format string, args ...any) {
		found = append(found, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if meta, ok := d["metadata"]; ok && meta != nil {
		if _, ok := meta.(map[string]any); !ok {
			add([]string{"metadata"}, "metadata must be a map, not %s", typeName(meta))
			return found
		}
	}
	for _, s := range mapSections {
		raw, ok := d.Value(s...)
		if !ok || raw == nil {
			continue
		}
		entries, ok := raw.(map[string]any)
		if !ok {
			add(s, "%s must be a map of keys to strings, not %s", s, typeName(raw))
			continue
		}
		for key, v := range entries {
			path := append(append([]string{}, s...), key)
			text, isString := v.(string)
			switch {
			case v == nil && nulls:
			case v == nil:
				add(path, "%s[%s] has no value; write \"\" for an empty one", s, key)
			case !isString:
				add(path, "%s[%s] must be a string, not %s", s, key, typeName(v))
			case s.String() == "binaryData":
				if d.section(dataSection)[key] != nil {
					add(path, "binaryData[%s] is in data too; a key can be in one of them only", key)
				}
				if _, err := base64.StdEncoding.DecodeString(text); err != nil {
					add(path, "binaryData[%s] is not base64: %v", key, err)
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b Problem) int { return slices.Compare(a.Path, b.Path) })
	return found
}

// section is the path of a map of strings inside the document.
type section []string

var (
	dataSection       = section{"data"}
	binarySection     = section{"binaryData"}
	labelSection      = section{"metadata", "labels"}
	annotationSection = section{"metadata", "annotations"}
	mapSections       = []section{dataSection, binarySection, labelSection, annotationSection}
)

func (s section) String() string {
	text := s[0]
	for _, part := range s[1:] {
		text += "." + part
	}
	return text
}

// Value is what stands at a path, and whether anything does.
func (d Document) Value(path ...string) (any, bool) {
	var at any = map[string]any(d)
	for _, part := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[part]; !ok {
			return nil, false
		}
	}
	return at, true
}

// section is the map at s, nil if there is none.
func (d Document) section(s section) map[string]any {
	at, _ := d.Value(s...)
	m, _ := at.(map[string]any)
	return m
}

// setIn sets or, with a nil value, removes an entry of the map at s, making or
// removing the map as needed.
func (d Document) setIn(s section, key string, value any) {
	parent := map[string]any(d)
	if _, ok := d.section(s)[key]; value == nil && !ok {
		return
	}
	for _, part := range s[:len(s)-1] {
		next, ok := parent[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			parent[part] = next
		}
		parent = next
	}
	last := s[len(s)-1]
	entries, ok := parent[last].(map[string]any)
	switch {
	case value == nil:
		delete(entries, key)
		if len(entries) == 0 {
			delete(parent, last)
		}
		return
	case !ok:
		entries = map[string]any{}
		parent[last] = entries
	}
	entries[key] = value
}

func (d Document) metaString(field string) string {
	meta, _ := d["metadata"].(map[string]any)
	s, _ := meta[field].(string)
	return s
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := maps.Clone(v)
		for k, e := range m {
			m[k] = cloneValue(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = cloneValue(e)
		}
		return l
	}
	return v
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case json.Number:
		return "the number " + v.String()
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("%T", v)
}
