package types_test

import (
	"reflect"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// parse is ParseDocument for texts that are right.
func parse(t testing.TB, text string) types.Document {
	t.Helper()
	d, err := types.ParseDocument([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func text(t testing.TB, d types.Document) string {
	t.Helper()
	out, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestDocumentKeepsWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []string{
		`{"apiVersion":"v1","data":{"a":"1"},"future":{"x":[1,null,true]},"kind":"ConfigMap","metadata":{"hue":"red","name":"flags"}}`,
		`{"big":12345678901234567890123,"exact":0.1000000000000000055511151231257827,"exp":1E400,"minus":-0}`,
		`{"data":{"empty":"","null":null},"text":"caf\u00e9 \u2028 \\ \""}`,
		`{}`,
	} {
		d := parse(t, c)
		again := parse(t, text(t, d))
		if !d.Equal(again) || text(t, again) != text(t, d) {
			t.Errorf("%s became %s", c, text(t, d))
		}
		if !d.Clone().Equal(d) {
			t.Errorf("the clone of %s is %s", c, text(t, d.Clone()))
		}
	}
	if got := text(t, parse(t, `{"big":12345678901234567890123,"exp":1E400}`)); got != `{"big":12345678901234567890123,"exp":1E400}` {
		t.Errorf("numbers became %s", got)
	}
}

func TestParseDocumentRefuses(t *testing.T) {
	for name, c := range map[string]string{
		"nothing": ``, "null": `null`, "a list": `[]`, "a string": `"x"`, "two values": `{}{}`, "what follows": `{} x`,
		"a broken end": `{}}`, "a cut end": `{"a":`, "bytes that are not UTF-8": "{\"data\":{\"a\":\"caf\xe9\"}}",
	} {
		if d, err := types.ParseDocument([]byte(c)); err == nil {
			t.Errorf("%s was read as %v", name, d)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	d := parse(t, `{"metadata":{"finalizers":["a",{"b":["c"]}],"labels":{"x":"1"}}}`)
	before := text(t, d)
	clone := d.Clone()
	meta := clone["metadata"].(map[string]any)
	meta["labels"].(map[string]any)["x"] = "2"
	meta["finalizers"].([]any)[1].(map[string]any)["b"].([]any)[0] = "d"
	if text(t, d) != before {
		t.Errorf("it became %s", text(t, d))
	}
}

func TestDocumentReadsItsIdentity(t *testing.T) {
	d := parse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","namespace":"team-a","uid":"u","resourceVersion":"7",
		"annotations":{"note":"","number":1}},"data":{"a":"1"},"binaryData":{"b":"MQ=="}}`)
	got := []any{d.APIVersion(), d.Kind(), d.Name(), d.Namespace(), d.UID(), d.ResourceVersion(), d.DataCount(), strings.Join(d.DataKeys(), " ")}
	if want := []any{"v1", "ConfigMap", "flags", "team-a", "u", "7", 2, "a b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if note, ok := d.Annotation("note"); note != "" || !ok {
		t.Errorf("an empty annotation is told as %q, %t", note, ok)
	}
	for _, key := range []string{"absent", "number"} {
		if value, ok := d.Annotation(key); ok {
			t.Errorf("annotation %s is told as %q", key, value)
		}
	}
	empty := types.Document{}
	if empty.Name() != "" || empty.Kind() != "" || empty.DataCount() != 0 {
		t.Error("an empty document has a name, a kind or data")
	}
	if got := text(t, types.NewDocument("", "flags")); got != `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"}}` {
		t.Errorf("a new document is %s", got)
	}
	if types.NewDocument("team-a", "flags").Namespace() != "team-a" {
		t.Error("a new document lost its namespace")
	}
}

func TestSetMeta(t *testing.T) {
	d := types.Document{}
	d.SetMeta("namespace", "team-a")
	d.SetMeta("uid", "u")
	d.SetMeta("uid", nil)
	if got := text(t, d); got != `{"metadata":{"namespace":"team-a"}}` {
		t.Errorf("got %s", got)
	}
}

func TestDropServerFieldsNamesWhatItDropped(t *testing.T) {
	d := parse(t, `{"kind":"ConfigMap","metadata":{"name":"flags","labels":{"a":"1"},"uid":"u","resourceVersion":"7","generation":1,
		"creationTimestamp":null,"deletionTimestamp":"x","deletionGracePeriodSeconds":0,"selfLink":"/","managedFields":[]},"status":{"a":1}}`)
	got := strings.Join(d.DropServerFields(), " ")
	want := "metadata.uid metadata.resourceVersion metadata.generation metadata.deletionTimestamp" +
		" metadata.deletionGracePeriodSeconds metadata.selfLink metadata.managedFields status"
	if got != want {
		t.Errorf("dropped %s", got)
	}
	if got := text(t, d); got != `{"kind":"ConfigMap","metadata":{"labels":{"a":"1"},"name":"flags"}}` {
		t.Errorf("left %s", got)
	}
	for _, c := range []string{`{}`, `{"metadata":null}`, `{"metadata":"x"}`, text(t, d)} {
		if dropped := parse(t, c).DropServerFields(); len(dropped) > 0 {
			t.Errorf("dropped %v of %s", dropped, c)
		}
	}
}

func TestProblemsNameTheWrongValue(t *testing.T) {
	for _, c := range []struct {
		name, text string
		nulls      bool
		want       string // path: beginning of the message
	}{
		{"nothing is wrong", `{"metadata":{"labels":{"a":"1"}},"data":{"a":"","b":"x"},"binaryData":{"c":"MQ==","d":""}}`, false, ``},
		{"absent and null maps", `{"metadata":null,"data":null}`, false, ``},
		{"a number", `{"data":{"port":8080}}`, false, `data/port: data[port] must be a string, not the number 8080`},
		{"a boolean", `{"data":{"on":true}}`, false, `data/on: data[on] must be a string, not the boolean true`},
		{"a map", `{"data":{"m":{}}}`, false, `data/m: data[m] must be a string, not a map`},
		{"a list", `{"metadata":{"labels":{"l":[]}}}`, false, `metadata/labels/l: metadata.labels[l] must be a string, not a list`},
		{"an annotation", `{"metadata":{"annotations":{"n":1}}}`, false, `metadata/annotations/n: metadata.annotations[n] must be a string, not the number 1`},
		{"no value", `{"data":{"a":null}}`, false, `data/a: data[a] has no value; write "" for an empty one`},
		{"no value, where it has a meaning", `{"data":{"a":null}}`, true, ``},
		{"no base64", `{"binaryData":{"b":"?"}}`, false, `binaryData/b: binaryData[b] is not base64`},
		{"data that is no map", `{"data":"x"}`, false, `data: data must be a map of keys to strings, not a string`},
		{"labels that are no map", `{"metadata":{"labels":[]}}`, false, `metadata/labels: metadata.labels must be a map of keys to strings, not a list`},
		{"metadata that is no map", `{"metadata":"x","data":{"a":1}}`, false, `metadata: metadata must be a map, not a string`},
		{"one key in both maps", `{"data":{"k":"x"},"binaryData":{"k":"MQ=="}}`, false, `binaryData/k: binaryData[k] is in data too`},
		{"a move between the maps", `{"data":{"k":null},"binaryData":{"k":"MQ=="}}`, true, ``},
		{"several, in order", `{"data":{"b":1,"a":2},"binaryData":{"z":"?"}}`, false, `binaryData/z: binaryData[z] is not base64; ` +
			`data/a: data[a] must be a string, not the number 2; data/b: data[b] must be a string, not the number 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range parse(t, c.text).Problems(c.nulls) {
				message, _, _ := strings.Cut(p.Message, ": ")
				message, _, _ = strings.Cut(message, "; a key can")
				got = append(got, strings.Join(p.Path, "/")+": "+message)
			}
			if got := strings.Join(got, "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func FuzzParseDocument(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"a":1e999,"b":-0,"c":[{}]}`, `{"data":{"a":"\ud800"}}`, `{"metadata":{"labels":5}}`,
		`{"data":{"k":null},"binaryData":{"k":5}}`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		d, err := types.ParseDocument(in)
		if err != nil {
			return
		}
		out := text(t, d)
		again := parse(t, out)
		if !again.Equal(d) || text(t, again) != out {
			t.Errorf("%s became %s", out, text(t, again))
		}
		clone := d.Clone()
		clone.DropServerFields()
		clone.Problems(true)
		if text(t, d) != out {
			t.Errorf("a change of the clone made %s of %s", text(t, d), out)
		}
	})
}
