package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/cmctl/pkg/types"
)

// awkward are texts that some tools have changed on the way: into other line
// ends, into numbers, into what is left when blanks are cut off.
var awkward = map[string]string{
	"blanks":     "key: v \n\tindented\t\nend",
	"crlf":       "one\r\ntwo\r\n",
	"cr":         "one\rtwo",
	"no-newline": "x",
	"newlines":   "\n\nx\n\n\n",
	"lead":       "  first\nsecond",
	"empty":      "",
	"space":      " ",
	"hash":       "#!/bin/sh\n# keep\nrun\n",
	"document":   "---\na: b\n...\n---\n",
	"controls":   "\x00\x01\x1b[31m\x7f",
	"separators": "a\u2028b\u2029c\u0085d\ufeff",
	"html":       "<a href=\"?x&y\">'</a>",
	"emoji":      "caf\u00e9 \U0001F600",
	"float":      "1e+06",
	"int":        "12345678901234567890",
	"odd":        "9007199254740993",
	"octal":      "0755",
	"bool":       "yes",
	"null":       "null",
	"tilde":      "~",
	"date":       "2024-01-01",
	"zero":       "-0",
	"percent":    "%YAML 1.1",
	"long":       strings.Repeat("word ", 400),
}

// awkwardBytes are no text.
var awkwardBytes = map[string][]byte{"bytes": {0x00, 0xff}, "latin1": []byte("caf\xe9"), "none": {}, "text": []byte("text")}

// awkwardObject has all of it, and a JSON document of one long line as an
// annotation.
func awkwardObject(t *testing.T, name string) types.ConfigMap {
	t.Helper()
	inside, err := json.Marshal(awkward)
	if err != nil {
		t.Fatal(err)
	}
	o := types.ConfigMap{Data: awkward, BinaryData: awkwardBytes}
	o.APIVersion, o.Kind, o.Name = "v1", "ConfigMap", name
	o.Annotations = map[string]string{"example.com/record": string(inside)}
	return o
}

// sameAwkward demands that every byte is there.
func sameAwkward(t *testing.T, got types.ConfigMap) {
	t.Helper()
	want := awkwardObject(t, got.Name)
	if !maps.Equal(got.Data, want.Data) {
		for k, v := range want.Data {
			if got.Data[k] != v {
				t.Errorf("data[%s] is %q, want %q", k, got.Data[k], v)
			}
		}
		t.Errorf("%d keys, want %d", len(got.Data), len(want.Data))
	}
	for k, v := range want.BinaryData {
		if b, ok := got.BinaryData[k]; !ok || string(b) != string(v) {
			t.Errorf("binaryData[%s] is %q, want %q", k, b, v)
		}
	}
	if k := "example.com/record"; got.Annotations[k] != want.Annotations[k] {
		t.Errorf("the annotation is %q, want %q", got.Annotations[k], want.Annotations[k])
	}
}

