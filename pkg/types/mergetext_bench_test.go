package types_test

import (
	"fmt"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// BenchmarkMergeOfBigTexts merges values of the greatest size that an object
// may have, in which each side changed some thirty places.
func BenchmarkMergeOfBigTexts(b *testing.B) {
	for key, line := range map[string]string{
		"plain.txt": "%d %s\n", "big.yaml": "key-%d: %s\n", "big.properties": "key-%d=%s\n", "big.toml": "key-%d = \"%s\"\n", "big.ini": "key-%d = %s\n",
		"big.json": "\"key-%d\": \"%s\",\n",
	} {
		text := func(changed int) string {
			var t strings.Builder
			for i := range 8_000 {
				value := strings.Repeat("a longer value ", 8)
				if i%300 == changed {
					value = "another"
				}
				fmt.Fprintf(&t, line, i, value)
			}
			if key == "big.json" {
				return "{" + t.String() + "\"end\": true}\n"
			}
			return t.String()
		}
		f := dataField(key)
		base, mine, live := valued(f, text(-1)), valued(f, text(10)), valued(f, text(160))
		b.Run(key, func(b *testing.B) {
			for b.Loop() {
				if m := types.Merge(base, mine, live); len(m.Applied) != 1 {
					b.Fatalf("got %v", verdict(m))
				}
			}
		})
	}
}
