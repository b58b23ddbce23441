package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
)

// A list reads no more of the store than it shows.
func TestListsReadWhatTheyShow(t *testing.T) {
	var parts []store.Part
	a := start(t, over(func(s store.Store) store.Store { return &partsSeen{s, &parts} }))
	a.create()
	a.must(201, "POST", "/api/v1/namespaces", named("team-a"))
	for _, c := range []struct {
		path, accept string
		want         store.Part
	}{
		{collection, "application/json", store.Whole},
		{collection, "application/yaml", store.Whole},
		{collection + "?includeObject=None", "application/json", store.Whole},
		{collection + "?includeObject=Object", acceptTable, store.Whole},
		{collection, acceptTable, store.HeadAlone},
		{collection + "?includeObject=Metadata&limit=1", acceptTable, store.HeadAlone},
		{collection + "?labelSelector=x", acceptTable, store.HeadAlone},
		{collection, acceptPartialList, store.HeadAlone},
		{"/api/v1/configmaps", strings.Replace(acceptPartialList, "json", "vnd.kubernetes.protobuf", 1), store.HeadAlone},
		{collection + "?includeObject=None", acceptTable, store.BriefAlone},
		{"/api/v1/namespaces?includeObject=None", acceptTable, store.Whole},
	} {
		parts = nil
		a.must(200, "GET", c.path, "", "Accept", c.accept)
		if len(parts) != 1 || parts[0] != c.want {
			t.Errorf("%s as %s read %v, want %v", c.path, c.accept, parts, c.want)
		}
	}
	parts = nil
	a.must(200, "DELETE", collection, "", "Accept", acceptTable)
	if len(parts) != 1 || parts[0] != store.Whole {
		t.Errorf("a deletion read %v", parts)
	}
}

// partsSeen notes what lists ask for.
type partsSeen struct {
	store.Store
	parts *[]store.Part
}

func (s *partsSeen) List(ctx context.Context, o store.ListOptions) (store.Page, error) {
	*s.parts = append(*s.parts, o.Part)
	return s.Store.List(ctx, o)
}

// What a list says of an object is what the object, read alone and whole, is shown
// as: short or long, with long metadata, after it was changed, and in a state of the
// past.
func TestListsThatLeaveOutContentsAgreeWithTheObjects(t *testing.T) {
	const note = `,"annotations":{"note":"%s"},"labels":{"a":"b"}`
	a := start(t)
	long := strings.Repeat("x", 6000)
	bodies := map[string]string{
		"empty":         `{"metadata":{"name":"empty"%s}}`,
		"short":         `{"metadata":{"name":"short"%s},"data":{"a":"1","b":"\"}}{"},"binaryData":{"c":"AAAA"}}`,
		"long":          `{"metadata":{"name":"long"%s},"immutable":false,"data":{"a":"` + long + `","b":""}}`,
		"long-metadata": `{"metadata":{"name":"long-metadata"%s},"data":{"a":"` + long + `"},"binaryData":{"c":"AAAA"}}`,
	}
	for name, body := range bodies {
		a.must(201, "POST", collection, fmt.Sprintf(body, ""), "Content-Type", "application/json")
		text := "short"
		if name == "long-metadata" {
			text = long
		}
		a.must(200, "PATCH", collection+"/"+name, fmt.Sprintf(`{"metadata":{`+note[1:]+`}}`, text), "Content-Type", "application/merge-patch+json")
	}
	whole := a.must(200, "GET", collection, "").list
	if len(whole.Items) != len(bodies) {
		t.Fatalf("%d objects", len(whole.Items))
	}
	rows, partials := map[string]map[string]any{}, map[string]any{} // by includeObject, of each object
	for _, include := range []string{"", "Metadata", "Object", "None"} {
		rows[include] = map[string]any{}
		for name := range bodies {
			r := a.must(200, "GET", collection+"/"+name+"?includeObject="+include, "", "Accept", acceptTable)
			rows[include][name] = decodedJSON(t, r.body)["rows"].([]any)[0]
		}
	}
	for name := range bodies {
		r := a.must(200, "GET", collection+"/"+name, "", "Accept", strings.Replace(acceptPartialList, "List;", ";", 1))
		partials[name] = decodedJSON(t, r.body)
	}
	version := whole.ResourceVersion
	check := func(query string) {
		t.Helper()
		for include, want := range rows {
			table := decodedJSON(t, a.must(200, "GET", collection+query+"&includeObject="+include, "", "Accept", acceptTable).body)
			for i, row := range table["rows"].([]any) {
				if name := whole.Items[i].Name; !reflect.DeepEqual(row, want[name]) {
					t.Errorf("%s as row with %q in %s:\n got %v\nwant %v", name, include, query, row, want[name])
				}
			}
		}
		list := decodedJSON(t, a.must(200, "GET", collection+query, "", "Accept", acceptPartialList).body)
		for i, item := range list["items"].([]any) {
			if name := whole.Items[i].Name; !reflect.DeepEqual(item, partials[name]) {
				t.Errorf("%s as metadata in %s:\n got %v\nwant %v", name, query, item, partials[name])
			}
		}
	}
	check("?x=1")
	a.must(200, "DELETE", collection+"/long", "")
	a.must(200, "DELETE", collection+"/short", "")
	check("?resourceVersionMatch=Exact&resourceVersion=" + version)
}

func decodedJSON(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Metadata that are long themselves are not kept at hand.
func TestTheHeadOfARecordIsShort(t *testing.T) {
	a := start(t)
	for _, c := range []struct {
		note int
		kept bool
	}{{10, true}, {3 << 10, true}, {4 << 10, false}, {100 << 10, false}} {
		name := fmt.Sprint("n", c.note)
		a.must(201, "POST", collection, fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"note":%q}},"data":{"a":"","b":""}}`, name, strings.Repeat("x", c.note)),
			"Content-Type", "application/json")
		rec, err := a.store.Get(t.Context(), store.Key("configmaps/default/"+name), 0)
		if err != nil {
			t.Fatal(err)
		}
		b := rec.Brief
		if head := string(rec.Value[:b.Head]); (b.Head > 0) != c.kept || b.Head > 4<<10 || c.kept && !json.Valid([]byte(head+"}")) {
			t.Errorf("a note of %d bytes: the head is %q", c.note, head)
		}
		if b.Keys != 2 || !b.Created.Equal(a.noon.Truncate(time.Second)) {
			t.Errorf("a note of %d bytes: %+v", c.note, b)
		}
	}
}
