package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/cmctl/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Whatever a server answers to the write: what the person made is not lost, and
// is found by what is said.
func TestTheTextOutlivesEveryRefusal(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer *types.StatusError
		code   int
		opened int // how often the editor was
		said   string
	}{
		{"a conflict each time", types.ConfigMaps.VersionConflict("flags", "1", "2"), exitConflict, 1, "gave up"},
		{"forbidden", types.ConfigMaps.Forbidden("flags", "not you"), exitRefused, 1, "not you"},
		{"invalid", types.ConfigMaps.Invalid("flags", field.ErrorList{field.Invalid(field.NewPath("data"), "", "not so")}), exitRefused, 2, "not so\nThe editor opens again"},
		{"bad request", types.BadRequest("not so"), exitRefused, 2, "The editor opens again"},
		{"too large", types.RequestTooLarge(10), exitRefused, 2, "The editor opens again"},
		{"an error that may hide a success", types.Internal("1"), exitUnreachable, 1, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var well atomic.Bool
			b := between(t, func(w http.ResponseWriter, r *http.Request) bool {
				if well.Load() || r.Method != http.MethodPut {
					return false
				}
				w.Header().Set("Content-Type", types.MediaJSON)
				w.WriteHeader(int(c.answer.ErrStatus.Code))
				if err := json.NewEncoder(w).Encode(c.answer.ErrStatus); err != nil {
					t.Error(err)
				}
				return true
			})
			drafts, opened := os.Getenv("TMPDIR"), filepath.Join(t.TempDir(), "opened")
			t.Setenv("CMCTL_EDITOR", `sh -c 'echo >> "$0"; sed -i s/blue/green/ "$1"' `+opened)
			b.must("create", "flags", "--from-literal=mode=blue")
			e := b.cmctl("edit", "flags")
			if e.code != c.code || e.out != "" || !strings.Contains(e.err, c.said) {
				t.Errorf("edit ended with %d, want %d, %q:\n%s", e.code, c.code, e.out, e.err)
			}
			if times, err := os.ReadFile(opened); err != nil || len(times) != c.opened {
				t.Errorf("the editor opened %d times, want %d; %v", len(times), c.opened, err)
			}
			named := regexp.MustCompile(`(?m)^your text is kept in (.*)$`).FindStringSubmatch(e.err)
			if named == nil {
				t.Fatalf("no text is named:\n%s", e.err)
			}
			text, err := os.ReadFile(named[1])
			if err != nil || !strings.Contains(string(text), "mode: green") {
				t.Errorf("kept is %q, %v", text, err)
			}

			// Once the server is well, that text is written and gone.
			well.Store(true)
			t.Setenv("CMCTL_EDITOR", "true")
			b.must("edit", "--resume", named[1])
			if left, _ := os.ReadDir(drafts); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

func TestALargeObjectIsToldWithItsLargestKeys(t *testing.T) {
	key := func(name string) types.Field { return types.Field{Section: "data", Key: name} }
	of := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name   string
		fields map[types.Field]any
		want   string
	}{
		{"as much as is allowed", map[types.Field]any{key("a"): of(types.MaxDataBytes)}, ""},
		{"one byte more, text and bytes together", map[types.Field]any{
			key("a"): of(types.MaxDataBytes - 1), key("b"): types.Binary("AP8=")},
			"too large: the values are 1048577 bytes together, 1 more than the 1048576 that are allowed; the largest: data[a] 1048575, data[b] 2"},
		{"annotations", map[types.Field]any{{Section: "metadata.annotations", Key: "n"}: of(maxAnnotations)},
			"too large: the annotations are 262145 bytes together, 1 more than the 262144 that are allowed; the largest: metadata.annotations[n] 262145"},
		{"five are enough to name", map[types.Field]any{
			key("a"): of(300000), key("b"): of(300000), key("c"): of(300000),
			key("d"): of(300000), key("e"): of(300000), key("f"): of(1)},
			"too large: the values are 1500001 bytes together, 451425 more than the 1048576 that are allowed; the largest: data[a] 300000, data[b] 300000, data[c] 300000, data[d] 300000, data[e] 300000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := types.NewDocument("default", "flags")
			for f, v := range c.fields {
				doc.Set(f, v)
			}
			got := ""
			if err := tooLarge(doc); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}
