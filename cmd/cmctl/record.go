package main

import (
	"bytes"
	"encoding/json"

	"example.com/cmctl/pkg/types"
)

// lastApplied is the annotation that holds what was last applied.
var lastApplied = types.Field{Section: "metadata.annotations", Key: types.LastApplied}

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
