package patch_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/patch"
	"example.com/cmctl/pkg/types"
)

const (
	ops       = ktypes.JSONPatchType
	merge     = ktypes.MergePatchType
	strategic = ktypes.StrategicMergePatchType
)

// blue is what most patches are made to.
func blue() types.Object {
	cm := types.ConfigMaps.New().(*types.ConfigMap)
	cm.Namespace, cm.Name, cm.ResourceVersion, cm.UID = "default", "flags", "7", "u"
	cm.Finalizers = []string{"example.com/a"}
	cm.Data = map[string]string{"mode": "blue", "rollout": "10"}
	return cm
}

// apply makes a patch to blue.
func apply(kind ktypes.PatchType, body, validation string) (types.Object, []string, error) {
	p, err := patch.Read(kind, []byte(body), validation)
	if err != nil {
		return nil, nil, err
	}
	return p.Make(types.ConfigMaps, blue())
}

// short is the JSON of the parts that patches here change.
func short(o types.Object) string {
	cm := o.(*types.ConfigMap)
	text, err := json.Marshal(map[string]any{"data": cm.Data, "binaryData": cm.BinaryData, "finalizers": cm.Finalizers,
		"labels": cm.Labels, "version": cm.ResourceVersion})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestPatchesChangeWhatTheyName(t *testing.T) {
	for _, c := range []struct {
		name string
		kind ktypes.PatchType
		body string
		want string // in the place of what blue has
	}{
		{"nothing", merge, `{}`, ``},
		{"no operations", ops, `[]`, ``},
		{"a key, by merge", merge, `{"data":{"mode":"green"}}`, `"data":{"mode":"green","rollout":"10"}`},
		{"a key, by operation", ops, `[{"op":"replace","path":"/data/mode","value":"green"}]`, `"data":{"mode":"green","rollout":"10"}`},
		{"a key, strategically", strategic, `{"data":{"mode":"green"}}`, `"data":{"mode":"green","rollout":"10"}`},
		{"null removes a key by merge", merge, `{"data":{"mode":null}}`, `"data":{"rollout":"10"}`},
		{"null removes a key strategically", strategic, `{"data":{"mode":null}}`, `"data":{"rollout":"10"}`},
		{"null is empty by operation", ops, `[{"op":"add","path":"/data/mode","value":null}]`, `"data":{"mode":"","rollout":"10"}`},
		{"replacing what is not there adds it", ops, `[{"op":"replace","path":"/data/new","value":"x"}]`, `"data":{"mode":"blue","new":"x","rollout":"10"}`},
		{"a test that holds", ops, `[{"op":"test","path":"/data/mode","value":"blue"},{"op":"remove","path":"/data/mode"}]`, `"data":{"rollout":"10"}`},
		{"a list is replaced by merge", merge, `{"metadata":{"finalizers":["example.com/b"]}}`, `"finalizers":["example.com/b"]`},
		{"a list is merged strategically", strategic, `{"metadata":{"finalizers":["example.com/b"]}}`, `"finalizers":["example.com/b","example.com/a"]`},
		{"replace directive", strategic, `{"data":{"$patch":"replace","k":"v"}}`, `"data":{"k":"v"}`},
		{"retainKeys directive", strategic, `{"data":{"$retainKeys":["mode"],"mode":"x"}}`, `"data":{"mode":"x"}`},
		{"another version", merge, `{"metadata":{"resourceVersion":"3"}}`, `"version":"3"`},
		{"bytes that are null", merge, `{"binaryData":{"b":""}}`, `"binaryData":{"b":""}`},
		{"bytes that are null, by operation", ops, `[{"op":"add","path":"/binaryData","value":{"b":null}}]`, `"binaryData":{"b":""}`},
		{"text that HTML would escape", merge, `{"data":{"mode":"<&>"}}`, `"data":{"mode":"\u003c\u0026\u003e","rollout":"10"}`},
		{"another kind, strategically", strategic, `{"kind":"Secret"}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := blue()
			p, err := patch.Read(c.kind, []byte(c.body), "")
			if err != nil {
				t.Fatal(err)
			}
			next, warnings, err := p.Make(types.ConfigMaps, old)
			if err != nil || len(warnings) > 0 {
				t.Fatalf("warnings %q, error %v", warnings, err)
			}
			want := short(blue())
			if key, _, ok := strings.Cut(c.want, ":"); ok {
				var fields map[string]json.RawMessage
				if err := json.Unmarshal([]byte(want), &fields); err != nil {
					t.Fatal(err)
				}
				fields[strings.Trim(key, `"`)] = json.RawMessage(c.want[len(key)+1:])
				text, _ := json.Marshal(fields)
				want = string(text)
			}
			if got := short(next); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if next.GetObjectKind().GroupVersionKind() != types.ConfigMaps.GroupVersionKind() {
				t.Errorf("it became a %s", next.GetObjectKind().GroupVersionKind())
			}
			if short(old) != short(blue()) {
				t.Errorf("the old object was changed to %s", short(old))
			}
			// It can be made again, to the same.
			if again, _, err := p.Make(types.ConfigMaps, old); err != nil || short(again) != short(next) {
				t.Errorf("the second time: %v, %v", again, err)
			}
		})
	}
}

