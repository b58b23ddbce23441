package fieldmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/cmctl/pkg/types"
)

// start is the time of the first write of every test; each next one comes a
// second later.
var start = time.Date(2021, 3, 4, 5, 6, 7, 891e6, time.UTC)

func newManager(t testing.TB, r *types.Resource) *Manager {
	t.Helper()
	m, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// object is a ConfigMap from JSON, or a Namespace if the JSON says so.
func object(t testing.TB, text string) types.Object {
	t.Helper()
	var head metav1.TypeMeta
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	r := types.ConfigMaps
	if head.Kind == types.Namespaces.Kind {
		r = types.Namespaces
	}
	o := r.New()
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// stored is the object as it is read back later.
func stored(t testing.TB, o types.Object) types.Object {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(text))
}

// owners are the entries in short: manager, operation, seconds since start (or
// "-" for no time), and fields.
func owners(o types.Object) []string {
	var lines []string
	for _, e := range o.GetManagedFields() {
		at := "-"
		if e.Time != nil {
			at = fmt.Sprint(int(e.Time.Sub(start.Truncate(time.Second)).Seconds()))
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, at, e.FieldsV1.GetRawString()))
	}
	return lines
}

// write is a step of a scenario: an update, or an apply.
type write struct {
	by    string
	body  string // of an update: the object, without name and uid
	apply string // instead: the applied configuration, without its type and name
	force bool
	want  []string // owners afterwards
	fails string   // instead: the message of the refusal
}

// run makes the writes one after the other and checks the owners after each.
func run(t *testing.T, writes []write) types.Object {
	t.Helper()
	m := newManager(t, types.ConfigMaps)
	var live types.Object
	for i, w := range writes {
		now := start.Add(time.Duration(i) * time.Second)
		next, err := perform(t, m, live, w, now)
		if w.fails != "" {
			if err == nil || err.Error() != w.fails {
				t.Fatalf("write %d: the answer is %v, not %s", i+1, err, w.fails)
			}
			continue
		}
		if err != nil {
			t.Fatalf("write %d: %v", i+1, err)
		}
		if got := owners(next); !reflect.DeepEqual(got, w.want) {
			t.Fatalf("after write %d the owners are\n\t%s\nnot\n\t%s", i+1, strings.Join(got, "\n\t"), strings.Join(w.want, "\n\t"))
		}
		next.SetUID("u")
		live = stored(t, next)
	}
	return live
}

func perform(t *testing.T, m *Manager, live types.Object, w write, now time.Time) (types.Object, error) {
	if w.apply != "" {
		return m.Apply(live, configuration(t, w.apply), w.by, w.force, now)
	}
	next := object(t, w.body)
	next.SetName("a")
	next.SetNamespace("ns")
	if live != nil {
		next.SetUID(live.GetUID())
	}
	m.Update(live, next, w.by, now)
	return next, nil
}

// configuration is what is applied: a ConfigMap with these fields.
func configuration(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetName("a")
	return u
}

