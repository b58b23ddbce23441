package types_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

func dataField(key string) types.Field { return types.Field{Section: "data", Key: key} }
func labelField(key string) types.Field {
	return types.Field{Section: "metadata.labels", Key: key}
}
func annotationField(key string) types.Field {
	return types.Field{Section: "metadata.annotations", Key: key}
}

// show is a set of fields as text, sorted.
func show(fields map[types.Field]any) string {
	var lines []string
	for f, v := range fields {
		lines = append(lines, fmt.Sprintf("%s=%T %v", f, v, v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

func sameFields(a, b map[types.Field]any) bool {
	for _, m := range []map[types.Field]any{a, b} {
		for f := range m {
			if !types.SameValue(a[f], b[f]) {
				return false
			}
		}
	}
	return true
}

func TestFieldsAreWhatChangesByItself(t *testing.T) {
	d := parse(t, `{"apiVersion":"v1","kind":"ConfigMap","immutable":false,"status":{"x":1},"data":{"mode":"a","none":null,"empty":""},
		"binaryData":{"logo":"MQ=="},"metadata":{"name":"flags","namespace":"n","uid":"u","resourceVersion":"7","managedFields":[1],
		"creationTimestamp":"t","labels":{"tier":"web"},"annotations":{"note":"x"},"finalizers":["f"],"ownerReferences":[]}}`)
	want := `data[empty]=string ; data[logo]=types.Binary MQ==; data[mode]=string a; immutable=bool false; ` +
		`metadata.annotations[note]=string x; metadata.finalizers=[]interface {} [f]; metadata.labels[tier]=string web`
	if got := show(d.Fields()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Taking a document apart and setting all that was found gives the same again.
func TestSetIsTheInverseOfFields(t *testing.T) {
	original := parse(t, `{"immutable":true,"future":{"x":[1]},"data":{"mode":"a","empty":""},"binaryData":{"logo":"MQ=="},
		"metadata":{"name":"flags","labels":{"tier":"web"},"annotations":{"note":"x"},"finalizers":["f"]}}`)
	rebuilt := parse(t, `{"metadata":{"name":"flags"}}`)
	for f, v := range original.Fields() {
		rebuilt.Set(f, v)
	}
	if !rebuilt.Equal(original) {
		t.Errorf("got  %s\nwant %s", text(t, rebuilt), text(t, original))
	}
	for f := range original.Fields() {
		rebuilt.Set(f, nil)
	}
	if got := text(t, rebuilt); got != `{"metadata":{"name":"flags"}}` {
		t.Errorf("with all removed: %s", got)
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name, before string
		field        types.Field
		value        any
		want         string
	}{
		{"a key of data", `{}`, dataField("k"), "v", `{"data":{"k":"v"}}`},
		{"an empty value is a value", `{}`, dataField("k"), "", `{"data":{"k":""}}`},
		{"a key of binaryData", `{}`, dataField("k"), types.Binary("MQ=="), `{"binaryData":{"k":"MQ=="}}`},
		{"text becomes binary: it moves", `{"data":{"k":"v","o":""}}`, dataField("k"), types.Binary("MQ=="), `{"binaryData":{"k":"MQ=="},"data":{"o":""}}`},
		{"binary becomes text: it moves", `{"binaryData":{"k":"MQ=="}}`, dataField("k"), "v", `{"data":{"k":"v"}}`},
		{"removed from data", `{"data":{"k":"v","o":"1"}}`, dataField("k"), nil, `{"data":{"o":"1"}}`},
		{"removed from binaryData", `{"binaryData":{"k":"MQ=="}}`, dataField("k"), nil, `{}`},
		{"removed from wherever it is", `{"binaryData":{"k":"MQ=="},"data":{"k":"v"}}`, dataField("k"), nil, `{}`},
		{"a label where there is no metadata", `{}`, labelField("l"), "v", `{"metadata":{"labels":{"l":"v"}}}`},
		{"an annotation beside others", `{"metadata":{"annotations":{"o":"1"}}}`, annotationField("a"), "v", `{"metadata":{"annotations":{"a":"v","o":"1"}}}`},
		{"the last label goes with its map", `{"metadata":{"labels":{"l":"v"},"name":"n"}}`, labelField("l"), nil, `{"metadata":{"name":"n"}}`},
		{"a field of metadata", `{}`, types.Field{Section: "metadata", Key: "finalizers"}, []any{"f"}, `{"metadata":{"finalizers":["f"]}}`},
		{"a field of the document", `{}`, types.Field{Key: "immutable"}, true, `{"immutable":true}`},
		{"removed from the document", `{"immutable":true}`, types.Field{Key: "immutable"}, nil, `{}`},
		{"removing what is not there changes nothing", `{"data":{}}`, labelField("l"), nil, `{"data":{}}`},
		{"nor is its empty map taken away", `{"data":{}}`, dataField("k"), nil, `{"data":{}}`},
		{"nor what is no map", `{"data":"x"}`, dataField("k"), nil, `{"data":"x"}`},
		{"an entry without a value is taken away", `{"data":{"k":null}}`, dataField("k"), nil, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := parse(t, c.before)
			d.Set(c.field, c.value)
			if got := text(t, d); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSetKeepsACopyOfTheValue(t *testing.T) {
	d, list := types.Document{}, []any{"a"}
	d.Set(types.Field{Key: "list"}, list)
	list[0] = "b"
	if got := text(t, d); got != `{"list":["a"]}` {
		t.Errorf("got %s", got)
	}
}

func TestWithoutNullsIsACopyWithoutThem(t *testing.T) {
	d := parse(t, `{"data":{"a":null,"b":""},"binaryData":{"c":null},"metadata":{"labels":{"l":null,"m":"1"}},"immutable":null}`)
	before := text(t, d)
	if got := text(t, d.WithoutNulls()); got != `{"data":{"b":""},"immutable":null,"metadata":{"labels":{"m":"1"}}}` {
		t.Errorf("got %s", got)
	}
	if text(t, d) != before {
		t.Errorf("the original became %s", text(t, d))
	}
}

func TestSameValue(t *testing.T) {
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{nil, nil, true},
		{nil, "", false},
		{"a", "a", true},
		{"a", "b", false},
		{types.Binary("MQ=="), types.Binary("MQ=="), true},
		{types.Binary("MQ=="), types.Binary("MQ\n==\n"), true}, // spelled differently
		{types.Binary("MQ=="), types.Binary("Mg=="), false},
		{types.Binary("?"), types.Binary("?"), true},
		{types.Binary("?"), types.Binary("??"), false},
		{types.Binary("?"), types.Binary(""), false},
		{types.Binary(""), nil, false},
		{types.Binary("MQ=="), "MQ==", false},
		{[]any{"a"}, []any{"a"}, true},
		{[]any{"a", "b"}, []any{"b", "a"}, false},
	} {
		if types.SameValue(c.a, c.b) != c.want || types.SameValue(c.b, c.a) != c.want {
			t.Errorf("%#v and %#v are the same: %t", c.a, c.b, !c.want)
		}
	}
}

func TestFieldSaysWhereItIs(t *testing.T) {
	got := map[string]types.Field{
		"data[mode]": dataField("mode"), "metadata.labels[tier]": labelField("tier"), "metadata.annotations[a/b]": annotationField("a/b"),
		"metadata.finalizers": {Section: "metadata", Key: "finalizers"}, "immutable": {Key: "immutable"},
	}
	for _, want := range slices.Sorted(maps.Keys(got)) {
		if got[want].String() != want {
			t.Errorf("got %s, want %s", got[want], want)
		}
	}
}
