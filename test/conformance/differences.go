package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Difference is a step to which the answer is not the recorded one, on purpose.
// It changes the parts of the recorded answer that it names and no others.
type Difference struct {
	Scenario string `json:"scenario"`
	Step     int    `json:"step"` // from 1
	// Why names the row of the table of differences.
	Why string `json:"why"`
	// Answer are the parts that we answer, by the path that a Mismatch gives.
	Answer object `json:"answer"`
	// Without are the paths of recorded parts that our answer lacks.
	Without []string `json:"without"`
}

// ParseDifferences reads a YAML list of differences.
func ParseDifferences(text []byte) ([]Difference, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("read differences: %w", err)
	}
	var list []Difference
	d := json.NewDecoder(bytes.NewReader(asJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("read differences: %w", err)
	}
	return list, nil
}

// Apply gives the answer that is wanted in place of the recorded one. A
// difference from nothing, or from what is not there, is an error.
func (d Difference) Apply(recorded any) (any, error) {
	if len(d.Answer)+len(d.Without) == 0 {
		return nil, fmt.Errorf("%s: names no part of the answer", d)
	}
	wanted := recorded
	for _, part := range d.Answer {
		if err := d.change(&wanted, part.key, part.value); err != nil {
			return nil, err
		}
	}
	for _, path := range d.Without {
		if err := d.change(&wanted, path, absent{}); err != nil {
			return nil, err
		}
	}
	return wanted, nil
}

func (d Difference) change(answer *any, path string, value any) error {
	keys := splitPath(path)
	if old := digKeys(*answer, keys); len(Compare(old, value)) == 0 {
		return fmt.Errorf("%s: %s is recorded so", d, path)
	}
	changed, err := replaced(*answer, keys, value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", d, path, err)
	}
	*answer = changed
	return nil
}

// String names the step.
func (d Difference) String() string {
	return fmt.Sprintf("difference in %s, step %d (%s)", d.Scenario, d.Step, d.Why)
}

// splitPath takes a path like body.items[0].metadata apart.
func splitPath(path string) []string {
	return strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
}

// replaced is v with another value at a path; absent{} removes what is there.
// v stays as it is.
func replaced(v any, keys []string, value any) (any, error) {
	if len(keys) == 0 {
		return value, nil
	}
	inner, err := replaced(digKeys(v, keys[:1]), keys[1:], value)
	if err != nil {
		return nil, err
	}
	switch in := v.(type) {
	case object:
		if inner == (absent{}) {
			return in.without(keys[0]), nil
		}
		return in.with(keys[0], inner), nil
	case array:
		i, err := strconv.Atoi(keys[0])
		if err != nil || i < 0 || i >= len(in) || inner == (absent{}) {
			return nil, fmt.Errorf("no item %s to replace", keys[0])
		}
		out := slices.Clone(in)
		out[i] = inner
		return out, nil
	default:
		return nil, fmt.Errorf("nothing there that could have %q", keys[0])
	}
}