func TestOwnersAfterWrites(t *testing.T) {
	tests := map[string][]write{
		"a create owns all that it sets": {
			{by: "m1", body: `{"data":{"k":"v"},"immutable":true,"metadata":{"labels":{"a":"b"},"finalizers":["x.y/z"]}}`,
				want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}},"f:immutable":{},"f:metadata":{"f:finalizers":{".":{},"v:\"x.y/z\"":{}},"f:labels":{".":{},"f:a":{}}}}`}},
		},
		"an empty manager is unknown": {
			{by: "", body: `{"data":{"k":"v"}}`, want: []string{`unknown Update 0 {"f:data":{".":{},"f:k":{}}}`}},
		},
		"a create's own entries don't count": {
			{by: "m1", body: `{"metadata":{"managedFields":[{"manager":"old","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:other":{}}}}]},"data":{"k":"v"}}`,
				want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
		},
		"an object that was created without fields stays untracked": {
			{by: "m1", body: `{}`},
			{by: "m1", body: `{"data":{"k":"v"}}`},
		},
		"the same manager's next update is one entry": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m1", body: `{"data":{"k":"w","l":"x"}}`, want: []string{`m1 Update 1 {"f:data":{".":{},"f:k":{},"f:l":{}}}`}},
		},
		"a value that another changes is the other's": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"w"}}`, want: []string{`m1 Update 0 {"f:data":{}}`, `m2 Update 1 {"f:data":{"f:k":{}}}`}},
		},
		"a removed key is nobody's, and removing owns nothing": {
			{by: "m1", body: `{"data":{"k":"v","l":"w"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{},"f:l":{}}}`}},
			{by: "m2", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m3", body: `{}`},
		},
		"an update that changes nothing leaves all as it is": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
		},
		"an update may send the entries that it read": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"w"},"metadata":{"managedFields":[{"manager":"m1","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"2021-03-04T05:06:07Z","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]}}`,
				want: []string{`m1 Update 0 {"f:data":{}}`, `m2 Update 1 {"f:data":{"f:k":{}}}`}},
		},
		"an update may replace the entries": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"w"},"metadata":{"managedFields":[{"manager":"m9","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{}}}}]}}`,
				want: []string{`m9 Apply - {"f:data":{}}`, `m2 Update 1 {"f:data":{"f:k":{}}}`}},
		},
		"entries that can't be read are ignored": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"w"},"metadata":{"managedFields":[{"manager":"m9","operation":"Bogus","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]}}`,
				want: []string{`m1 Update 0 {"f:data":{}}`, `m2 Update 1 {"f:data":{"f:k":{}}}`}},
		},
		"an entry of a version that doesn't exist goes with the next update": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"w"},"metadata":{"managedFields":[{"manager":"m9","operation":"Update","apiVersion":"v7","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}`,
				want: []string{`m2 Update 1 {"f:data":{"f:k":{}}}`}},
		},
		"entries with other times alone are no change": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"v"},"metadata":{"managedFields":[{"manager":"m1","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"2021-03-04T09:09:09Z","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]}}`,
				want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
		},
		"an empty list ends the tracking": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"v"},"metadata":{"managedFields":[]}}`},
			{by: "m2", body: `{"data":{"k":"w"}}`},
		},
		"an empty entry ends the tracking": {
			{by: "m1", body: `{"data":{"k":"v"}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m2", body: `{"data":{"k":"v"},"metadata":{"managedFields":[{}]}}`},
		},
		"an apply begins to track what was there": {
			{by: "m1", body: `{"data":{"k":"v"},"metadata":{"managedFields":[]}}`, want: []string{`m1 Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m1", body: `{"data":{"k":"v"},"metadata":{"managedFields":[{}]}}`},
			{by: "m2", apply: `{"data":{"l":"w"}}`, want: []string{`m2 Apply 2 {"f:data":{"f:l":{}}}`, `before-first-apply Update 2 {"f:data":{".":{},"f:k":{}}}`}},
		},
		"owner references are owned by uid, finalizers by value": {
			{by: "m1", body: `{"metadata":{"finalizers":["a.b/c"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"}]}}`,
				want: []string{`m1 Update 0 {"f:metadata":{"f:finalizers":{".":{},"v:\"a.b/c\"":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{}}}}`}},
			{by: "m2", body: `{"metadata":{"finalizers":["d.e/f","a.b/c"],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"q","uid":"1"}]}}`,
				want: []string{`m1 Update 0 {"f:metadata":{"f:finalizers":{".":{},"v:\"a.b/c\"":{}},"f:ownerReferences":{}}}`,
					`m2 Update 1 {"f:metadata":{"f:finalizers":{"v:\"d.e/f\"":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}}}`}},
		},
		"an apply owns the leaves": {
			{by: "m1", apply: `{"data":{"k":"v"}}`, want: []string{`m1 Apply 0 {"f:data":{"f:k":{}}}`}},
			{by: "m1", apply: `{"data":{"k":"v"}}`, want: []string{`m1 Apply 0 {"f:data":{"f:k":{}}}`}},
			{by: "m1", apply: `{"data":{"k":"w","l":"x"}}`, want: []string{`m1 Apply 2 {"f:data":{"f:k":{},"f:l":{}}}`}},
			{by: "m1", apply: `{"data":{"l":"x"}}`, want: []string{`m1 Apply 3 {"f:data":{"f:l":{}}}`}},
			{by: "m1", apply: `{"data":{}}`, want: []string{`m1 Apply 4 {"f:data":{}}`}},
		},
		"a null value is applied as an empty one, once": {
			{by: "m1", apply: `{"data":{"k":null}}`, want: []string{`m1 Apply 0 {"f:data":{"f:k":{}}}`}},
			{by: "m1", apply: `{"data":{"k":null}}`, want: []string{`m1 Apply 0 {"f:data":{"f:k":{}}}`}},
		},
		"an apply conflicts with another's value": {
			{by: "m1", apply: `{"data":{"k":"v"}}`, want: []string{`m1 Apply 0 {"f:data":{"f:k":{}}}`}},
			{by: "m2", apply: `{"data":{"k":"w"}}`, fails: `Apply failed with 1 conflict: conflict with "m1": .data.k`},
			{by: "m2", apply: `{"data":{"k":"w"}}`, force: true, want: []string{`m2 Apply 2 {"f:data":{"f:k":{}}}`}},
			{by: "m1", apply: `{"data":{"k":"w"}}`, want: []string{`m1 Apply - {"f:data":{"f:k":{}}}`, `m2 Apply 2 {"f:data":{"f:k":{}}}`}},
		},
		"conflicts are told by manager": {
			{by: "m1", apply: `{"data":{"k":"v"}}`, want: []string{`m1 Apply 0 {"f:data":{"f:k":{}}}`}},
			{by: "m2", apply: `{"data":{"l":"v"}}`, want: []string{`m1 Apply 0 {"f:data":{"f:k":{}}}`, `m2 Apply 1 {"f:data":{"f:l":{}}}`}},
			{by: "m3", apply: `{"data":{"k":"w","l":"w"}}`, fails: "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.k\nconflicts with \"m2\":\n- .data.l"},
		},
		"ownership alone is added without a time": {
			{by: "upd", body: `{"data":{"k":"v"}}`, want: []string{`upd Update 0 {"f:data":{".":{},"f:k":{}}}`}},
			{by: "m1", apply: `{"data":{"k":"w"}}`, fails: `Apply failed with 1 conflict: conflict with "upd" using v1: .data.k`},
			{by: "m1", apply: `{"data":{"k":"v"}}`, want: []string{`m1 Apply - {"f:data":{"f:k":{}}}`, `upd Update 0 {"f:data":{".":{},"f:k":{}}}`}},
		},
		"an update takes over what was applied": {
			{by: "m", apply: `{"data":{"k":"v"}}`, want: []string{`m Apply 0 {"f:data":{"f:k":{}}}`}},
			{by: "m", body: `{"data":{"k":"v","l":"w"}}`, want: []string{`m Apply 0 {"f:data":{"f:k":{}}}`, `m Update 1 {"f:data":{"f:l":{}}}`}},
			{by: "m", body: `{"data":{"k":"w","l":"w"}}`, want: []string{`m Update 2 {"f:data":{"f:k":{},"f:l":{}}}`}},
		},
	}
	for name, writes := range tests {
		t.Run(name, func(t *testing.T) { run(t, writes) })
	}
}

