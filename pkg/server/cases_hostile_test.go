package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/types"
)

// deep is how often hostile bodies are nested.
const deep = 100_000

// manySmall is how many values fit into a body, about, that are as small as can be.
const manySmall = 1_000_000

// nested wraps the innermost text in as many opening and closing texts.
func nested(open, innermost, close string) string {
	return strings.Repeat(open, deep) + innermost + strings.Repeat(close, deep)
}

// bomb is YAML of nine levels, each of nine aliases of the one before.
func bomb(first, item, open, close string) string {
	text := "a0: &a0 " + first + "\n"
	for i := range 9 {
		var aliases []string
		for j := range 9 {
			aliases = append(aliases, strings.NewReplacer("N", fmt.Sprint(j), "A", fmt.Sprintf("*a%d", i)).Replace(item))
		}
		text += fmt.Sprintf("a%d: &a%d %s%s%s\n", i+1, i+1, open, strings.Join(aliases, ", "), close)
	}
	return text
}

// hostileYAML are texts that a parser could drown in. Each is a whole document.
var hostileYAML = map[string]string{
	"aliases of lists":      bomb("[x,x,x,x,x,x,x,x,x]", "A", "[", "]"),
	"aliases of maps":       bomb("{k: v}", "kN: A", "{", "}"),
	"merged maps":           bomb("{k: v}", "A", "{<<: [", "]}"),
	"merged maps, by name":  "data: &a0 {k: v}\n" + bomb("{k: v}", "A", "{<<: [", "]}") + "metadata:\n  name: new\n  labels: {<<: *a9}\n",
	"lists in lists":        "data: " + nested("[", "", "]"),
	"lists that are open":   "data: " + strings.Repeat("[", deep),
	"lists by dashes":       "data:\n " + strings.Repeat("- ", deep) + "x",
	"maps in maps":          "data: " + nested("{a: ", "b", "}"),
	"keys of keys":          strings.Repeat("? ", deep) + "x",
	"names of themselves":   "a: &a [*a]\n",
	"aliases of long text":  longAliases(),
	"many words in a list":  "data: [" + strings.Repeat("a,", manySmall) + "]",
	"many words over lines": "data: [" + strings.Repeat("a,\n", manySmall) + "]",
	"many maps in a list":   "data: [" + strings.Repeat("{},", manySmall) + "]",
	"many dashes":           "data:\n" + strings.Repeat("-\n", manySmall),
	"many documents":        strings.Repeat("---\n", manySmall/2) + "a",
	"many keys":             "spec: {" + numbered(manySmall/10, "k%d: 1") + "}",
	"many anchors":          "spec: [" + strings.Repeat("&a a,", manySmall/2) + "]",
	"a long number":         "kind: ConfigMap\ndata: {k: " + strings.Repeat("9", 1<<20) + "}",
	"a huge number":         "kind: ConfigMap\ndata: {k: 1e999999999}",
}

// longAliases is YAML whose aliases are few, and stand for 50 MB.
func longAliases() string {
	text := "metadata: {name: new}\ndata:\n  k: &a \"" + strings.Repeat("x", 1<<18) + "\"\n"
	for i := range 200 {
		text += fmt.Sprintf("  k%d: *a\n", i)
	}
	return text
}

// gzipBomb is 64 MiB of an object, compressed.
func gzipBomb() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, `{"data":{"k":"`+strings.Repeat("x", 64<<20)+`"}}`) // a buffer takes all
	_ = w.Close()
	return b.String()
}

// numbered joins texts made from the numbers below n.
func numbered(n int, text string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, text, i)
	}
	return b.String()
}

