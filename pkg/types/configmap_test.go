package types_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/cmctl/pkg/types"
)

func TestDecode(t *testing.T) {
	const object = `{"metadata":{"name":"flags"},"data":{"mode":"blue"}}`
	for _, c := range []struct {
		name, media, body string
		problems          []string // that are told
		refused           string   // part of the message; empty: accepted
	}{
		{"JSON", "application/json", object, nil, ""},
		{"its own type", "application/json", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"flags"},"data":{"mode":"blue"}}`, nil, ""},
		{"YAML", "application/yaml", "metadata:\n  name: flags\ndata:\n  mode: blue\n", nil, ""},
		{"JSON as YAML", "application/yaml", object, nil, ""},
		{"one document with its markers", "application/yaml", "# note\n---\nmetadata: {name: flags}\ndata:\n  mode: blue\n...\n---\n# nothing\n", nil, ""},
		{"unknown field", "application/json", `{"metadata":{"name":"flags"},"data":{"mode":"blue"},"spec":1}`, []string{`unknown field "spec"`}, ""},
		{"field in other case", "application/json", `{"metadata":{"name":"flags"},"data":{"mode":"blue"},"Data":{"a":"b"}}`, []string{`unknown field "Data"`}, ""},
		{"duplicate key", "application/json", `{"metadata":{"name":"flags"},"data":{"mode":"red","mode":"blue"}}`, []string{`duplicate field "data.mode"`}, ""},
		{"duplicate YAML key", "application/yaml", "metadata: {name: flags}\ndata:\n  mode: red\n  mode: blue\nextra: 1\n",
			[]string{`line 4: key "mode" already set in map`, `unknown field "extra"`}, ""},

		{"empty", "application/json", "", nil, "unexpected end of JSON input (<empty>)"},
		{"cut off", "application/json", `{"metadata":{"na`, nil, "unexpected end of JSON input"},
		{"no JSON", "application/json", "mode: blue", nil, "invalid character 'm'"},
		{"two values", "application/json", object + object, nil, "after top-level value"},
		{"garbage behind", "application/json", object + " x", nil, "invalid character 'x' after top-level value"},
		{"two documents", "application/yaml", "metadata: {name: flags}\n---\nmetadata: {name: b}\n", nil, "line 3: another YAML document"},
		{"two documents on marker lines", "application/yaml", "--- {metadata: {name: flags}}\n--- {metadata: {name: b}}\n", nil, "line 2: another YAML document"},
		{"document after an end marker", "application/yaml", "metadata: {name: flags}\n...\nmetadata: {name: b}\n", nil, "line 3: the YAML document has ended"},
		{"no YAML", "application/yaml", "metadata:\n\tname: a\n", nil, "yaml: line 2"},
		{"an array", "application/json", "[" + object + "]", nil, "cannot unmarshal array"},
		{"other kind", "application/json", `{"kind":"Secret","apiVersion":"v1"}`, nil, `Secret in version "v1" cannot be handled as a ConfigMap`},
		{"other version", "application/json", `{"kind":"ConfigMap","apiVersion":"v2"}`, nil, `ConfigMap in version "v2" cannot be handled`},
		{"kind in other case", "application/json", `{"kind":"configmap"}`, nil, "takes kind ConfigMap"},
		{"a list", "application/json", `{"kind":"ConfigMapList","items":[]}`, nil, "takes kind ConfigMap"},
		{"number as value", "application/json", `{"metadata":{"name":"flags"},"data":{"mode":"blue","rollout":50}}`, nil,
			"cannot unmarshal number into Go struct field ConfigMap.data of type string: data[rollout] must be a string, not a number; put it in quotes"},
		{"YAML number and boolean", "application/yaml", "metadata: {name: flags}\ndata: {rollout: 50, \"on\": yes}\n", nil,
			"data[on] must be a string, not a boolean; put it in quotes, data[rollout] must be a string, not a number"},
		{"label that is a boolean", "application/json", `{"metadata":{"name":"flags","labels":{"on":true}}}`, nil, "metadata.labels[on] must be a string, not a boolean"},
		{"version that is a number", "application/json", `{"metadata":{"name":"flags","resourceVersion":5}}`, nil, "resourceVersion of type string"},
		{"base64", "application/json", `{"metadata":{"name":"flags"},"binaryData":{"b":"!!!"}}`, nil, "illegal base64"},
		{"time that can't be written", "application/json", `{"metadata":{"name":"flags","creationTimestamp":"0000-01-01T00:00:00+01:00"}}`, nil, "the year"},
		{"time", "application/json", `{"metadata":{"name":"flags","creationTimestamp":"yesterday"}}`, nil, "parsing time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cm, problems, err := decodeConfigMap([]byte(c.body), c.media)
			if c.refused != "" {
				if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got error %v, want BadRequest with %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cm.Kind != "ConfigMap" || cm.APIVersion != "v1" || cm.Name != "flags" || cm.Data["mode"] != "blue" {
				t.Errorf("got %+v", cm)
			}
			if !reflect.DeepEqual(problems, c.problems) {
				t.Errorf("problems %q, want %q", problems, c.problems)
			}
		})
	}
}

// inProtobuf is a body as Kubernetes' clients send it.
func inProtobuf(t *testing.T, kind string, message interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: kind, APIVersion: "v1"}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), body...)
}

