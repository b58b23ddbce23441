package conformance

import (
	"strings"
	"testing"
	"time"
)

const (
	uidA = "0a0a0a0a-1111-4222-8333-444444444444"
	uidB = "0b0b0b0b-1111-4222-8333-444444444444"
)

// forTest is a normalizer of a scenario in the namespaces cf-1 and cg-1, at noon.
func forTest(t *testing.T, steps string) *normalizer {
	t.Helper()
	scenarios, err := parse([]byte(`{"scenarios": [{"name": "a", "steps": ` + steps + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	return newNormalizer(scenarios[0], values{"ns": "cf-1", "ns2": "cg-1"}, noon)
}

func mustDecode(t *testing.T, text string) any {
	t.Helper()
	v, err := decodeJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestNormalizerReplacesWhatDiffersFromRunToRun(t *testing.T) {
	for _, c := range []struct{ name, steps, given, want string }{
		{"versions are numbered, equal ones alike", `[]`,
			`[{"metadata": {"resourceVersion": "7"}}, {"metadata": {"resourceVersion": "9"}}, {"metadata": {"resourceVersion": "7"}}]`,
			`[{"metadata": {"resourceVersion": "<rv1>"}}, {"metadata": {"resourceVersion": "<rv2>"}}, {"metadata": {"resourceVersion": "<rv1>"}}]`},
		{"what is no version stays", `[]`,
			`[{"metadata": {"resourceVersion": "0"}}, {"metadata": {"resourceVersion": "x7"}}, {"metadata": {"resourceVersion": 7}}]`,
			`[{"metadata": {"resourceVersion": "0"}}, {"metadata": {"resourceVersion": "x7"}}, {"metadata": {"resourceVersion": 7}}]`},
		{"the version of a list is the store's", `[]`,
			`{"kind": "ConfigMapList", "metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"resourceVersion": "7"}}]}`,
			`{"kind": "ConfigMapList", "metadata": {"resourceVersion": "<listrv>"}, "items": [{"metadata": {"resourceVersion": "<rv1>"}}]}`},
		{"so is that of a table, and ages are cut", `[]`,
			`{"kind": "Table", "metadata": {"resourceVersion": "9"}, "rows": [{"cells": ["a", 1, "4m5s", "5 minutes"]}]}`,
			`{"kind": "Table", "metadata": {"resourceVersion": "<listrv>"}, "rows": [{"cells": ["a", 1, "<age>", "5 minutes"]}]}`},
		{"uids are numbered", `[]`,
			`{"metadata": {"uid": "` + uidA + `"}, "message": "not ` + uidB + ` but ` + uidA + `"}`,
			`{"metadata": {"uid": "<uid1>"}, "message": "not <uid2> but <uid1>"}`},
		{"a uid of the request's stays", `[{"method": "PUT", "body": {"metadata": {"uid": "` + uidA + `"}}}]`,
			`["` + uidA + `", "` + uidB + `"]`,
			`["` + uidA + `", "<uid1>"]`},
		{"times of these days are cut", `[]`,
			`{"creationTimestamp": "2024-05-06T11:59:59Z", "deletionTimestamp": "2024-05-08T11:59:59Z", "time": "2024-05-04T12:00:01Z"}`,
			`{"creationTimestamp": "<time>", "deletionTimestamp": "<time>", "time": "<time>"}`},
		{"other times stay, and other forms", `[]`,
			`[{"time": "2024-05-08T12:00:00Z"}, {"time": "2024-05-06T12:00:00.5Z"}, {"time": "2024-05-06T12:00:00+00:00"}, {"when": "2024-05-06T12:00:00Z"}]`,
			`[{"time": "2024-05-08T12:00:00Z"}, {"time": "2024-05-06T12:00:00.5Z"}, {"time": "2024-05-06T12:00:00+00:00"}, {"when": "2024-05-06T12:00:00Z"}]`},
		{"namespaces get their placeholders", `[]`,
			`{"namespace": "cf-1", "message": "in cg-1", "cf-1": 1}`,
			`{"namespace": "{ns}", "message": "in {ns2}", "{ns}": 1}`},
		{"generated names are numbered", `[{"method": "POST", "body": {"metadata": {"generateName": "flags-"}}}]`,
			`["flags-x7k2m", "configmaps \"flags-aaaaa\" not found", "flags-x7k2m"]`,
			`["<gen1>", "configmaps \"<gen2>\" not found", "<gen1>"]`},
		{"names that only look generated stay", `[{"method": "POST", "body": {"metadata": {"generateName": "flags-"}}}]`,
			`["flags-x7k2", "flags-x7k2mm", "my-flags-x7k2m", "flags-x-k2m", "flags-X7K2M", "flags-"]`,
			`["flags-x7k2", "flags-x7k2mm", "my-flags-x7k2m", "flags-x-k2m", "flags-X7K2M", "flags-"]`},
		{"continue tokens are cut, unless empty", `[]`,
			`[{"metadata": {"continue": "abc"}}, {"metadata": {"continue": ""}}]`,
			`[{"metadata": {"continue": "<continue>"}}, {"metadata": {"continue": ""}}]`},
		{"long runs are written short", `[]`,
			`"` + strings.Repeat("x", 40) + `é` + strings.Repeat("é", 40) + strings.Repeat("y", 39) + `"`,
			`"x<x40>é<x41>` + strings.Repeat("y", 39) + `"`},
		{"messages name versions", `[]`,
			`[{"metadata": {"resourceVersion": "7"}},
			  "the ResourceVersion in the precondition (7) does not match the ResourceVersion in record (9)",
			  "the ResourceVersion in the precondition (5) does not match the ResourceVersion in record (9)",
			  "the object has been modified; sent resourceVersion 7, current 9",
			  "Too large resource version: 99, current: 9",
			  "too old resource version: 1 (9)"]`,
			`[{"metadata": {"resourceVersion": "<rv1>"}},
			  "the ResourceVersion in the precondition (<rv1>) does not match the ResourceVersion in record (<rv2>)",
			  "the ResourceVersion in the precondition (5) does not match the ResourceVersion in record (<rv2>)",
			  "the object has been modified; sent resourceVersion <rv1>, current <rv2>",
			  "Too large resource version: 99, current: <listrv>",
			  "too old resource version: 1 (<listrv>)"]`},
		{"messages quote objects", `[]`,
			`"bad: {\"resourceVersion\":\"7\",\"creationTimestamp\":\"2024-05-06T12:00:00Z\",\"time\":\"2020-05-06T12:00:00Z\"} in scheme \"pkg/a.go:1\""`,
			`"bad: {\"resourceVersion\":\"<rv1>\",\"creationTimestamp\":\"<time>\",\"time\":\"2020-05-06T12:00:00Z\"} in scheme \"<scheme>\""`},
		{"managedFields are compared without their time", `[]`,
			`{"metadata": {"managedFields": [{"manager": "b", "operation": "Update", "time": "2024-05-06T11:00:00Z"}, {"manager": "a", "operation": "Update", "time": "2024-05-06T12:00:00Z"}]}}`,
			`{"metadata": {"managedFields": [{"manager": "a", "operation": "Update", "time": "<time>"}, {"manager": "b", "operation": "Update", "time": "<time>"}]}}`},
		{"managedFields in a wrong order are marked", `[]`,
			`{"metadata": {"managedFields": [{"manager": "b", "operation": "Update"}, {"manager": "a", "operation": "Update"}]}}`,
			`{"metadata": {"managedFields": ["<not in the order operation, time, manager>", {"manager": "b", "operation": "Update"}, {"manager": "a", "operation": "Update"}]}}`},
		{"conflicts of an apply come in any order", `[]`,
			`{"causes": [{"reason": "FieldManagerConflict", "message": "b"}, {"reason": "FieldManagerConflict", "message": "a"}]}`,
			`{"causes": [{"reason": "FieldManagerConflict", "message": "a"}, {"reason": "FieldManagerConflict", "message": "b"}]}`},
		{"other causes keep theirs", `[]`,
			`{"causes": [{"reason": "FieldValueInvalid", "message": "b"}, {"reason": "FieldValueInvalid", "message": "a"}]}`,
			`{"causes": [{"reason": "FieldValueInvalid", "message": "b"}, {"reason": "FieldValueInvalid", "message": "a"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := forTest(t, c.steps).value(mustDecode(t, c.given))
			for _, m := range Compare(mustDecode(t, c.want), got) {
				t.Error(m)
			}
		})
	}
}

func TestNormalizerOfBookmarksAndYAML(t *testing.T) {
	n := forTest(t, `[]`)
	got := n.bookmark(mustDecode(t, `{"kind": "ConfigMap", "metadata": {"resourceVersion": "9"}}`))
	for _, m := range Compare(mustDecode(t, `{"kind": "ConfigMap", "metadata": {"resourceVersion": "<listrv>"}}`), got) {
		t.Error("bookmark:", m)
	}

	const object = "kind: ConfigMap\nmetadata:\n  creationTimestamp: \"2024-05-06T12:00:00Z\"\n  managedFields:\n  - time: \"2024-05-06T12:00:00Z\"\n  resourceVersion: \"7\"\n"
	const wantObject = "kind: ConfigMap\nmetadata:\n  creationTimestamp: \"<time>\"\n  managedFields:\n  - time: \"<time>\"\n  resourceVersion: \"<rv1>\"\n"
	if got := n.yaml(object); got != wantObject {
		t.Errorf("object: %s", got)
	}
	const list = "items:\n- metadata:\n    resourceVersion: \"7\"\nkind: ConfigMapList\nmetadata:\n  resourceVersion: \"9\"\n"
	const wantList = "items:\n- metadata:\n    resourceVersion: \"<rv1>\"\nkind: ConfigMapList\nmetadata:\n  resourceVersion: \"<listrv>\"\n"
	if got := n.yaml(list); got != wantList {
		t.Errorf("list: %s", got)
	}
	const table = "kind: Table\nrows:\n- cells:\n  - a\n  - 1\n  - 1m2s\n  object:\n    metadata:\n      name: a\n"
	const wantTable = "kind: Table\nrows:\n- cells:\n  - a\n  - 1\n  - <age>\n  object:\n    metadata:\n      name: a\n"
	if got := n.yaml(table); got != wantTable {
		t.Errorf("table: %s", got)
	}
}
