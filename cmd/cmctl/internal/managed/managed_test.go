package managed_test

import (
	"testing"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/managed"
	"example.com/cmctl/pkg/types"
)

const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","finalizers":["a/b"],"managedFields":[
	{"manager":"kubectl","operation":"Update","time":"2026-11-01T10:00:00Z","fieldsV1":{"f:data":{".":{},"f:mode":{}},"f:binaryData":{"f:logo":{}}}},
	{"manager":"ci","operation":"Apply","time":"2026-11-02T10:00:00Z","fieldsV1":{"f:data":{"f:mode":{}},"f:metadata":{"f:labels":{"f:tier":{}},"f:finalizers":{"v:\"a/b\"":{}}}}},
	{"manager":"ci","operation":"Update","time":"2026-11-03T10:00:00Z","fieldsV1":{"f:immutable":{},"f:metadata":{"f:annotations":{"f:owner":{}}}}}]}}`

func parsed(t *testing.T, text string) types.Document {
	t.Helper()
	d, err := types.ParseDocument([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhoOwnsAField(t *testing.T) {
	d := parsed(t, object)
	for _, c := range []struct {
		field  types.Field
		last   string
		day    int
		owners types.Owners // with ci as ours
	}{
		{types.Field{Section: "data", Key: "mode"}, "ci", 2, types.Owners{Ours: true, Others: true}},
		{types.Field{Section: "data", Key: "logo"}, "kubectl", 1, types.Owners{Others: true}},
		{types.Field{Section: "metadata.labels", Key: "tier"}, "ci", 2, types.Owners{Ours: true}},
		{types.Field{Section: "metadata.annotations", Key: "owner"}, "ci", 3, types.Owners{Others: true}},
		{types.Field{Section: "metadata", Key: "finalizers"}, "ci", 2, types.Owners{Ours: true}},
		{types.Field{Key: "immutable"}, "ci", 3, types.Owners{Others: true}},
		{types.Field{Section: "data", Key: "tier"}, "", 0, types.Owners{}},
	} {
		t.Run(c.field.String(), func(t *testing.T) {
			who, at := managed.Last(d, c.field)
			if who != c.last || who != "" && at.Day() != c.day {
				t.Errorf("written last by %q at %s", who, at)
			}
			if got := managed.OwnersOf(d, c.field, "ci"); got != c.owners {
				t.Errorf("owned by %+v, want %+v", got, c.owners)
			}
		})
	}
	if who, at := managed.LastOfAll(d); who != "ci" || !at.Equal(time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("the object was written last by %q at %s", who, at)
	}
}

func TestWhoAppliedAField(t *testing.T) {
	d := parsed(t, object)
	for field, want := range map[types.Field]string{
		{Section: "data", Key: "mode"}:                  "ci",
		{Section: "data", Key: "logo"}:                  "", // written, and not applied
		{Section: "metadata.annotations", Key: "owner"}: "",
		{Section: "metadata.labels", Key: "tier"}:       "ci",
	} {
		if got := managed.LastApplied(d, field); got != want {
			t.Errorf("%s: applied by %q, want %q", field, got, want)
		}
	}
	if who := managed.LastApplier(d); who != "ci" {
		t.Errorf("the object was applied last by %q", who)
	}
	list := types.Field{Section: "metadata", Key: "finalizers"}
	for _, c := range []struct {
		item, manager string
		want          types.Owners
	}{
		{"a/b", "ci", types.Owners{Ours: true}},
		{"a/b", "kubectl", types.Owners{Others: true}},
		{"a/c", "ci", types.Owners{}},
	} {
		if got := managed.OwnersOfItem(d, list, c.item, c.manager); got != c.want {
			t.Errorf("%s is owned by %+v for %s, want %+v", c.item, got, c.manager, c.want)
		}
	}
}

func TestWhatAManagerWroteCountsAsApplied(t *testing.T) {
	d := managed.AsApplied(parsed(t, object), "ci")
	entries := managed.Entries(d)
	if len(entries) != 2 || !entries[1].Is("ci", managed.Apply) || entries[1].Time().Day() != 3 {
		t.Fatalf("%v", entries)
	}
	for _, f := range []types.Field{{Section: "data", Key: "mode"}, {Section: "metadata.labels", Key: "tier"}, {Key: "immutable"}} {
		if !entries[1].Owns(f) {
			t.Errorf("%s is not among %v", f, entries[1])
		}
	}
	if !entries[1].OwnsItem(types.Field{Section: "metadata", Key: "finalizers"}, "a/b") {
		t.Error("the finalizer is not among them")
	}
}

func TestKeysAreHandedOver(t *testing.T) {
	before := parsed(t, object)
	d := managed.HandOver(before, []managed.DataKey{{Key: "mode"}, {Key: "logo", Binary: true}}, "ci")
	for _, key := range []string{"mode", "logo"} {
		f := types.Field{Section: "data", Key: key}
		if got := managed.OwnersOf(d, f, "ci"); got != (types.Owners{Ours: true}) {
			t.Errorf("%s is owned by %+v", key, got)
		}
	}
	entries := managed.Entries(d)
	if len(entries) != 2 { // nothing is left to kubectl
		t.Fatalf("%v", entries)
	}
	if !entries[0].Owns(types.Field{Key: "immutable"}) || !entries[1].Owns(types.Field{Section: "metadata.labels", Key: "tier"}) || entries[1].Time().Day() != 2 {
		t.Errorf("other fields changed hands: %v", entries)
	}
	if who, _ := managed.Last(before, types.Field{Section: "data", Key: "logo"}); who != "kubectl" {
		t.Errorf("the object that was given changed: its logo is %q's", who)
	}
}

// What is no list of entries has none.
func TestStrangeManagedFieldsOwnNothing(t *testing.T) {
	for _, text := range []string{
		`{"metadata":{}}`, `{"metadata":{"managedFields":{}}}`, `{"metadata":{"managedFields":[1,{"fieldsV1":[]},{"manager":1,"fieldsV1":{"f:data":1}}]}}`,
	} {
		d := parsed(t, text)
		if who, at := managed.Last(d, types.Field{Section: "data", Key: "mode"}); who != "" || !at.IsZero() {
			t.Errorf("%s: %q at %s", text, who, at)
		}
	}
}
