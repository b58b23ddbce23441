package types_test

import (
	"testing"

	"example.com/cmctl/pkg/types"
)

func TestNearest(t *testing.T) {
	names := []string{"data", "binaryData", "metadata", "immutable"}
	for typed, want := range map[string]string{
		"Data": "data", "dat": "data", "binarydata": "binaryData", "metdata": "metadata", "imutable": "immutable",
		"Corefile": "", "": "", "date-of-birth": "",
	} {
		if got := types.Nearest(typed, names); got != want {
			t.Errorf("%q is near %q, want %q", typed, got, want)
		}
	}
}