func TestOfMoreThanTenUpdatersTheOldestAreOne(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	live := object(t, `{"data":{"k":"v"}}`)
	m.Update(nil, live, "creator", start)
	live.SetUID("u")
	for i := range 11 {
		next := stored(t, live)
		next.(*corev1.ConfigMap).Data[fmt.Sprint("k", i)] = "v"
		m.Update(live, next, fmt.Sprint("m", i), start.Add(time.Duration(i+1)*time.Second))
		live = stored(t, next)
		if n := len(live.GetManagedFields()); n > 10 {
			t.Fatalf("after %d updates there are %d owners", i+2, n)
		}
	}
	want := []string{`ancient-changes Update 2 {"f:data":{".":{},"f:k":{},"f:k0":{},"f:k1":{}}}`}
	for i := 2; i <= 10; i++ {
		want = append(want, fmt.Sprintf(`m%d Update %d {"f:data":{"f:k%d":{}}}`, i, i+1, i))
	}
	if got := owners(live); !reflect.DeepEqual(got, want) {
		t.Errorf("the owners are\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestAnApplyMergesAndPrunes(t *testing.T) {
	live := run(t, []write{
		{by: "m1", apply: `{"data":{"k":"v","l":"w"},"metadata":{"labels":{"a":"b"},"finalizers":["x.y/1"]}}`, want: []string{
			`m1 Apply 0 {"f:data":{"f:k":{},"f:l":{}},"f:metadata":{"f:finalizers":{"v:\"x.y/1\"":{}},"f:labels":{"f:a":{}}}}`}},
		{by: "m2", apply: `{"data":{"k":"v"},"metadata":{"finalizers":["x.y/2"]}}`, want: []string{
			`m1 Apply 0 {"f:data":{"f:k":{},"f:l":{}},"f:metadata":{"f:finalizers":{"v:\"x.y/1\"":{}},"f:labels":{"f:a":{}}}}`,
			`m2 Apply 1 {"f:data":{"f:k":{}},"f:metadata":{"f:finalizers":{"v:\"x.y/2\"":{}}}}`}},
		{by: "m1", apply: `{"metadata":{"labels":{"a":"b"}}}`, want: []string{
			`m2 Apply 1 {"f:data":{"f:k":{}},"f:metadata":{"f:finalizers":{"v:\"x.y/2\"":{}}}}`,
			`m1 Apply 2 {"f:metadata":{"f:labels":{"f:a":{}}}}`}},
	}).(*corev1.ConfigMap)
	if !reflect.DeepEqual(live.Data, map[string]string{"k": "v"}) ||
		!reflect.DeepEqual(live.Labels, map[string]string{"a": "b"}) || !reflect.DeepEqual(live.Finalizers, []string{"x.y/2"}) {
		t.Errorf("the object is %v, labels %v, finalizers %v", live.Data, live.Labels, live.Finalizers)
	}
	if live.Kind != "ConfigMap" || live.APIVersion != "v1" {
		t.Errorf("its type is %v", live.TypeMeta)
	}
}

func TestRefusedApplies(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	live := object(t, `{"metadata":{"name":"a","uid":"u"},"data":{"k":"v"}}`)
	tests := map[string]struct {
		applied string
		message string
	}{
		"without a type":     {`{"metadata":{"name":"a"}}`, "invalid object type: /, Kind="},
		"of another kind":    {`{"apiVersion":"v1","kind":"Secret"}`, "invalid object type: /v1, Kind=Secret"},
		"of another version": {`{"apiVersion":"v2","kind":"ConfigMap"}`, "invalid object type: /v2, Kind=ConfigMap"},
		"with managedFields": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[]}}`, "metadata.managedFields must be nil"},
		"with an unknown field": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"extra":1}`,
			"failed to create typed patch object (/a; /v1, Kind=ConfigMap): .extra: field not declared in schema"},
		"with a number for a text": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":5}}`, ""},
		"with bad base64":          {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"b":"!"}}`, ""},
		"with a finalizer twice":   {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","finalizers":["x.y/z","x.y/z"]}}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(test.applied), &u.Object); err != nil {
				t.Fatal(err)
			}
			_, err := m.Apply(live, u, "m", true, start)
			var status *types.StatusError
			if !errors.As(err, &status) {
				t.Fatalf("the answer is %v, which has no Status", err)
			}
			if status.ErrStatus.Code != http.StatusBadRequest || status.ErrStatus.Kind != "Status" {
				t.Errorf("the Status is %+v, not a 400", status.ErrStatus)
			}
			if test.message != "" && status.ErrStatus.Message != test.message {
				t.Errorf("the message is %q, not %q", status.ErrStatus.Message, test.message)
			}
		})
	}
}

func TestAConflictNamesEachField(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	live, err := m.Apply(nil, configuration(t, `{"data":{"b":"1"}}`), "m2", false, start)
	if err == nil {
		live, err = m.Apply(live, configuration(t, `{"data":{"a":"1","c":"1"}}`), "m1", false, start)
	}
	if err != nil {
		t.Fatal(err)
	}
	cause := func(manager, field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "` + manager + `"`, Field: field}
	}
	want := &metav1.StatusDetails{Causes: []metav1.StatusCause{cause("m1", ".data.a"), cause("m1", ".data.c"), cause("m2", ".data.b")}}
	for range 20 { // apimachinery finds conflicts in any order
		_, err := m.Apply(live, configuration(t, `{"data":{"a":"2","b":"2","c":"2"}}`), "m3", false, start)
		var status *types.StatusError
		if !errors.As(err, &status) {
			t.Fatalf("the answer is %v, not a conflict", err)
		}
		s := status.ErrStatus
		if s.Code != http.StatusConflict || s.Reason != metav1.StatusReasonConflict || !reflect.DeepEqual(s.Details, want) {
			t.Fatalf("the Status is %+v with details %+v", s, s.Details)
		}
	}
}