func TestDecodeProtobuf(t *testing.T) {
	want := &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flags"}, Data: map[string]string{"mode": "blue"}}
	cm, _, err := decodeConfigMap(inProtobuf(t, "ConfigMap", want), types.MediaProtobuf)
	if err != nil || cm.Name != "flags" || cm.Data["mode"] != "blue" || cm.Kind != "ConfigMap" {
		t.Errorf("got %+v, %v", cm, err)
	}
	var o metav1.DeleteOptions
	_, err = types.DecodeOptions(inProtobuf(t, "DeleteOptions", &metav1.DeleteOptions{DryRun: []string{"All"}}), types.MediaProtobuf, "DeleteOptions", &o)
	if err != nil || len(o.DryRun) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	for name, body := range map[string][]byte{
		"other kind": inProtobuf(t, "Secret", want), "empty": nil, "JSON": []byte("{}"), "no envelope": []byte("k8s\x00\xff\xff"),
		"cut off": inProtobuf(t, "ConfigMap", want)[:20],
	} {
		if _, _, err := decodeConfigMap(body, types.MediaProtobuf); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDecodeRefusesOtherMediaTypes(t *testing.T) {
	_, _, err := decodeConfigMap([]byte("{}"), "text/plain")
	if !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("got %v", err)
	}
}

func TestDecodeOptions(t *testing.T) {
	var o metav1.DeleteOptions
	if _, err := types.DecodeOptions([]byte(`{"dryRun":["All"]}`), types.MediaJSON, "DeleteOptions", &o); err != nil || len(o.DryRun) != 1 {
		t.Errorf("got %+v, %v", o, err)
	}
	_, err := types.DecodeOptions([]byte(`{"kind":"ConfigMap"}`), types.MediaJSON, "DeleteOptions", &o)
	if !apierrors.IsBadRequest(err) {
		t.Errorf("another kind: got %v", err)
	}
}

func TestEncodedLeavesOutTypeAndVersion(t *testing.T) {
	created := metav1.NewTime(time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC))
	cm := &types.ConfigMap{
		TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "flags", Namespace: "default", UID: "u1", ResourceVersion: "7", CreationTimestamp: created,
			Annotations: map[string]string{"trap": `"resourceVersion":"0",`},
		},
		Data: map[string]string{"mode": "<blue>"},
	}
	e, err := types.ConfigMaps.Encode(cm)
	if err != nil {
		t.Fatal(err)
	}
	const item = `{"metadata":{"name":"flags","namespace":"default","uid":"u1",%s"creationTimestamp":"2024-05-06T07:08:09Z",` +
		`"annotations":{"trap":"\"resourceVersion\":\"0\","}},"data":{"mode":"<blue>"}}`
	with := func(version string) string { return strings.Replace(item, "%s", version, 1) }
	if got := string(e.Value); got != with("") {
		t.Errorf("value\n%s\nwant\n%s", got, with(""))
	}
	if got := string(e.AppendItem(nil, "42")); got != with(`"resourceVersion":"42",`) {
		t.Errorf("item\n%s", got)
	}
	if got, want := string(e.AppendObject(nil, "42")), `{"kind":"ConfigMap","apiVersion":"v1",`+with(`"resourceVersion":"42",`)[1:]; got != want {
		t.Errorf("object\n%s\nwant\n%s", got, want)
	}
	if n := len(e.AppendObject(nil, "9223372036854775807")); n > e.Size() {
		t.Errorf("an object of %d bytes is over its Size %d", n, e.Size())
	}
	back, err := e.Decode("7")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mustJSON(t, back), mustJSON(t, cm); got != want {
		t.Errorf("decoded\n%s\nwant\n%s", got, want)
	}
	if cm.ResourceVersion != "7" || cm.Kind != "ConfigMap" {
		t.Error("Encode changed what it was given")
	}
}

