package main

import (
	"testing"

	"example.com/cmctl/pkg/types"
)

// Whatever a person gives as a patch, what is sent is made on the version that
// was read and on no other.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`{"data":{"a":"1"}}`, `data: {a: null}`, `{"metadata":null}`, `{"metadata":{"resourceVersion":"5"}}`, `{"$patch":"replace"}`,
		`[]`, `[{"op":"add","path":"/metadata/resourceVersion","value":"5"}]`, `[{"op":"remove","path":"/metadata"}]`,
		`[{"op":"test","path":"/data/a","value":"1"},{"op":"move","from":"/data","path":"/data/a"}]`, `[1]`, `- op: add`, `{`, ``,
	} {
		for kind := range patchKinds {
			f.Add(kind, seed)
		}
	}
	f.Fuzz(func(t *testing.T, kind, text string) {
		p, err := parsePatch(patchKinds[kind], []byte(text))
		if err != nil {
			return
		}
		body, err := p.on("7")
		if err != nil {
			t.Fatalf("%q can't be sent: %v", text, err)
		}
		sent, err := parsePatch(patchKinds[kind], body)
		if err != nil || sent.version() != "7" {
			t.Errorf("%q is sent as %q, on version %q (%v)", text, body, sent.version(), err)
		}
		fresh := types.NewDocument("n", "flags")
		fresh.SetMeta("resourceVersion", "7")
		before := fresh.Clone()
		if _, err := p.apply(fresh); err == nil && !fresh.Equal(before) {
			t.Errorf("%q changed the copy that it was made on", text)
		}
	})
}
