package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/types"
)

// Configuration is what a client applies: the fields that it has an opinion
// about.
type Configuration struct {
	Object *unstructured.Unstructured
	// Repeated names the keys that stand in one map more than once; the last one
	// counts.
	Repeated []string
}

// ReadConfiguration reads a body to be applied, which is YAML or JSON.
func ReadConfiguration(body []byte) (Configuration, error) {
	document, repeated, err := toJSON(body)
	var refusal *types.StatusError
	if errors.As(err, &refusal) {
		return Configuration{}, refusal
	}
	if err != nil {
		return Configuration{}, types.BadRequest("error encoding patch: yaml: " + err.Error())
	}
	if err := checkShape(document); err != nil {
		return Configuration{}, err
	}
	content := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &content); err != nil {
		return Configuration{}, undecodable(err.Error())
	}
	if content == nil {
		content = map[string]any{} // of null
	}
	return Configuration{Object: &unstructured.Unstructured{Object: content}, Repeated: repeated}, nil
}

// toJSON turns a body into JSON. JSON is taken as it is: as YAML, its strings
// would mean something else where they hold line breaks that only YAML knows.
func toJSON(body []byte) (document []byte, repeated []string, err error) {
	if start := bytes.TrimLeft(body, " \t\r\n"); bytes.HasPrefix(start, []byte("{")) && json.Valid(start) {
		if !utf8.Valid(body) {
			return nil, nil, errors.New("not UTF-8 text")
		}
		// Before it takes many times its own size to be decoded.
		if err := checkShape(start); err != nil {
			return nil, nil, err
		}
		if repeated, err = decodeStrict(start, &map[string]any{}); err != nil || len(repeated) == 0 {
			return start, nil, err
		}
		// Clients know them by the words that YAML has for them.
		if _, inYAML, err := types.YAMLToJSONRepeated(body); err == nil && len(inYAML) > 0 {
			repeated = inYAML
		}
		return start, repeated, nil
	}
	return types.YAMLToJSONRepeated(body)
}

// RefuseRepeated refuses a configuration with repeated keys, where the client
// asked for it with fieldValidation=Strict.
func (c Configuration) RefuseRepeated() error {
	return types.BadRequest("error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  " +
		strings.Join(c.Repeated, "\n  "))
}

// Reread gives a merged object as it would come out of a request's body, and
// refuses what no body may hold. Its name must be set, and its version be one
// that the server gives.
func Reread(res *types.Resource, merged types.Object) (types.Object, error) {
	encoded, err := res.Encode(merged)
	if err != nil {
		return nil, fmt.Errorf("apply %s %s: %w", res.Kind, merged.GetName(), err)
	}
	o, _, err := res.Decode(encoded.AppendObject(nil, merged.GetResourceVersion()), types.MediaJSON)
	if was, ok := merged.(*types.ConfigMap); ok && err == nil && was.BinaryData != nil && len(was.BinaryData) == 0 {
		// No encoding keeps it, but to what is immutable it is a change.
		o.(*types.ConfigMap).BinaryData = was.BinaryData
	}
	return o, err
}