func TestEncodedWhereTheVersionIsMetadatasLastMember(t *testing.T) {
	e, err := types.ConfigMaps.Encode(&types.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flags"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(e.AppendItem(nil, "42")); got != `{"metadata":{"resourceVersion":"42","name":"flags"}}` {
		t.Errorf("item %s", got)
	}
	if _, err := types.ConfigMaps.Encode(&types.ConfigMap{}); err == nil {
		t.Error("an object without a name was encoded")
	}
}

func TestHistoryListOnTheWire(t *testing.T) {
	at := time.Date(2024, 5, 6, 9, 8, 9, 120_900_000, time.FixedZone("", 7200))
	list := types.HistoryList{
		TypeMeta: metav1.TypeMeta{Kind: types.HistoryKind, APIVersion: "v1"},
		Metadata: types.HistoryMeta{Name: "flags", Namespace: "default", ResourceVersion: "9"},
		Items: []types.HistoryEntry{
			{ResourceVersion: "9", Verb: "delete", FieldManager: "kubectl", Time: types.HistoryTime{Time: at}, Deleted: true},
			{ResourceVersion: "8", UID: "u1", Verb: "create", FieldManager: "cmctl", User: "ada", Time: types.HistoryTime{Time: at}, WriteID: "w1"},
		},
	}
	const want = `{"kind":"ConfigMapHistory","apiVersion":"v1","metadata":{"name":"flags","namespace":"default","resourceVersion":"9"},"items":[` +
		`{"resourceVersion":"9","verb":"delete","fieldManager":"kubectl","time":"2024-05-06T07:08:09.120Z","deleted":true},` +
		`{"resourceVersion":"8","uid":"u1","verb":"create","fieldManager":"cmctl","user":"ada","time":"2024-05-06T07:08:09.120Z","writeID":"w1"}]}`
	got := mustJSON(t, list)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var back types.HistoryList
	if err := json.Unmarshal([]byte(got), &back); err != nil {
		t.Fatal(err)
	}
	if mustJSON(t, back) != want {
		t.Error("it does not read back the same")
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FuzzDecode holds that no body makes Decode panic, and that what it accepts is
// stored and read back without change.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"metadata":{"name":"a"},"data":{"k":"v"},"binaryData":{"b":"AAE="},"immutable":true}`,
		`{"metadata":{"name":"a","resourceVersion":"0","annotations":{"x":"\"resourceVersion\":\"0\""}}}`,
		"metadata:\n  name: a\ndata:\n  k: |\n    x\n    y\n", "a: &a [*a]", "---\n---\n", "{\"metadata\":{\"name\":\"\u2028<>\"}}",
		`{"metadata":{"name":"a","creationTimestamp":"2024-05-06T07:08:09.5+02:00","managedFields":[{"fieldsV1":{"f:a":{}}}]}}`,
	} {
		for media := range types.MediaTypes {
			f.Add([]byte(seed), uint8(media))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		media := types.MediaTypes[int(kind)%len(types.MediaTypes)]
		if media == types.MediaProtobuf {
			body = append([]byte("k8s\x00"), body...)
		}
		cm, _, err := decodeConfigMap(body, media)
		if err != nil {
			if !apierrors.IsBadRequest(err) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if cm.Name == "" {
			return
		}
		first, err := types.ConfigMaps.Encode(cm)
		if err != nil {
			t.Skip() // no JSON can be made of it, such as a year beyond 9999
		}
		again, problems, err := decodeConfigMap(first.AppendObject(nil, "7"), types.MediaJSON)
		if err != nil || len(problems) > 0 {
			t.Fatalf("what was encoded is refused: %v %q", err, problems)
		}
		if again.ResourceVersion != "7" {
			t.Fatalf("version %q", again.ResourceVersion)
		}
		second, err := types.ConfigMaps.Encode(again)
		if err != nil {
			t.Fatal(err)
		}
		if string(first.Value) != string(second.Value) || first.VersionAt != second.VersionAt {
			t.Fatalf("encoded\n%s\nthen\n%s", first.Value, second.Value)
		}
	})
}

func decodeConfigMap(body []byte, mediaType string) (*types.ConfigMap, []string, error) {
	o, problems, err := types.ConfigMaps.Decode(body, mediaType)
	if err != nil {
		return nil, nil, err
	}
	return o.(*types.ConfigMap), problems, nil
}

func TestProtobufWithFieldsThatAreNoText(t *testing.T) {
	fields := metav1.FieldsV1{}
	fields.SetRawBytes([]byte("{\"f:\xff\":{}}"))
	body := inProtobuf(t, "ConfigMap", &types.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "flags", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &fields}},
	}})
	if _, _, err := decodeConfigMap(body, types.MediaProtobuf); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "managedFields[0].fieldsV1") {
		t.Errorf("got %v", err)
	}
}