func TestEntriesOfOneSecondAreInOrderOfManagers(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	var live types.Object
	for _, manager := range []string{"m3", "m1", "m2"} {
		next, err := m.Apply(live, configuration(t, fmt.Sprintf(`{"data":{%q:"v"}}`, manager)), manager, false, start)
		if err != nil {
			t.Fatal(err)
		}
		next.SetUID("u")
		live = stored(t, next)
	}
	want := []string{`m1 Apply 0 {"f:data":{"f:m1":{}}}`, `m2 Apply 0 {"f:data":{"f:m2":{}}}`, `m3 Apply 0 {"f:data":{"f:m3":{}}}`}
	if got := owners(live); !reflect.DeepEqual(got, want) {
		t.Errorf("the owners are %q, not %q", got, want)
	}
}

func TestBadEntriesOfAStoredObjectAreNotTheClientsFault(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	live := object(t, `{"metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Bogus"}]}}`)
	_, err := m.Apply(live, configuration(t, `{"data":{"k":"v"}}`), "m", false, start)
	var status *types.StatusError
	if err == nil || errors.As(err, &status) {
		t.Errorf("the answer is %v", err)
	}
}

func TestClientSideApplyGoesOnAsServerSideApply(t *testing.T) {
	const annotation = "kubectl.kubernetes.io/last-applied-configuration"
	m := newManager(t, types.ConfigMaps)
	live := object(t, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	live.SetAnnotations(map[string]string{
		annotation: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`,
	})
	m.Update(nil, live, "kubectl-client-side-apply", start)
	live.SetUID("u")

	if _, err := m.Apply(live, configuration(t, `{"data":{"k":"w"}}`), "other", false, start); err == nil {
		t.Error("another manager than kubectl got the field without force")
	}
	next, err := m.Apply(live, configuration(t, `{"data":{"k":"w"}}`), "kubectl", false, start.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if got := next.(*corev1.ConfigMap).Data["k"]; got != "w" {
		t.Errorf("the value is %q", got)
	}
	want := `{"apiVersion":"v1","data":{"k":"w"},"kind":"ConfigMap","metadata":{"name":"a"}}` + "\n"
	if got := next.GetAnnotations()[annotation]; got != want {
		t.Errorf("the last applied configuration is %q, not %q", got, want)
	}
}

func TestANamespacesSpecAndStatusAreNobodys(t *testing.T) {
	m := newManager(t, types.Namespaces)
	ns := types.NewNamespace("n")
	m.Update(nil, ns, "m", start)
	want := []string{`m Update 0 {"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}`}
	if got := owners(ns); !reflect.DeepEqual(got, want) {
		t.Errorf("after the create the owners are %q, not %q", got, want)
	}
	ns.SetUID("u")
	next := ns.DeepCopy()
	next.Labels["team"] = "blue"
	m.Update(ns, next, "l", start.Add(time.Second))
	want = append(want, `l Update 1 {"f:metadata":{"f:labels":{"f:team":{}}}}`)
	if got := owners(next); !reflect.DeepEqual(got, want) {
		t.Errorf("after the update the owners are %q, not %q", got, want)
	}
}

func TestNeitherWriteChangesTheLiveObject(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	live := object(t, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	m.Update(nil, live, "m1", start)
	live.SetUID("u")
	before := live.DeepCopyObject()
	for _, manager := range []string{"m1", "m2"} {
		next := object(t, `{"metadata":{"name":"a","uid":"u"},"data":{"k":"w"}}`)
		m.Update(live, next, manager, start.Add(time.Second))
		m.updateFully(live, next, manager, start.Add(time.Second))
	}
	if _, err := m.Apply(live, configuration(t, `{"data":{"k":"x"}}`), "m3", true, start); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(live, before) {
		t.Errorf("it is now %v", live)
	}
}

func TestAnObjectThatApimachineryCantReadKeepsItsEntries(t *testing.T) {
	m := newManager(t, types.Namespaces)
	live := types.NewNamespace("n")
	m.Update(nil, live, "m", start)
	live.UID = "u"
	next := live.DeepCopy()
	next.TypeMeta = metav1.TypeMeta{}
	next.Labels["team"] = "blue"
	m.Update(live, next, "l", start)
	if got, want := owners(next), owners(live); !reflect.DeepEqual(got, want) {
		t.Errorf("the owners are %q, not %q", got, want)
	}
}
