package server_test

import (
	"encoding/json"
	"testing"

	"example.com/cmctl/pkg/types"
)

const history = flags + "/history"

func TestHistoryTellsWhereEachVersionCameFrom(t *testing.T) {
	a := start(t)
	was := a.must(201, "POST", collection+"?fieldManager=ada", flagsBody("", `{"mode":"blue"}`), "Cmctl-Write-Id", "w 1")
	a.must(200, "PUT", flags, flagsBody(was.version(), `{"mode":"green"}`), "User-Agent", "kubectl/v1.37 (linux)")
	a.must(201, "POST", collection, `{"metadata":{"name":"other"}}`)
	a.must(200, "DELETE", flags, "", "User-Agent", "cleaner")
	now := a.create()

	var h types.HistoryList
	if err := json.Unmarshal([]byte(a.must(200, "GET", history, "").body), &h); err != nil {
		t.Fatal(err)
	}
	if h.Kind != "ConfigMapHistory" || h.APIVersion != "v1" || h.Metadata != (types.HistoryMeta{Name: "flags", Namespace: "default", ResourceVersion: "5"}) {
		t.Errorf("got %+v", h)
	}
	at := types.HistoryTime{Time: a.noon}
	want := []types.HistoryEntry{
		{ResourceVersion: "5", UID: now.object.UID, Verb: "create", FieldManager: "Go-http-client", Time: at},
		{ResourceVersion: "4", Verb: "delete", FieldManager: "cleaner", Time: at, Deleted: true},
		{ResourceVersion: "2", UID: was.object.UID, Verb: "update", FieldManager: "kubectl", Time: at},
		{ResourceVersion: "1", UID: was.object.UID, Verb: "create", FieldManager: "ada", Time: at, WriteID: "w 1"},
	}
	if len(h.Items) != len(want) {
		t.Fatalf("got %+v", h.Items)
	}
	for i := range want {
		if h.Items[i] != want[i] {
			t.Errorf("entry %d is %+v, want %+v", i, h.Items[i], want[i])
		}
	}

	if r := a.must(200, "GET", history+"?resourceVersion=1", ""); r.body != was.body {
		t.Errorf("version 1 is\n%s, want\n%s", r.body, was.body)
	}
	isStatus(t, a.do("GET", history+"?resourceVersion=4", ""), 404, "NotFound", "was deleted in resourceVersion 4")
	isStatus(t, a.do("GET", history+"?resourceVersion=3", ""), 404, "NotFound", "has no resourceVersion 3")
	isStatus(t, a.do("GET", history+"?resourceVersion=99", ""), 504, "Timeout", "Too large resource version")
	isStatus(t, a.do("GET", history+"?resourceVersion=x", ""), 400, "BadRequest", "x")
	isStatus(t, a.do("DELETE", history, ""), 405, "MethodNotAllowed", "")
	r := a.do("GET", collection+"/nope/history", "")
	isStatus(t, r, 404, "NotFound", `configmaps "nope" not found`)
	if r.status.Details.Name != "nope" {
		t.Errorf("details %+v", r.status.Details)
	}
}

func TestHistoryOfWhatIsDeleted(t *testing.T) {
	a := start(t)
	was := a.create()
	a.must(200, "DELETE", flags, "")
	if r := a.must(200, "GET", history+"?resourceVersion="+was.version(), ""); r.body != was.body {
		t.Errorf("got %s", r.body)
	}
}

func TestHistoryThatIsNoLongerKept(t *testing.T) {
	a := start(t)
	version := a.create().version()
	for i := range 20 {
		version = a.must(200, "PUT", flags, flagsBody(version, `{"n":"`+string(rune('a'+i))+`"}`)).version()
	}
	if err := a.store.Compact(t.Context(), a.store.State().Current); err != nil {
		t.Fatal(err)
	}
	isStatus(t, a.do("GET", history+"?resourceVersion=1", ""), 410, "Expired", "no longer kept at resourceVersion 1")
}
