package types_test

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What is refused here is what the server refuses, in the same words.
func TestFrozenSaysWhatTheServerSays(t *testing.T) {
	const live = `{"metadata":{"name":"f"},"immutable":true,"data":{"a":"1"},"binaryData":{"b":"AA=="}}`
	for name, c := range map[string]struct {
		live, next string
		causes     int
	}{
		"nothing is changed":        {live, live, 0},
		"a label is added":          {live, `{"metadata":{"name":"f","labels":{"x":"y"}},"immutable":true,"data":{"a":"1"},"binaryData":{"b":"AA=="}}`, 0},
		"it was not immutable":      {`{"metadata":{"name":"f"},"data":{"a":"1"}}`, `{"metadata":{"name":"f"},"immutable":true,"data":{"a":"2"}}`, 0},
		"it is said not to be":      {`{"metadata":{"name":"f"},"immutable":false,"data":{"a":"1"}}`, `{"metadata":{"name":"f"},"data":{"a":"2"}}`, 0},
		"a value is changed":        {live, `{"metadata":{"name":"f"},"immutable":true,"data":{"a":"2"},"binaryData":{"b":"AA=="}}`, 1},
		"a key is removed":          {live, `{"metadata":{"name":"f"},"immutable":true,"binaryData":{"b":"AA=="}}`, 1},
		"a binary value is changed": {live, `{"metadata":{"name":"f"},"immutable":true,"data":{"a":"1"},"binaryData":{"b":"AQ=="}}`, 1},
		"a key changes its map":     {live, `{"metadata":{"name":"f"},"immutable":true,"binaryData":{"a":"MQ==","b":"AA=="}}`, 2},
		"the flag is cleared":       {live, `{"metadata":{"name":"f"},"data":{"a":"1"},"binaryData":{"b":"AA=="}}`, 1},
		"the flag is false":         {live, `{"metadata":{"name":"f"},"immutable":false,"data":{"a":"2"},"binaryData":{"b":"AA=="}}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := parse(t, c.live), parse(t, c.next)
			var frozen field.ErrorList
			for _, e := range types.ValidateUpdate(typed(t, c.next), typed(t, c.live)) {
				if e.Type == field.ErrorTypeForbidden {
					frozen = append(frozen, e)
				}
			}
			want := "nothing"
			if len(frozen) > 0 {
				want = types.ConfigMaps.Invalid("f", frozen).Error()
			}
			got := "nothing"
			if err := types.Frozen(was, types.Diff(was, is)); err != nil {
				got = err.Error()
			}
			if got != want || strings.Count(got, "Forbidden") != c.causes {
				t.Errorf("got  %s\nwant %s, with %d causes", got, want, c.causes)
			}
		})
	}
}

func typed(t *testing.T, text string) *types.ConfigMap {
	t.Helper()
	cm := &types.ConfigMap{}
	if err := json.Unmarshal([]byte(text), cm); err != nil {
		t.Fatal(err)
	}
	return cm
}
