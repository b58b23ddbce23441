package main

import (
	"bytes"
	"encoding/json"

	"example.com/cmctl/pkg/types"
)

// lastApplied is the annotation that holds what was last applied.
var lastApplied = types.Field{Section: "metadata.annotations", Key: types.LastApplied}

// maxAnnotations is how many bytes all annotations of an object may have
// together, keys included.
const maxAnnotations = 256 << 10

func annotationSize(d types.Document) int {
	size := 0
	for f, v := range d.Fields() {
		if text, ok := v.(string); ok && f.Section == lastApplied.Section {
			size += len(f.Key) + len(text)
		}
	}
	return size
}

// recordOf is the manifest in the form that kubectl records it in, byte for
// byte, so that both tools can be used in turn: JSON with sorted keys, an
// annotations map even if it is empty, and a line feed at the end.
func recordOf(file types.Document) (string, error) {
	doc := file.Clone()
	meta, _ := doc["metadata"].(map[string]any)
	if _, ok := meta["annotations"].(map[string]any); !ok {
		doc.SetMeta("annotations", map[string]any{})
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(doc); err != nil {
		return "", err
	}
	return b.String(), nil
}

// withoutRecord is the object without the record of the last apply, and a
// function that puts the record back.
func withoutRecord(d types.Document) (bare types.Document, restore func(types.Document)) {
	bare = d.Clone()
	record, ok := d.Annotation(types.LastApplied)
	if ok {
		bare.Set(lastApplied, nil)
	}
	return bare, func(to types.Document) {
		if ok {
			to.Set(lastApplied, record)
		}
	}
}

// recordIn is what was last applied to a live object, nil if there is no record
// that can be read.
func recordIn(live types.Document) types.Document {
	text, ok := live.Annotation(types.LastApplied)
	if !ok {
		return nil
	}
	base, err := types.ParseDocument([]byte(text))
	if err != nil {
		return nil
	}
	return base
}