// What clients store comes back byte for byte, whatever it looks like, in which
// form it is written, and whatever else of the object is changed later.
func TestValuesComeBackByteForByte(t *testing.T) {
	a := start(t, putMode("always"))
	inJSON := func(o types.ConfigMap) string {
		b, err := json.Marshal(&o)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	inYAML := func(o types.ConfigMap) string {
		b, err := types.JSONToYAML([]byte(inJSON(o)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	yamlBody := []string{"Content-Type", "application/yaml"}
	for _, c := range []struct {
		name  string
		write func(o types.ConfigMap, path string)
	}{
		{"created from JSON", func(o types.ConfigMap, _ string) { a.must(201, "POST", collection, inJSON(o)) }},
		{"created from YAML", func(o types.ConfigMap, _ string) { a.must(201, "POST", collection, inYAML(o), yamlBody...) }},
		{"replaced", func(o types.ConfigMap, path string) {
			a.must(201, "POST", collection, named(o.Name))
			a.must(200, "PUT", path, inJSON(o))
		}},
		{"replaced from YAML", func(o types.ConfigMap, path string) {
			a.must(201, "POST", collection, named(o.Name))
			a.must(200, "PUT", path, inYAML(o), yamlBody...)
		}},
		{"merged", func(o types.ConfigMap, path string) {
			a.must(201, "POST", collection, named(o.Name))
			a.must(200, "PATCH", path, inJSON(o), mergePatch...)
		}},
		{"merged strategically", func(o types.ConfigMap, path string) {
			a.must(201, "POST", collection, named(o.Name))
			a.must(200, "PATCH", path, inJSON(o), strategicPatch...)
		}},
		{"added by operations", func(o types.ConfigMap, path string) {
			a.must(201, "POST", collection, named(o.Name))
			var all map[string]json.RawMessage
			if err := json.Unmarshal([]byte(inJSON(o)), &all); err != nil {
				t.Fatal(err)
			}
			annotations, err := json.Marshal(o.Annotations)
			if err != nil {
				t.Fatal(err)
			}
			a.must(200, "PATCH", path, fmt.Sprintf(`[{"op":"add","path":"/data","value":%s},{"op":"add","path":"/binaryData","value":%s},
				{"op":"add","path":"/metadata/annotations","value":%s}]`, all["data"], all["binaryData"], annotations), jsonPatch...)
		}},
		{"applied as JSON", func(o types.ConfigMap, path string) {
			a.must(201, "PATCH", path+"?fieldManager=m", inJSON(o), applyPatch...)
		}},
		{"applied as YAML", func(o types.ConfigMap, path string) {
			a.must(201, "PATCH", path+"?fieldManager=m", inYAML(o), applyPatch...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.t = t
			name := strings.ReplaceAll(strings.ToLower(c.name), " ", "-")
			path := collection + "/" + name
			c.write(awkwardObject(t, name), path)
			sameAwkward(t, a.must(200, "GET", path, "").object)

			// Somebody labels it, in every way there is.
			a.must(200, "PATCH", path, `{"metadata":{"labels":{"a":"1"}}}`, mergePatch...)
			a.must(200, "PATCH", path, `{"metadata":{"labels":{"b":"1"}}}`, strategicPatch...)
			a.must(200, "PATCH", path, `[{"op":"add","path":"/metadata/labels/c","value":"1"}]`, jsonPatch...)
			a.must(200, "PATCH", path+"?fieldManager=labels", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`","labels":{"d":"1"}}}`, applyPatch...)
			got := a.must(200, "GET", path, "").object
			sameAwkward(t, got)
			if len(got.Labels) != 4 {
				t.Errorf("labels %v", got.Labels)
			}

			// A tool reads it as YAML and sends back what it read.
			read := a.must(200, "GET", path, "", "Accept", "application/yaml").body
			var parsed types.ConfigMap
			if err := yaml.Unmarshal([]byte(read), &parsed); err != nil {
				t.Fatal(err)
			}
			sameAwkward(t, parsed)
			if r := a.must(200, "PUT", path, read, yamlBody...); r.version() != got.ResourceVersion {
				t.Errorf("what was read and sent back made version %s of %s", r.version(), got.ResourceVersion)
			}
			sameAwkward(t, a.must(200, "GET", path, "").object)
		})
	}
}

// No number goes through a float: those of metadata keep their last digit.
func TestLargeNumbersKeepTheirDigits(t *testing.T) {
	const odd = 9007199254740993 // the first integer that no float64 is
	for name, c := range map[string]struct{ body, media string }{
		"JSON": {fmt.Sprintf(`{"metadata":{"name":"flags","generation":%d}}`, int64(odd)), types.MediaJSON},
		"YAML": {fmt.Sprintf("metadata:\n  name: flags\n  generation: %d\n", int64(odd)), types.MediaYAML},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			generation := func(r result) {
				t.Helper()
				if r.object.Generation != odd {
					t.Errorf("generation is %d, want %d", r.object.Generation, int64(odd))
				}
			}
			generation(a.must(201, "POST", collection, c.body, "Content-Type", c.media))
			generation(a.must(200, "PATCH", flags, `{"data":{"a":"1"}}`, mergePatch...))
			generation(a.must(200, "PATCH", flags, `{"data":{"b":"1"}}`, strategicPatch...))
			generation(a.must(200, "PATCH", flags, `[{"op":"add","path":"/data/c","value":"1"}]`, jsonPatch...))
			generation(a.must(200, "PATCH", flags+"?fieldManager=m",
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"d":"1"}}`, applyPatch...))
			generation(a.must(200, "GET", flags, ""))
		})
	}
}

// A value that is no string is never made one: the refusal names the key, whatever
// the value and however it is sent.
func TestValuesThatAreNoStringsAreRefusedByName(t *testing.T) {
	inYAML := []string{"true", "yes", "0755", "8080", "1e3", "1_000", "9007199254740993", "12345678901234567890", "1.10", "-0", ".5", "[1]", "{x: 1}"}
	inJSON := []string{"true", "8080", "1e3", "12345678901234567890", "1.10", "-0", "[1]", `{"x":1}`}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		values                   []string
		code                     int
		names                    string // what the message contains
	}{
		{"create in YAML", "POST", collection, "metadata: {name: new}\ndata:\n  good: \"1\"\n  port: %s\n", []string{"Content-Type", types.MediaYAML}, inYAML, 400, "data[port]"},
		{"create in JSON", "POST", collection, `{"metadata":{"name":"new"},"data":{"good":"1","port":%s}}`, nil, inJSON, 400, "data[port]"},
		{"update in YAML", "PUT", flags, "metadata: {name: flags, resourceVersion: \"1\"}\ndata:\n  port: %s\n", []string{"Content-Type", types.MediaYAML}, inYAML, 400, "data[port]"},
		{"update in JSON", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"1"},"data":{"port":%s}}`, nil, inJSON, 400, "data[port]"},
		{"label in JSON", "POST", collection, `{"metadata":{"name":"new","labels":{"port":%s}}}`, nil, inJSON, 400, "metadata.labels[port]"},
		{"annotation in YAML", "POST", collection, "metadata:\n  name: new\n  annotations:\n    port: %s\n", []string{"Content-Type", types.MediaYAML}, inYAML, 400, "metadata.annotations[port]"},
		{"merge patch", "PATCH", flags, `{"data":{"port":%s}}`, mergePatch, inJSON[:7], 422, "data"},
		{"strategic patch", "PATCH", flags, `{"data":{"port":%s}}`, strategicPatch, inJSON[:7], 422, ""},
		{"operations", "PATCH", flags, `[{"op":"add","path":"/data/port","value":%s}]`, jsonPatch, inJSON, 422, "data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			was := a.create()
			for _, v := range c.values {
				r := a.do(c.method, c.path, fmt.Sprintf(c.body, v), c.headers...)
				isStatus(t, r, c.code, map[int]string{400: "BadRequest", 422: "Invalid"}[c.code], c.names)
			}
			if got := a.store.State().Current.String(); got != was.version() {
				t.Errorf("something was stored: version %s", got)
			}
		})
	}
}

// "" is a value: every write keeps it apart from a key that is not there.
func TestAnEmptyValueIsAValue(t *testing.T) {
	for name, write := range map[string]func(a *api){
		"merge":      func(a *api) { a.must(200, "PATCH", flags, `{"data":{"x":""}}`, mergePatch...) },
		"strategic":  func(a *api) { a.must(200, "PATCH", flags, `{"data":{"x":""}}`, strategicPatch...) },
		"operations": func(a *api) { a.must(200, "PATCH", flags, `[{"op":"add","path":"/data/x","value":""}]`, jsonPatch...) },
		"update":     func(a *api) { a.must(200, "PUT", flags, flagsBody("1", `{"mode":"blue","x":""}`)) },
		"apply": func(a *api) {
			a.must(200, "PATCH", flags+"?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"x":""}}`, applyPatch...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			a.create()
			write(a)
			got := a.must(200, "GET", flags, "").object
			if v, ok := got.Data["x"]; !ok || v != "" || len(got.Data) != 2 || got.ResourceVersion != "2" {
				t.Errorf("data %v at version %s", got.Data, got.ResourceVersion)
			}
		})
	}
}

// A key is in data or in binaryData. One write moves it; both at once are refused,
// whichever write it is.
func TestAKeyIsInOneOfTheTwoMaps(t *testing.T) {
	const text, bytes = `"caf\u00e9"`, `"Y2Fm6Q=="` // the same word in UTF-8 and in Latin-1
	applied := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"k":` + text + `},"binaryData":{"k":` + bytes + `}}`
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
	}{
		{"create", "POST", collection, `{"metadata":{"name":"new"},"data":{"k":` + text + `},"binaryData":{"k":` + bytes + `}}`, nil},
		{"update", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"1"},"data":{"k":` + text + `},"binaryData":{"k":` + bytes + `}}`, nil},
		{"merge patch that leaves the other", "PATCH", flags, `{"data":{"k":` + text + `}}`, mergePatch},
		{"strategic patch that leaves the other", "PATCH", flags, `{"data":{"k":` + text + `}}`, strategicPatch},
		{"operation that leaves the other", "PATCH", flags, `[{"op":"add","path":"/data","value":{"k":` + text + `}}]`, jsonPatch},
		{"apply that leaves the other", "PATCH", flags + "?fieldManager=m", strings.Replace(applied, `,"binaryData":{"k":`+bytes+`}`, "", 1), applyPatch},
		{"apply of both", "PATCH", flags + "?fieldManager=m&force=true", applied, applyPatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			a.must(201, "POST", collection, `{"metadata":{"name":"flags"},"binaryData":{"k":`+bytes+`}}`)
			isStatus(t, a.do(c.method, c.path, c.body, c.headers...), 422, "Invalid", "k")
			got := a.must(200, "GET", flags, "").object
			if len(got.Data) != 0 || base64.StdEncoding.EncodeToString(got.BinaryData["k"]) != strings.Trim(bytes, `"`) || got.ResourceVersion != "1" {
				t.Errorf("stored is %v %v", got.Data, got.BinaryData)
			}
		})
	}
	a := start(t)
	a.must(201, "POST", collection, `{"metadata":{"name":"flags"},"binaryData":{"k":`+bytes+`}}`)
	there := a.must(200, "PATCH", flags, `{"data":{"k":`+text+`},"binaryData":{"k":null}}`, mergePatch...).object
	if there.Data["k"] != "caf\u00e9" || len(there.BinaryData) != 0 {
		t.Errorf("moved to %v %v", there.Data, there.BinaryData)
	}
	back := a.must(200, "PATCH", flags, `[{"op":"remove","path":"/data/k"},{"op":"add","path":"/binaryData","value":{"k":`+bytes+`}}]`, jsonPatch...).object
	if len(back.Data) != 0 || string(back.BinaryData["k"]) != "caf\xe9" {
		t.Errorf("moved back to %v %v", back.Data, back.BinaryData)
	}
}

// The bookkeeping of managers stays with the object when a tool that hides it
// sends back what it showed.
func TestManagedFieldsSurviveToolsThatHideThem(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection+"?fieldManager=creator", flagsBody("", `{"mode":"blue","rollout":"10"}`))
	r := a.must(200, "PUT", flags+"?fieldManager=editor", flagsBody("1", `{"mode":"green","rollout":"10"}`))
	managers := map[string]string{}
	for _, m := range r.object.ManagedFields {
		managers[m.Manager] = string(m.FieldsV1.Raw)
	}
	if len(managers) != 2 || !strings.Contains(managers["creator"], "f:rollout") || !strings.Contains(managers["editor"], "f:mode") {
		t.Errorf("managers %v", managers)
	}
}