// hostileJSON are such texts in JSON. Each is an object.
var hostileJSON = map[string]string{
	"lists in data":          `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":` + nested("[", "", "]") + `}`,
	"lists in a value":       `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"k":` + nested("[", "", "]") + `}}`,
	"maps in an unknown one": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"spec":` + nested(`{"a":`, "1", "}") + `}`,
	"maps in metadata":       `{"apiVersion":"v1","kind":"ConfigMap","metadata":` + nested(`{"metadata":`, "1", "}") + `}`,
	"maps in managedFields": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","managedFields":[{"manager":"m",` +
		`"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":` + nested(`{"f:a":`, "{}", "}") + `}]}}`,
	"maps that are open":     strings.Repeat(`{"data":`, deep),
	"many numbers in a list": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":[` + strings.Repeat("0,", manySmall) + `0]}`,
	"many maps in a list":    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"k":[` + strings.Repeat("{},", manySmall) + `{}]}}`,
	"a long number":          `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"k":` + strings.Repeat("9", 1<<20) + `}}`,
	"a huge number":          `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"k":1e999999999}}`,
	"many repeated keys":     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{` + strings.Repeat(`"":0,`, manySmall/2) + `"":0}}`,
	"many bad keys":          `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","resourceVersion":"1"},"data":{` + numbered(10_000, `"!%d":""`) + `}}`,
	"many bad labels":        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","resourceVersion":"1","labels":{` + numbered(2_000, `"!%d":""`) + `}}}`,
	"many numbers":           `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","resourceVersion":"1"},"data":{` + numbered(20_000, `"k%[1]d":%[1]d`) + `}}`,
	"many finalizers":        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","resourceVersion":"1","finalizers":[` + numbered(1001, `"a/f%d"`) + `]}}`,
	"many managers": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","resourceVersion":"1","managedFields":[` +
		numbered(2000, `{"manager":"m%d","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}`) + `]}}`,
}