func TestPatchesThatAreRefused(t *testing.T) {
	manyOps := "[" + strings.Repeat(`{"op":"test","path":"/data/mode","value":"blue"},`, patch.MaxOperations) + `{"op":"remove","path":"/data"}]`
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	copies := `{"op":"add","path":"/data/x","value":"` + strings.Repeat("x", 1<<20) + `"}` +
		strings.Repeat(`,{"op":"copy","from":"/data/x","path":"/data/y"}`, 4)
	for _, c := range []struct {
		name    string
		kind    ktypes.PatchType
		body    string
		code    int32
		reason  metav1.StatusReason
		message string
	}{
		{"nothing at all", merge, ``, 400, "BadRequest", "invalid JSON patch"},
		{"half a patch", strategic, `{"data":`, 400, "BadRequest", "invalid JSON patch"},
		{"two patches", merge, `{}{}`, 400, "BadRequest", "invalid JSON patch"},
		{"bytes that are no text", merge, "{\"data\":{\"k\":\"\xff\"}}", 400, "BadRequest", "not UTF-8 text"},
		{"a type of another API", "application/apply-patch+cbor", `{}`, 415, "UnsupportedMediaType", "415: Unsupported Media Type"},
		{"too deep", merge, deep(patch.MaxDepth + 1), 400, "BadRequest", "nested deeper than 32 levels"},
		{"too long a list", strategic, `{"metadata":{"finalizers":["a"` + strings.Repeat(`,"a"`, patch.MaxItems) + `]}}`, 413, "RequestEntityTooLarge", "maximum items of a list in a patch is 1000, got 1001"},
		{"too long a list to add", ops, `[{"op":"add","path":"/metadata/finalizers","value":["a"` + strings.Repeat(`,"a"`, patch.MaxItems) + `]}]`, 413, "RequestEntityTooLarge", "maximum items of a list in a patch is 1000, got 1001"},
		{"an object for operations", ops, `{"data":{}}`, 400, "BadRequest", "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"},
		{"an operation whose path is a number", ops, `[{"op":"add","path":5}]`, 400, "BadRequest", "jsonPatchOp.path of type string"},
		{"a list to merge", merge, `[]`, 400, "BadRequest", "cannot unmarshal array"},
		{"null to merge", merge, `null`, 400, "BadRequest", "Invalid JSON Patch"},
		{"a string to merge", strategic, `"x"`, 400, "BadRequest", "cannot unmarshal string"},
		{"a test that fails", ops, `[{"op":"test","path":"/data/mode","value":"red"}]`, 422, "Invalid", "rejected our request"},
		{"a test of a version that is gone", ops, `[{"op":"test","path":"/metadata/resourceVersion","value":"6"}]`, 422, "Invalid", "rejected our request"},
		{"a path that is not there", ops, `[{"op":"remove","path":"/data/none"}]`, 422, "Invalid", "rejected our request"},
		{"an unknown operation", ops, `[{"op":"set","path":"/data/mode","value":"x"}]`, 422, "Invalid", "rejected our request"},
		{"no operation", ops, `[{}]`, 422, "Invalid", "rejected our request"},
		{"replacing everything with nothing", ops, `[{"op":"replace","path":""}]`, 400, "BadRequest", "can't be applied"},
		{"too many operations", ops, manyOps, 413, "RequestEntityTooLarge", "maximum operations in a JSON patch is 10000, got 10001"},
		{"too much copied", ops, "[" + copies + "]", 422, "Invalid", "rejected our request"},
		{"an unknown directive", strategic, `{"data":{"$patch":"bogus"}}`, 400, "BadRequest", "unknown patch type: bogus"},
		{"an order that does not fit", strategic, `{"metadata":{"$setElementOrder/finalizers":["b","a"],"finalizers":["c"]}}`, 400, "BadRequest", "doesn't match $setElementOrder"},
		{"a retainKeys that does not fit", strategic, `{"data":{"$retainKeys":["a"],"b":"x"}}`, 400, "BadRequest", "invalid patch format of retainKeys"},
		{"a list of lists", strategic, `{"metadata":{"finalizers":[["a"]]}}`, 400, "BadRequest", "list element types are not identical"},
		{"a number as a value", merge, `{"data":{"k":5}}`, 422, "Invalid", `cannot unmarshal number into Go struct field ConfigMap.data of type string`},
		{"a number as a value, strategically", strategic, `{"data":{"k":5}}`, 422, "Invalid", ` "" is invalid: patch: Invalid value: "map[data:map[k:5]]": cannot convert int64 to string`},
		{"bytes that are no base64", merge, `{"binaryData":{"b":"!!!"}}`, 422, "Invalid", "illegal base64 data at input byte 0"},
		{"a string in the place of data", merge, `{"data":"x"}`, 422, "Invalid", `cannot unmarshal string`},
		{"another kind", merge, `{"kind":"Secret"}`, 422, "Invalid", "converting (v1.Secret) to (core.ConfigMap)"},
		{"another API version", merge, `{"apiVersion":"v2"}`, 422, "Invalid", `no kind "ConfigMap" is registered for version "v2"`},
		{"no API version", merge, `{"apiVersion":null}`, 400, "BadRequest", "removes apiVersion"},
		{"an empty API version", ops, `[{"op":"replace","path":"/apiVersion","value":""}]`, 400, "BadRequest", "removes apiVersion"},
		{"a year that can't be written", merge, `{"metadata":{"deletionTimestamp":"9999-12-31T23:59:59-23:00"}}`, 422, "Invalid", "the year is not within"},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, _, err := apply(c.kind, c.body, "")
			isStatus(t, err, c.code, c.reason, c.message)
			if next != nil {
				t.Errorf("and made %s", short(next))
			}
		})
	}
}

