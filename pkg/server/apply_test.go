package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// flagsOf is the path by which a manager applies flags.
func flagsOf(manager string) string { return flags + "?fieldManager=" + manager }

func TestApplyCreatesWhatIsNotThere(t *testing.T) {
	a := start(t)
	r := a.must(201, "PATCH", flagsOf("m1"), flagsBody("", `{"mode":"blue"}`), applyPatch...)
	if r.object.UID == "" || r.object.CreationTimestamp.IsZero() || r.version() != "1" || r.object.Data["mode"] != "blue" {
		t.Errorf("created %s", r.body)
	}
	if got := a.must(200, "GET", flags, ""); got.body != r.body {
		t.Errorf("answered %s, stored %s", r.body, got.body)
	}
	var history types.HistoryList
	if err := json.Unmarshal([]byte(a.must(200, "GET", flags+"/history", "").body), &history); err != nil {
		t.Fatal(err)
	}
	if e := history.Items[0]; e.Verb != "apply" || e.FieldManager != "m1" {
		t.Errorf("history %+v", e)
	}
	a.must(200, "GET", "/api/v1/namespaces/default", "")
}

func TestApplyOfTheSameKeepsTheVersion(t *testing.T) {
	a := start(t)
	first := a.must(201, "PATCH", flagsOf("m1"), flagsBody("", `{"mode":"blue"}`), applyPatch...)
	again := a.must(200, "PATCH", flagsOf("m1"), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: flags\ndata:\n  mode: blue\n", applyPatch...)
	if again.body != first.body || a.store.State().Current.String() != first.version() {
		t.Errorf("%s became %s", first.body, again.body)
	}
}

func TestApplyRemovesWhatItsManagerNoLongerNames(t *testing.T) {
	a := start(t)
	a.must(201, "PATCH", flagsOf("m1"), flagsBody("", `{"a":"1","b":"1"}`), applyPatch...)
	a.must(200, "PATCH", flags, `{"data":{"c":"1"}}`, mergePatch...)
	r := a.must(200, "PATCH", flagsOf("m1"), flagsBody("", `{"b":"2"}`), applyPatch...)
	if d := r.object.Data; len(d) != 2 || d["b"] != "2" || d["c"] != "1" {
		t.Errorf("got %v", d)
	}
}

func TestApplyTakesFieldsOnlyByForce(t *testing.T) {
	a := start(t)
	a.must(201, "PATCH", flagsOf("m1"), flagsBody("", `{"mode":"blue"}`), applyPatch...)
	for _, force := range []string{"", "&force=false", "&force=0"} {
		r := a.do("PATCH", flagsOf("m2")+force, flagsBody("", `{"mode":"red"}`), applyPatch...)
		isStatus(t, r, 409, "Conflict", `Apply failed with 1 conflict: conflict with "m1": .data.mode`)
		if causes := r.status.Details.Causes; len(causes) != 1 || causes[0].Field != ".data.mode" || causes[0].Type != "FieldManagerConflict" {
			t.Errorf("causes %+v", causes)
		}
	}
	r := a.must(200, "PATCH", flagsOf("m2")+"&force=true", flagsBody("", `{"mode":"red"}`), applyPatch...)
	if r.object.Data["mode"] != "red" || len(r.object.ManagedFields) != 1 || r.object.ManagedFields[0].Manager != "m2" {
		t.Errorf("got %s", r.body)
	}
}

func TestDryRunOfAnApplyStoresNothing(t *testing.T) {
	a := start(t)
	r := a.must(201, "PATCH", flagsOf("m1")+"&dryRun=All", flagsBody("", `{"mode":"blue"}`), applyPatch...)
	if r.version() != "" || r.object.Data["mode"] != "blue" {
		t.Errorf("answered %s", r.body)
	}
	isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
	was := a.create()
	r = a.must(200, "PATCH", flagsOf("m1")+"&dryRun=All", flagsBody("", `{"new":"1"}`), applyPatch...)
	if r.version() != was.version() || r.object.Data["new"] != "1" {
		t.Errorf("answered %s", r.body)
	}
	if got := a.must(200, "GET", flags, ""); got.body != was.body {
		t.Errorf("stored %s", got.body)
	}
}

// Each configuration is refused with a Status that says why, and nothing is
// stored. flags is there at version 1, new is not.
func TestConfigurationsThatAreRefused(t *testing.T) {
	of := func(meta, rest string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{` + meta + `}` + rest + `}`
	}
	const uid2 = "22222222-2222-4222-8222-222222222222"
	added := collection + "/new?fieldManager=m"
	for _, c := range []struct {
		name, path, body string
		code             int
		reason, message  string
	}{
		{"no manager", flags, of(`"name":"flags"`, ``), 422, "Invalid", "fieldManager: Required value: is required for apply patch"},
		{"no type", added, `{"metadata":{"name":"new"}}`, 400, "BadRequest", "invalid object type: /, Kind="},
		{"another kind", added, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"new"}}`, 400, "BadRequest", "invalid object type: /v1, Kind=Secret"},
		{"nothing", added, ``, 400, "BadRequest", "invalid object type"},
		{"broken YAML", added, "data: [\n", 400, "BadRequest", "error encoding patch: yaml: line 1"},
		{"two documents", added, "apiVersion: v1\n---\nkind: ConfigMap\n", 400, "BadRequest", "another YAML document"},
		{"no name", added, of(`"generateName":"new-"`, ``), 400, "BadRequest", "metadata.name does not match the URL"},
		{"another name", added, of(`"name":"flags"`, ``), 400, "BadRequest", "metadata.name does not match the URL"},
		{"another name of what is there", flagsOf("m"), of(`"name":"new"`, ``), 400, "BadRequest", "metadata.name does not match the URL"},
		{"another namespace", added, of(`"name":"new","namespace":"other"`, ``), 400, "BadRequest", "does not match the namespace"},
		{"a name that can't be", collection + "/Bad_Name?fieldManager=m", of(`"name":"Bad_Name"`, ``), 422, "Invalid", "metadata.name"},
		{"managedFields", added, of(`"name":"new","managedFields":[]`, ``), 400, "BadRequest", "metadata.managedFields must be nil"},
		{"an unknown field", added, of(`"name":"new"`, `,"extra":1`), 400, "BadRequest", ".extra: field not declared in schema"},
		{"a number", added, of(`"name":"new"`, `,"data":{"k":5}`), 400, "BadRequest", ".data.k: expected string"},
		{"metadata that is a list", added, `{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}`, 400, "BadRequest", ""},
		{"a key with a space", added, of(`"name":"new"`, `,"data":{"a b":""}`), 422, "Invalid", "data[a b]"},
		{"a uid of what is not there", added, of(`"name":"new","uid":"`+uid2+`"`, ``), 409, "Conflict", "uid mismatch: the provided object specified uid " + uid2},
		{"another uid", flagsOf("m"), of(`"name":"flags","uid":"`+uid2+`"`, ``), 422, "Invalid", "metadata.uid"},
		{"a stale version", flagsOf("m"), of(`"name":"flags","resourceVersion":"99"`, ``), 409, "Conflict", "sent resourceVersion 99, current 1"},
		{"a version that is no number", flagsOf("m"), of(`"name":"flags","resourceVersion":"a\"b"`, ``), 400, "BadRequest", "metadata.resourceVersion"},
		{"a version that is no number, of what is not there", added, of(`"name":"new","resourceVersion":"a\"b"`, ``), 400, "BadRequest", "metadata.resourceVersion"},
		{"a repeated key, strictly", added + "&fieldValidation=Strict", of(`"name":"new"`, `,"data":{"k":"1","k":"2"}`), 400, "BadRequest",
			"error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \"k\" already set in map"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			was := a.create()
			isStatus(t, a.do("PATCH", c.path, c.body, applyPatch...), c.code, c.reason, c.message)
			if got := a.store.State().Current.String(); got != was.version() {
				t.Errorf("something was stored: the store is at version %s, and was at %s", got, was.version())
			}
		})
	}
}