// hostileOperations are such JSON patches.
var hostileOperations = map[string]string{
	"lists in a value":   `[{"op":"add","path":"/data/k","value":` + nested("[", "", "]") + `}]`,
	"lists of lists":     nested("[", "", "]"),
	"a path of many":     `[{"op":"add","path":"` + strings.Repeat("/a", deep) + `","value":"x"}]`,
	"more than allowed":  `[` + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/data/mode","value":"blue"},`, 10_001), ",") + `]`,
	"copies of all data": `[` + strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"/data","path":"/metadata/annotations/x"},`, 40), ",") + `]`,
}

// attack is a request that must be refused.
type attack struct {
	name, method, path, body string
	headers                  []string
}

// attacks are the hostile bodies in every request that takes one.
func attacks() []attack {
	var all []attack
	add := func(what string, bodies map[string]string, method, path string, headers ...string) {
		for name, body := range bodies {
			all = append(all, attack{what + ": " + name, method, path, body, headers})
		}
	}
	apply := flags + "?fieldManager=m&force=true"
	add("create in YAML", hostileYAML, "POST", collection, "Content-Type", types.MediaYAML)
	add("create", hostileJSON, "POST", collection)
	add("update in YAML", hostileYAML, "PUT", flags, "Content-Type", types.MediaYAML)
	add("update", hostileJSON, "PUT", flags)
	add("update, of any fields", hostileJSON, "PUT", flags+"?fieldValidation=Ignore")
	add("merge patch", hostileJSON, "PATCH", flags, mergePatch...)
	add("strategic patch", hostileJSON, "PATCH", flags, strategicPatch...)
	add("operations", hostileOperations, "PATCH", flags, jsonPatch...)
	add("apply in YAML", hostileYAML, "PATCH", apply, applyPatch...)
	add("apply", hostileJSON, "PATCH", apply, applyPatch...)
	add("compressed create", map[string]string{"a gzip bomb": gzipBomb()}, "POST", collection, "Content-Encoding", "gzip")
	add("compressed patch", map[string]string{"a gzip bomb": gzipBomb()}, "PATCH", flags, append([]string{"Content-Encoding", "gzip"}, mergePatch...)...)
	add("compressed delete", map[string]string{"a gzip bomb": gzipBomb()}, "DELETE", flags, "Content-Encoding", "gzip")
	add("delete in YAML", hostileYAML, "DELETE", flags, "Content-Type", types.MediaYAML)
	add("delete", hostileJSON, "DELETE", flags)
	add("delete the collection", hostileJSON, "DELETE", collection)
	add("create a namespace in YAML", hostileYAML, "POST", namespaces, "Content-Type", types.MediaYAML)
	return all
}

// allocated tells how many bytes work has allocated, freed ones included.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A small text that would become a large object, or exhaust the stack, is a
// mistake of its sender like any other: refused with a Status, at the cost of
// little memory, and nothing is stored or deleted. The race detector throws away what
// is kept to be used again, so that it has no say about memory; scripts/test runs this
// without it too.
func TestHostileBodiesAreRefused(t *testing.T) {
	const limit = 100 << 20
	a := start(t)
	was := a.create()
	for _, c := range attacks() {
		t.Run(c.name, func(t *testing.T) {
			a.t = t
			var r result
			used := allocated(func() { r = a.do(c.method, c.path, c.body, c.headers...) })
			if r.code < 400 || r.code >= 500 || r.status.Kind != "Status" || r.status.Reason == "" || len(r.body) > 4<<20 {
				t.Errorf("got %d %.300s", r.code, r.body)
			}
			if used > limit && !raceEnabled {
				t.Errorf("%d bytes cost %d MiB", len(c.body), used>>20)
			}
			if got := a.must(200, "GET", flags, ""); got.body != was.body || a.store.State().Current.String() != was.version() {
				t.Errorf("something was stored or deleted: %s", got.body)
			}
		})
	}
}

// While hostile bodies come from several sides, the requests of others are
// answered.
func TestHostileBodiesHoldNobodyUp(t *testing.T) {
	a := start(t)
	a.create()
	all := attacks()
	next := make(chan attack)
	var attackers sync.WaitGroup
	for range 4 {
		attackers.Go(func() {
			for c := range next {
				if r, err := a.try(context.Background(), c.method, c.path, c.body, c.headers...); err != nil || r.code < 400 || r.code >= 500 {
					t.Errorf("%s: %d %v", c.name, r.code, err)
				}
			}
		})
	}
	for i, c := range all {
		next <- c
		a.must(201, "POST", collection, named(fmt.Sprintf("n%d", i)))
		a.must(200, "GET", flags, "")
	}
	close(next)
	attackers.Wait()
	if got := a.must(200, "GET", collection, ""); len(got.list.Items) != len(all)+1 {
		t.Errorf("%d objects, want %d", len(got.list.Items), len(all)+1)
	}
}

// Sizes count as Kubernetes counts them: the bytes of all values, as they are and
// not as base64, without the keys; of annotations with the keys; and of the body.
func TestSizesAtTheirLimits(t *testing.T) {
	const (
		values      = 1 << 20
		annotations = 256 << 10
		body        = 3 << 20
	)
	all := len(writesOf(""))
	x := func(n int) string { return strings.Repeat("x", n) }
	zeros := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	long := strings.Repeat("k", 253)
	for _, c := range []struct {
		name   string
		of     string // what the object has beside its name
		writes int    // how many of the ways to write it are tried
		ok     bool
		says   string
	}{
		{"values at the limit", `"data":{"k":"` + x(values) + `"}`, all, true, ""},
		{"values beyond it", `"data":{"k":"` + x(values+1) + `"}`, all, false, "may not be more than 1048576 bytes"},
		{"binary values at the limit", `"binaryData":{"k":"` + zeros(values) + `"}`, 1, true, ""},
		{"binary values beyond it", `"binaryData":{"k":"` + zeros(values+1) + `"}`, 1, false, "may not be more than 1048576 bytes"},
		{"both together at the limit", `"data":{"a":"` + x(values/2) + `"},"binaryData":{"b":"` + zeros(values/2) + `"}`, 1, true, ""},
		{"both together beyond it", `"data":{"a":"` + x(values/2) + `"},"binaryData":{"b":"` + zeros(values/2+1) + `"}`, 1, false, "may not be more than 1048576 bytes"},
		{"keys don't count", `"data":{"` + long + `":"` + x(values) + `"}`, 1, true, ""},
		{"characters count as bytes", `"data":{"k":"` + strings.Repeat("\u00e9", values/2) + `"}`, 1, true, ""},
		{"characters beyond it", `"data":{"k":"` + strings.Repeat("\u00e9", values/2) + `x"}`, 1, false, "may not be more than 1048576 bytes"},
		{"escapes count as what they stand for", `"data":{"k":"` + strings.Repeat(`\n`, values) + `"}`, 1, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},` + c.of + `}`
			for _, w := range writesOf(body)[:c.writes] {
				w.makes(t, c.ok, c.says)
			}
		})
	}
	for _, c := range []struct {
		name string
		of   string
		ok   bool
	}{
		{"annotations at the limit", `{"a":"` + x(annotations-1) + `"}`, true},
		{"annotations beyond it", `{"a":"` + x(annotations) + `"}`, false},
		{"keys of annotations count", `{"aa":"` + x(annotations-1) + `"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, w := range writesOf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","annotations":` + c.of + `}}`) {
				w.makes(t, c.ok, "metadata.annotations: Too long: may not be more than 262144 bytes")
			}
		})
	}
	t.Run("bodies", func(t *testing.T) {
		a := start(t)
		a.create()
		object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"k":"v"}}`
		fill := func(text string, n int) string { return text + strings.Repeat(" ", n-len(text)) }
		for _, c := range []struct {
			name, method, path, body string
			headers                  []string
		}{
			{"update", "PUT", flags + "?dryRun=All", flagsBody("1", `{"k":"v"}`), nil},
			{"create", "POST", collection + "?dryRun=All", strings.Replace(object, "flags", "new", 1), nil},
			{"merge patch", "PATCH", flags + "?dryRun=All", object, mergePatch},
			{"strategic patch", "PATCH", flags + "?dryRun=All", object, strategicPatch},
			{"operations", "PATCH", flags + "?dryRun=All", `[]`, jsonPatch},
			{"apply", "PATCH", flags + "?dryRun=All&fieldManager=m", object, applyPatch},
			{"delete", "DELETE", flags + "?dryRun=All", `{}`, nil},
		} {
			if r := a.do(c.method, c.path, fill(c.body, body), c.headers...); r.code/100 != 2 {
				t.Errorf("%s at the limit: %d %.300s", c.name, r.code, r.body)
			}
			r := a.do(c.method, c.path, fill(c.body, body+1), c.headers...)
			isStatus(t, r, 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
		}
	})
}

// sizedWrite is one way to write the object flags.
type sizedWrite struct {
	name               string
	there              bool // the object, before
	method, path, body string
	headers            []string
}

// writesOf are the ways in which an object can come to be what the body says.
func writesOf(body string) []sizedWrite {
	return []sizedWrite{
		{"create", false, "POST", collection, body, nil},
		{"create in YAML", false, "POST", collection, body, []string{"Content-Type", types.MediaYAML}},
		{"update", true, "PUT", flags, strings.Replace(body, `"name":"flags"`, `"name":"flags","resourceVersion":"1"`, 1), nil},
		{"merge patch", true, "PATCH", flags, body, mergePatch},
		{"strategic patch", true, "PATCH", flags, body, strategicPatch},
		{"apply", false, "PATCH", flags + "?fieldManager=m", body, applyPatch},
		{"apply to what is there", true, "PATCH", flags + "?fieldManager=m", body, applyPatch},
	}
}

// makes demands that the write succeeds, or that it is refused as invalid and
// stores nothing.
func (w sizedWrite) makes(t *testing.T, ok bool, says string) {
	t.Helper()
	a := start(t)
	if w.there {
		a.must(201, "POST", collection, named("flags"))
	}
	was := a.store.State().Current
	r := a.do(w.method, w.path, w.body, w.headers...)
	if ok {
		if r.code/100 != 2 || a.store.State().Current != was+1 {
			t.Errorf("%s: got %d %.300s", w.name, r.code, r.body)
		}
		return
	}
	isStatus(t, r, 422, "Invalid", says)
	if got := a.store.State().Current; got != was {
		t.Errorf("%s: something was stored", w.name)
	}
}