// isStatus checks that an error is a whole Status.
func isStatus(t *testing.T, err error, code int32, reason metav1.StatusReason, message string) {
	t.Helper()
	status, ok := err.(*apierrors.StatusError)
	if !ok {
		t.Fatalf("got %v, want a Status %d %s", err, code, reason)
	}
	s := status.ErrStatus
	if s.Code != code || s.Reason != reason || s.Kind != "Status" || s.APIVersion != "v1" || s.Status != metav1.StatusFailure {
		t.Errorf("got %+v, want a Status %d %s", s, code, reason)
	}
	if !strings.Contains(s.Message, message) {
		t.Errorf("message %q does not contain %q", s.Message, message)
	}
}

// What a patch names and the object does not have is told, refused or passed
// over, as the client asked.
func TestFieldValidation(t *testing.T) {
	for _, c := range []struct {
		kind     ktypes.PatchType
		body     string
		warnings []string
	}{
		{merge, `{"extra":1,"data":{"k":"1","k":"2"}}`, []string{`duplicate field "data.k"`, `unknown field "extra"`}},
		{merge, `{"Data":{"k":"v"}}`, []string{`unknown field "Data"`}},
		{strategic, `{"metadata":{"extra":1},"extra":1,"extra":2}`, []string{`duplicate field "extra"`, `unknown field "extra"`, `unknown field "metadata.extra"`}},
		{ops, `[{"op":"add","path":"/extra","value":1,"note":"x"}]`, []string{`json patch unknown field "[0].note"`, `unknown field "extra"`}},
	} {
		for _, validation := range []string{"", metav1.FieldValidationWarn} {
			if _, warnings, err := apply(c.kind, c.body, validation); err != nil || !slices.Equal(warnings, c.warnings) {
				t.Errorf("%q %s: warnings %q, error %v", validation, c.body, warnings, err)
			}
		}
		if _, warnings, err := apply(c.kind, c.body, metav1.FieldValidationIgnore); err != nil || len(warnings) > 0 {
			t.Errorf("Ignore %s: warnings %q, error %v", c.body, warnings, err)
		}
		_, _, err := apply(c.kind, c.body, metav1.FieldValidationStrict)
		isStatus(t, err, 422, "Invalid", "strict decoding error: "+strings.Join(c.warnings, ", "))
	}
}