func TestRepeatedKeysOfAConfiguration(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: flags\ndata:\n  k: '1'\n  k: '2'\n"
	for validation, want := range map[string][]string{"": {`299 - "line 7: key \"k\" already set in map"`}, "Ignore": nil} {
		r := start(t).must(201, "PATCH", flagsOf("m")+"&fieldValidation="+validation, text, applyPatch...)
		if got := r.header.Values("Warning"); !slices.Equal(got, want) || r.object.Data["k"] != "2" {
			t.Errorf("%q: warnings %q, answer %s", validation, got, r.body)
		}
	}
}

func TestApplyFromTheCurrentVersion(t *testing.T) {
	a := start(t)
	was := a.create()
	r := a.must(200, "PATCH", flagsOf("m"), flagsBody(was.version(), `{"new":"1"}`), applyPatch...)
	if r.object.Data["new"] != "1" || r.version() == was.version() {
		t.Errorf("got %s", r.body)
	}
	isStatus(t, a.do("PATCH", flagsOf("m"), flagsBody(was.version(), `{"new":"2"}`), applyPatch...), 409, "Conflict", "sent resourceVersion 1, current 2")
}

// Null stands for what is empty, and is never written.
func TestNullInAConfiguration(t *testing.T) {
	a := start(t)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","creationTimestamp":null},"data":{"a":null},"binaryData":{"b":null}}`
	for _, code := range []int{201, 200} {
		if r := a.must(code, "PATCH", flagsOf("m"), body, applyPatch...); strings.Contains(r.body, "null") || r.version() != "1" {
			t.Errorf("got %s", r.body)
		}
	}
}

