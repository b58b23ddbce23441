package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// unfitError is what a server would refuse as invalid, found before it was sent.
type unfitError struct{ reason string }

func (e *unfitError) Error() string { return e.reason }

// fits refuses a document, or a part of one, that is no ConfigMap's by the types of
// its values. A server says that in the words of its programming language.
func fits(d types.Document) error {
	for _, own := range [...]struct{ field, value string }{{"kind", "ConfigMap"}, {"apiVersion", "v1"}} {
		if v, ok := d[own.field].(string); ok && v != own.value {
			return &unfitError{fmt.Sprintf("%s: %q stands where %q belongs: cmctl writes ConfigMaps of v1 only", own.field, v, own.value)}
		}
	}
	if problems := d.Problems(false); len(problems) > 0 {
		return &unfitError{problems[0].Message}
	}
	_, err := client.ToConfigMap(d)
	var misfit *client.MisfitError
	if errors.As(err, &misfit) {
		return &unfitError{misfit.Error()}
	}
	return err
}

// partOf is what of an object a merge patch sets: it has none of the nulls, which
// remove, nor the directives of a strategic patch.
func partOf(patch types.Document, strategic bool) types.Document {
	part, _ := withoutDirectives(map[string]any(patch.Clone()), strategic).(map[string]any)
	return part
}

// withoutDirectives is a value of a patch without what removes and directs.
func withoutDirectives(v any, strategic bool) any {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(key string, value any) bool {
			return value == nil || strategic && strings.HasPrefix(key, "$")
		})
		for key, value := range v {
			v[key] = withoutDirectives(value, strategic)
		}
	case []any:
		for i, value := range v {
			v[i] = withoutDirectives(value, strategic)
		}
	}
	return v
}

// operations are those of a JSON patch, with the members that each needs beside
// its path.
var operations = map[string]string{"add": "value", "replace": "value", "test": "value", "copy": "from", "move": "from", "remove": ""}

// checkSteps refuses operations of a JSON patch that make no sense on any object.
func checkSteps(steps []json.RawMessage) error {
	for i, step := range steps {
		if why := checkStep(step); why != "" {
			return fmt.Errorf("operation %d %s", i+1, why)
		}
	}
	return nil
}

// checkStep is what is wrong with an operation, empty if nothing is.
func checkStep(step json.RawMessage) string {
	var members map[string]any
	if json.Unmarshal(step, &members) != nil || members == nil {
		return `must be a map such as {"op": "add", "path": "/data/key", "value": "text"}`
	}
	op, _ := members["op"].(string)
	needs, known := operations[op]
	if !known {
		return "must have an op that is one of " + strings.Join(slices.Sorted(maps.Keys(operations)), ", ")
	}
	for _, member := range []string{"path", "from"} {
		pointer, ok := members[member].(string)
		switch {
		case member == "from" && needs != "from":
		case !ok || pointer != "" && !strings.HasPrefix(pointer, "/"):
			return fmt.Sprintf("(%s) must have a %s such as /data/key", op, member)
		}
	}
	if _, ok := members["value"]; needs == "value" && !ok {
		return fmt.Sprintf("(%s) must have a value", op)
	}
	if _, ok := members["value"].(map[string]any); members["path"] == "" && !ok && needs == "value" {
		return fmt.Sprintf("(%s) is about the whole object, and its value must be a map", op)
	}
	return ""
}