// An object without its apiVersion has no field that is known. Its kind is filled
// in again.
func TestFieldsOfAnObjectWithoutItsType(t *testing.T) {
	const body = `{"apiVersion":null}`
	if _, warnings, err := apply(merge, body, ""); err == nil || !slices.Equal(warnings, []string{`unknown field "data"`, `unknown field "metadata"`}) {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
	if _, warnings, err := apply(merge, body, metav1.FieldValidationIgnore); err == nil || len(warnings) > 0 {
		t.Errorf("Ignore: warnings %q, error %v", warnings, err)
	}
	_, _, err := apply(merge, body, metav1.FieldValidationStrict)
	isStatus(t, err, 422, "Invalid", `strict decoding error: unknown field "data", unknown field "metadata"`)
	if next, warnings, err := apply(merge, `{"kind":null}`, ""); err != nil || len(warnings) > 0 || next.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		t.Errorf("without its kind: %s, warnings %q, error %v", short(next), warnings, err)
	}
}

// Whether something looks like an end or a nesting inside a string makes no
// difference to how deep a patch is.
func TestDepthLooksNotIntoStrings(t *testing.T) {
	text := strings.Repeat(`{[\"\\`, patch.MaxDepth)
	next, _, err := apply(merge, `{"data":{"mode":"`+text+`","rollout":null}}`, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := next.(*types.ConfigMap).Data["mode"]; got != strings.Repeat(`{["\`, patch.MaxDepth) {
		t.Errorf("got %q", got)
	}
}

func TestConfigurations(t *testing.T) {
	for _, c := range []struct {
		name, body string
		content    string // as JSON
		repeated   []string
	}{
		{"JSON", `{"data":{"k":"v"},"n":[1,1.5,null]}`, `{"data":{"k":"v"},"n":[1,1.5,null]}`, nil},
		{"YAML", "data:\n  k: v\nm: 1\n", `{"data":{"k":"v"},"m":1}`, nil},
		{"nothing", "", `{}`, nil},
		{"JSON that YAML reads otherwise", "{\"k\":\"a \u2028 b\\/\\ud83d\\ude00\"}", `{"k":"a ` + "\u2028" + ` b/😀"}`, nil},
		{"a repeated key in JSON", `{"data":{"k":"1","k":"2"}}`, `{"data":{"k":"2"}}`, []string{`line 1: key "k" already set in map`}},
		{"repeated keys in YAML", "a: 1\na: 2\nb: 1\nb: 2\n", `{"a":2,"b":2}`, []string{`line 2: key "a" already set in map`, `line 4: key "b" already set in map`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := patch.ReadConfiguration([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(got.Object.Object)
			var want any
			if jsonErr := json.Unmarshal([]byte(c.content), &want); jsonErr != nil {
				t.Fatal(jsonErr)
			}
			wanted, _ := json.Marshal(want)
			if err != nil || string(text) != string(wanted) || !slices.Equal(got.Repeated, c.repeated) {
				t.Errorf("got %s, repeated %q, error %v", text, got.Repeated, err)
			}
		})
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ name, body, message string }{
		{"too deep", "a: " + strings.Repeat("[", patch.MaxDepth) + strings.Repeat("]", patch.MaxDepth), "nested deeper than 32 levels"},
		{"broken YAML", "data: [\n", "error encoding patch: yaml: line 1: did not find expected node content"},
		{"two documents", "a: 1\n---\nb: 1\n", "line 3: another YAML document"},
		{"two documents, one with a repeated key", "a: 1\na: 2\n---\nb: 1\n", "another YAML document"},
		{"a key that is no string, and a repeated one", "yes: 1\na: 1\na: 2\n", "key yes is not a string"},
		{"bytes in JSON", "{\"k\":\"\xff\"}", "not UTF-8 text"},
		{"bytes in YAML", "k: \"\xff\"", "not UTF-8 text"},
		{"a list", "- a\n", "error decoding patch"},
		{"half of a JSON object", `{"a":1`, "error encoding patch"},
		{"a JSON object and more", `{"a":1} x`, "error encoding patch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := patch.ReadConfiguration([]byte(c.body))
			isStatus(t, err, 400, "BadRequest", c.message)
		})
	}
}

func TestLongListsOfAConfiguration(t *testing.T) {
	long := func(n int) []byte { return []byte("a:\n" + strings.Repeat("- b\n", n)) }
	if _, err := patch.ReadConfiguration(long(patch.MaxItems)); err != nil {
		t.Error(err)
	}
	_, err := patch.ReadConfiguration(long(patch.MaxItems + 1))
	isStatus(t, err, 413, "RequestEntityTooLarge", "maximum items of a list in a patch is 1000, got 1001")
}

// FuzzMake makes any patch of any type to an object. It never panics, and what
// it makes can be stored and read again.
func FuzzMake(f *testing.F) {
	for _, body := range []string{
		`{}`, `[]`, `null`, `{"data":{"k":"v","mode":null},"extra":[1]}`, `{"metadata":{"finalizers":["b"],"$setElementOrder/finalizers":["b","a"]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`, `{"metadata":{"ownerReferences":[{"uid":"1","$patch":"delete"}]}}`,
		`{"data":{"$patch":"replace","k":"v"}}`, `{"$retainKeys":["data"],"data":{}}`, `{"$patch":"delete"}`, `{"binaryData":{"b":null}}`,
		`[{"op":"add","path":"/data/k","value":"v"},{"op":"move","from":"/data/k","path":"/data/m"},{"op":"copy","from":"","path":"/data/x"}]`,
		`[{"op":"replace","path":""}]`, `[{"op":"replace","path":"/metadata/finalizers/-1","value":{}}]`, `[null]`, `[{"op":"test","path":"","value":null}]`,
		`{"metadata":{"managedFields":[{"fieldsV1":{"f:x":1},"time":"9999-12-31T23:59:59-23:00"}]}}`,
	} {
		for i := range patch.Types {
			f.Add(byte(i), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		for _, validation := range []string{metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict} {
			next, _, err := apply(patch.Types[int(kind)%len(patch.Types)], string(body), validation)
			if err != nil {
				if _, ok := err.(*apierrors.StatusError); !ok {
					t.Fatalf("%T %v", err, err)
				}
				continue
			}
			next.SetName("flags")
			encoded, err := types.ConfigMaps.Encode(next)
			if err != nil {
				t.Fatal(err)
			}
			again, err := encoded.Decode(next.GetResourceVersion())
			if err != nil {
				t.Fatal(err)
			}
			if second, err := types.ConfigMaps.Encode(again); err != nil || string(second.Value) != string(encoded.Value) {
				t.Fatalf("stored as %s, read as %s (%v)", encoded.Value, second.Value, err)
			}
		}
	})
}

// FuzzReadConfiguration reads any body. It never panics, and what it reads is a
// map.
func FuzzReadConfiguration(f *testing.F) {
	for _, body := range []string{`{"a":1,"a":2}`, "a: 1\na: 2\n", "- a", "", "a: &x [*x]", "{{}: 1}", "%YAML 1.2\n---\na: 1"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := patch.ReadConfiguration(body)
		if err == nil && c.Object.Object == nil {
			t.Fatal("no map")
		}
		if err == nil && len(c.Repeated) > 0 && !apierrors.IsBadRequest(c.RefuseRepeated()) {
			t.Fatal(fmt.Errorf("%q", c.Repeated))
		}
	})
}