func TestApplyOfANamespace(t *testing.T) {
	a := start(t)
	const path = namespaces + "/team-a?fieldManager=m"
	of := func(team string) string {
		return `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a","labels":{"team":"` + team + `"}}}`
	}
	r := a.must(201, "PATCH", path, of("a"), applyPatch...)
	if !strings.Contains(r.body, `"kubernetes.io/metadata.name":"team-a"`) || !strings.Contains(r.body, `"phase":"Active"`) {
		t.Errorf("got %s", r.body)
	}
	if r := a.must(200, "PATCH", path, of("b"), applyPatch...); !strings.Contains(r.body, `"team":"b"`) {
		t.Errorf("got %s", r.body)
	}
}

func TestStrictNamespacesRefuseToApplyIntoNone(t *testing.T) {
	a := start(t, strict)
	r := a.do("PATCH", teamAMaps+"/flags?fieldManager=m", flagsBody("", `{}`), applyPatch...)
	isStatus(t, r, 404, "NotFound", `namespaces "team-a" not found`)
	a.must(201, "PATCH", teamA+"?fieldManager=m", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a"}}`, applyPatch...)
	a.must(201, "PATCH", teamAMaps+"/flags?fieldManager=m", flagsBody("", `{}`), applyPatch...)
}

// Managers that apply at once, to an object that is not there yet: one of them
// creates it, all have their field.
func TestParallelAppliesAllLand(t *testing.T) {
	a := start(t)
	answers := answersOf(many, func(i int) result {
		return a.do("PATCH", flagsOf(fmt.Sprintf("m%d", i)), flagsBody("", fmt.Sprintf(`{"k%d":"v"}`, i)), applyPatch...)
	})
	allLanded(t, a, answers, 200, 201)
	created := slices.Collect(func(yield func(result) bool) {
		for _, r := range answers {
			if r.code == 201 && !yield(r) {
				return
			}
		}
	})
	if len(created) != 1 {
		t.Errorf("%d of them created it", len(created))
	}
	managers := map[string]bool{}
	for _, f := range a.must(200, "GET", flags, "").object.ManagedFields {
		managers[f.Manager] = true
	}
	if len(managers) != many {
		t.Errorf("%d managers", len(managers))
	}
}

// An object that comes or goes while it is applied is updated or created, as it
// turns out.
func TestApplyOfWhatComesAndGoes(t *testing.T) {
	a, h := hook(t)
	other := start(t, over(func(store.Store) store.Store { return h.Store }))
	before := func(do func()) {
		var once sync.Once
		h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
			once.Do(do)
			return h.Store.Commit(ctx, txn)
		}
	}
	before(func() { other.create() })
	r := a.must(200, "PATCH", flagsOf("m"), flagsBody("", `{"ours":"1"}`), applyPatch...)
	if d := r.object.Data; d["mode"] != "blue" || d["ours"] != "1" {
		t.Errorf("got %v", d)
	}
	before(func() { other.must(200, "DELETE", flags, "") })
	r = a.must(201, "PATCH", flagsOf("m"), flagsBody("", `{"ours":"2"}`), applyPatch...)
	if d := r.object.Data; len(d) != 1 || d["ours"] != "2" {
		t.Errorf("got %v", d)
	}
}

// What is immutable may not even get an empty map, as in Kubernetes.
func TestApplyOfAnEmptyMapToWhatIsImmutable(t *testing.T) {
	a := start(t)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"immutable":true%s}`
	a.must(201, "PATCH", flagsOf("m"), fmt.Sprintf(body, ""), applyPatch...)
	isStatus(t, a.do("PATCH", flagsOf("m"), fmt.Sprintf(body, `,"binaryData":{}`), applyPatch...), 422, "Invalid", "binaryData: Forbidden")
	a.must(200, "PATCH", flagsOf("m"), fmt.Sprintf(body, `,"data":{}`), applyPatch...)
}
