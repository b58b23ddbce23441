package main

import (
	"net/http"
	"strings"
	"testing"
)

// What is chosen is looked at on each object as it is when it is deleted.
func TestDeleteKeepsWhatLeftTheSelection(t *testing.T) {
	for _, c := range []struct {
		name  string
		write []string // somebody's, between the list and the deletion
		kept  bool
	}{
		{"by its labels", []string{"label", "app", "own=me", "--overwrite"}, true},
		{"a change that leaves it chosen", []string{"set", "app", "a=2"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.past("create", "app", "--from-literal=a=1")
			b.past("label", "app", "own=z")
			written := false
			b.meddle = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodDelete && !written {
					written = true
					b.past(c.write...)
				}
				return false
			}
			e := b.cmctl("delete", "-l", "own=z", "--field-selector=metadata.name=app")
			if e.code != 0 || strings.Contains(e.err, "is kept: it was changed") != c.kept {
				t.Errorf("it ended with %d:\n%s%s", e.code, e.out, e.err)
			}
			if left := b.cmctl("get", "app").code == 0; left != c.kept {
				t.Errorf("it is there: %v, want %v", left, c.kept)
			}
		})
	}
}
