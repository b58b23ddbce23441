package transfer

import (
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/store"
)

func TestWhereAnInterruptedCopyStoodWithOneObject(t *testing.T) {
	heads := func(text string) []store.Record {
		var all []store.Record
		for word := range strings.FieldsSeq(text) {
			all = append(all, store.Record{Key: "k", Meta: store.Meta{WriteID: word}})
		}
		return all
	}
	for _, c := range []struct {
		name, there, heads string
		want               int
	}{
		{"at the beginning", "a", "a b c", 1},
		{"in the middle", "a b", "a b c", 2},
		{"at the end", "a b c", "a b c", 3},
		{"the target has given up old ones", "b c", "a b c d", 3},
		{"the source has given up old ones", "a b c", "b c d", 2},
		{"versions that look the same", "a a", "a a a b", 2},
		{"another object", "x", "a b", 0},
		{"another object that begins the same", "a x", "a b", 0},
		{"all of it was given up in the source", "a b", "d", 0},
	} {
		if got := overlap(heads(c.there), heads(c.heads)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
