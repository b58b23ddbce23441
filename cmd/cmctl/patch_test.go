package main

import (
	"encoding/json"
	"strings"
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
		if err != nil || madeOn(t, sent) != "7" {
			t.Errorf("%q is sent as %q (%v)", text, body, err)
		}
		fresh := types.NewDocument("n", "flags")
		fresh.SetMeta("resourceVersion", "7")
		before := fresh.Clone()
		if _, err := p.apply(fresh); err == nil && !fresh.Equal(before) {
			t.Errorf("%q changed the copy that it was made on", text)
		}
	})
}

// madeOn is the version that a patch sets last.
func madeOn(t *testing.T, p *patch) string {
	t.Helper()
	if p.kind != patchKinds["json"] {
		return p.merge.ResourceVersion()
	}
	var last struct{ Op, Path, Value string }
	if err := json.Unmarshal(p.steps[len(p.steps)-1], &last); err != nil || last.Op != "add" || last.Path != "/metadata/resourceVersion" {
		t.Errorf("the last operation is %s", p.steps[len(p.steps)-1])
	}
	return last.Value
}

// Whoever sets the version or the uid means a condition, however it is set.
func TestConditionsOfAJSONPatch(t *testing.T) {
	const refused = "refused"
	for name, c := range map[string]struct{ text, version, uid string }{
		"none":                    {`[{"op":"add","path":"/data/a","value":"2"}]`, "", ""},
		"the copy's own":          {`[{"op":"add","path":"/metadata/resourceVersion","value":"7"}]`, "", ""},
		"added":                   {`[{"op":"add","path":"/metadata/resourceVersion","value":"5"}]`, "5", ""},
		"replaced":                {`[{"op":"replace","path":"/metadata/resourceVersion","value":"5"}]`, "5", ""},
		"added with the metadata": {`[{"op":"add","path":"/metadata","value":{"name":"flags","resourceVersion":"5"}}]`, "5", ""},
		"with the metadata":       {`[{"op":"replace","path":"/metadata","value":{"name":"flags","resourceVersion":"5","uid":"v"}}]`, "5", "v"},
		"with all":                {`[{"op":"replace","path":"","value":{"metadata":{"name":"flags","resourceVersion":"5"}}}]`, "5", ""},
		"copied":                  {`[{"op":"copy","from":"/data/version","path":"/metadata/resourceVersion"}]`, "5", ""},
		"moved":                   {`[{"op":"move","from":"/data/version","path":"/metadata/resourceVersion"}]`, "5", ""},
		"moved with its map":      {`[{"op":"add","path":"/x","value":{"name":"flags","resourceVersion":"5"}},{"op":"move","from":"/x","path":"/metadata"}]`, "5", ""},
		"taken out":               {`[{"op":"remove","path":"/metadata/resourceVersion"}]`, "", ""},
		"taken out with all":      {`[{"op":"remove","path":"/metadata"}]`, "", ""},
		"another uid":             {`[{"op":"replace","path":"/metadata/uid","value":"v"}]`, "", "v"},
		"tested":                  {`[{"op":"test","path":"/metadata/resourceVersion","value":"5"}]`, "", ""},
		"a number":                {`[{"op":"replace","path":"/metadata/resourceVersion","value":5}]`, refused, ""},
		"a map":                   {`[{"op":"add","path":"/metadata/uid","value":{}}]`, refused, ""},
		"no map of metadata":      {`[{"op":"replace","path":"/metadata","value":"5"}]`, refused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := types.NewDocument("n", "flags")
			fresh.SetMeta("resourceVersion", "7")
			fresh.SetMeta("uid", "u")
			fresh.Set(types.Field{Section: "data", Key: "version"}, "5")
			p, err := parsePatch(patchKinds["json"], []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			set, err := p.conditions(fresh)
			if (err != nil) != (c.version == refused) || err != nil && exitCode(err) != exitUsage {
				t.Fatalf("got %v", err)
			}
			if err == nil && (set.ResourceVersion() != c.version || set.UID() != c.uid) {
				t.Errorf("got %v, want version %q and uid %q", set, c.version, c.uid)
			}
		})
	}
}

// What others write while a JSON patch is on its way is judged as if it had been
// there before.
func TestAJSONPatchMeetsAnotherWrite(t *testing.T) {
	const (
		tested = `[{"op":"test","path":"/data/a","value":"1"},{"op":"replace","path":"/data/a","value":"2"}]`
		taken  = `[{"op":"remove","path":"/data/a"}]`
	)
	for name, c := range map[string]struct {
		patch  string
		past   []string
		flags  []string
		code   int
		says   string
		result string
	}{
		"its test doesn't hold any more": {tested, []string{"set", "app", "a=9"}, nil, exitConflict, "a test of the patch does not hold; nothing was written", `a: "9"`},
		"its test holds as before":       {tested, []string{"set", "app", "b=9"}, nil, exitOK, "", `a: "2"`},
		"what it removes is gone":        {taken, []string{"unset", "app", "a"}, nil, exitRefused, "the patch was refused: ", `b: "2"`},
		"its version is gone":            {tested, []string{"set", "app", "a=9"}, []string{"--resource-version"}, exitConflict, "cmctl get app", `a: "9"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.must("create", "app", "--from-literal=a=1", "--from-literal=b=2")
			args := append([]string{"patch", "app", "--type=json", "-p", c.patch}, c.flags...)
			if c.flags != nil {
				doc, err := types.ParseDocument([]byte(b.must("get", "app", "-o", "json")))
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, doc.ResourceVersion())
			}
			b.meddle = once("PATCH", func() { b.past(c.past...) })
			e := b.cmctl(args...)
			if e.code != c.code || !strings.Contains(e.err, c.says) {
				t.Errorf("ended with %d:\n%s", e.code, e.err)
			}
			b.holds(c.result)
		})
	}
}

func TestOperationsThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		`null`:                     "is a list of operations",
		`{}`:                       "is a list of operations",
		`[1]`:                      "operation 1 must be a map",
		`[null]`:                   "operation 1 must be a map",
		`[{}]`:                     "operation 1 must have an op",
		`[{"op":1,"path":"/a"}]`:   "operation 1 must have an op",
		`[{"op":"remove"}]`:        "operation 1 (remove) must have a path",
		`[{"op":"test","path":1}]`: "operation 1 (test) must have a path",
		`[{"op":"add","path":"data","value":"x"}]`:               "operation 1 (add) must have a path",
		`[{"op":"remove","path":"/a"},{"op":"add","path":"/a"}]`: "operation 2 (add) must have a value",
		`[{"op":"move","path":"/a"}]`:                            "operation 1 (move) must have a from",
		`[{"op":"copy","path":"/a","from":1}]`:                   "operation 1 (copy) must have a from",
		`[{"op":"replace","path":"","value":[]}]`:                "operation 1 (replace) is about the whole object",
		`[{"op":"add","path":"/a","value":null}]`:                "",
		`[{"op":"remove","path":"/a","from":1}]`:                 "",
		`[{"op":"replace","path":"","value":{}}]`:                "",
		`[]`: "",
	} {
		_, err := parsePatch(patchKinds["json"], []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
