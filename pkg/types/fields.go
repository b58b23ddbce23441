package types

import (
	"cmp"
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
)

// Field names one part of a ConfigMap that changes independently of the others:
// a key of data (or binaryData: both hold the same keys), a label, an
// annotation, or any other field as a whole.
type Field struct {
	Section string // data, metadata.labels, metadata.annotations, metadata, or empty for a top-level field
	Key     string
}

// String is the field as messages show it: data[mode], metadata.labels[tier],
// metadata.finalizers, immutable.
func (f Field) String() string {
	switch f.Section {
	case "":
		return f.Key
	case "metadata":
		return "metadata." + f.Key
	}
	return f.Section + "[" + f.Key + "]"
}

// Binary is a value of binaryData: base64 as it was written.
type Binary string

// Bytes is the value itself; ok is false if it is not base64.
func (b Binary) Bytes() (value []byte, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(string(b))
	return raw, err == nil
}

// LastApplied is the annotation in which kubectl and cmctl record what was last
// applied to an object.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Fields is the document taken apart. A value is a string or a Binary in data,
// what stood there elsewhere. Identity and what only the server sets are not
// among them, nor is a null, nor an empty list of metadata. The values must not
// be modified.
func (d Document) Fields() map[Field]any {
	fields := map[Field]any{}
	put := func(section, key string, v any) {
		if v != nil {
			fields[Field{section, key}] = v
		}
	}
	for key, v := range d.section(binarySection) {
		if text, ok := v.(string); ok {
			v = Binary(text)
		}
		put("data", key, v)
	}
	for key, v := range d.section(dataSection) {
		put("data", key, v)
	}
	for _, s := range []section{labelSection, annotationSection} {
		for key, v := range d.section(s) {
			put(s.String(), key, v)
		}
	}
	meta, _ := d["metadata"].(map[string]any)
	for key, v := range meta {
		if list, ok := v.([]any); ok && len(list) == 0 {
			continue // servers leave empty lists out
		}
		if key != "labels" && key != "annotations" && key != "name" && key != "namespace" && !slices.Contains(serverFields, key) {
			put("metadata", key, asKept(v))
		}
	}
	for key, v := range d {
		switch key {
		case "apiVersion", "kind", "metadata", "data", "binaryData", "status":
		default:
			put("", key, v)
		}
	}
	return fields
}

// asKept is a field of metadata as servers keep it, so that what they tidy up
// doesn't pass for a change: objects in lists without nulls, and each once.
func asKept(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	kept := make([]any, 0, len(list))
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			m = maps.Clone(m)
			maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
			e = m
		}
		if !slices.ContainsFunc(kept, func(k any) bool { return reflect.DeepEqual(k, e) }) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Set gives a field a value, or removes it if the value is nil. A key of data
// lives in one of the two maps: setting it in one removes it from the other.
func (d Document) Set(f Field, value any) {
	value = cloneValue(value)
	switch f.Section {
	case "":
		if value == nil {
			delete(d, f.Key)
			return
		}
		d[f.Key] = value
	case "metadata":
		d.SetMeta(f.Key, value)
	case "data":
		if b, ok := value.(Binary); ok {
			d.setIn(dataSection, f.Key, nil)
			d.setIn(binarySection, f.Key, string(b))
			return
		}
		d.setIn(binarySection, f.Key, nil)
		d.setIn(dataSection, f.Key, value)
	case labelSection.String():
		d.setIn(labelSection, f.Key, value)
	case annotationSection.String():
		d.setIn(annotationSection, f.Key, value)
	}
}

// DataKeys are the keys of data and binaryData together, sorted.
func (d Document) DataKeys() []string {
	keys := slices.Collect(maps.Keys(d.section(dataSection)))
	keys = slices.AppendSeq(keys, maps.Keys(d.section(binarySection)))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// WithoutNulls is a copy in which the maps have no entry without a value.
func (d Document) WithoutNulls() Document {
	out := d.Clone()
	for _, s := range mapSections {
		for key, v := range d.section(s) {
			if v == nil {
				out.setIn(s, key, nil)
			}
		}
	}
	return out
}

// SameValue tells whether two values of a field are the same; base64 that
// decodes to the same bytes is.
func SameValue(a, b any) bool {
	x, ok1 := a.(Binary)
	y, ok2 := b.(Binary)
	if ok1 && ok2 && x != y {
		left, ok1 := x.Bytes()
		right, ok2 := y.Bytes()
		return ok1 && ok2 && string(left) == string(right)
	}
	return reflect.DeepEqual(a, b)
}

// sortedFields is the union of the maps' keys in the order that people read
// them in: data first, then labels, annotations and the rest, each by key.
func sortedFields(sets ...map[Field]any) []Field {
	set := map[Field]struct{}{}
	for _, m := range sets {
		for f := range m {
			set[f] = struct{}{}
		}
	}
	order := map[string]int{"data": 0, "metadata.labels": 1, "metadata.annotations": 2, "metadata": 3, "": 4}
	return slices.SortedFunc(maps.Keys(set), func(a, b Field) int {
		return cmp.Or(cmp.Compare(order[a.Section], order[b.Section]), cmp.Compare(a.Key, b.Key))
	})
}
