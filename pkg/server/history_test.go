package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server"
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
		{ResourceVersion: "4", UID: was.object.UID, Verb: "delete", FieldManager: "cleaner", Time: at, Deleted: true},
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
	// Of what never was there is no version either; one to come may yet be.
	isStatus(t, a.do("GET", collection+"/nope/history?resourceVersion=3", ""), 404, "NotFound", `configmaps "nope" not found`)
	isStatus(t, a.do("GET", collection+"/nope/history?resourceVersion=99", ""), 504, "Timeout", "Too large resource version")
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
	isStatus(t, a.do("GET", history+"?resourceVersion=1", ""), 410, "Expired", "has no resourceVersion 1 here: a compaction or a restore may have taken it; kept of it are ")
	// Older than any state that can be read, but kept.
	if r := a.must(200, "GET", history+"?resourceVersion=12", ""); r.version() != "12" || r.object.Data["n"] != "k" {
		t.Errorf("got %s", r.body)
	}

	a.must(200, "DELETE", flags, "")
	if err := a.store.Compact(t.Context(), a.store.State().Current); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{history, history + "?resourceVersion=12", history + "?resourceVersion=22"} {
		isStatus(t, a.do("GET", path, ""), 404, "NotFound", `configmaps "flags" not found`)
	}
}

// What was deleted a moment ago can still be read, though the states that it was in are
// given up.
func TestHistoryOfWhatWasDeletedSurvivesCompaction(t *testing.T) {
	a := start(t, func(o *server.Options) { o.Clock = time.Now })
	was := a.create()
	a.must(200, "DELETE", flags, "")
	if err := a.store.Compact(t.Context(), a.store.State().Current); err != nil {
		t.Fatal(err)
	}
	isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
	if list := a.must(200, "GET", collection, ""); len(list.list.Items) != 0 {
		t.Errorf("got %s", list.body)
	}
	if r := a.must(200, "GET", history, ""); !strings.Contains(r.body, `"deleted":true`) {
		t.Errorf("got %s", r.body)
	}
	if r := a.must(200, "GET", history+"?resourceVersion="+was.version(), ""); r.body != was.body {
		t.Errorf("got %s", r.body)
	}
}

// Values that are long enough to be kept apart from their history.
func TestHistoryOfLargeObjects(t *testing.T) {
	a := start(t)
	long := strings.Repeat("x", 100_000)
	var was []result
	for version := ""; len(was) < 3; version = was[len(was)-1].version() {
		body := flagsBody(version, fmt.Sprintf(`{"long":%q,"n":"%d"}`, long, len(was)))
		if version == "" {
			was = append(was, a.must(201, "POST", collection, body))
		} else {
			was = append(was, a.must(200, "PUT", flags, body))
		}
	}
	var h types.HistoryList
	if err := json.Unmarshal([]byte(a.must(200, "GET", history, "").body), &h); err != nil {
		t.Fatal(err)
	}
	if len(h.Items) != len(was) {
		t.Fatalf("got %+v", h.Items)
	}
	for i, entry := range h.Items {
		want := was[len(was)-1-i]
		if entry.ResourceVersion != want.version() || entry.UID != want.object.UID {
			t.Errorf("entry %d is %+v", i, entry)
		}
		if r := a.must(200, "GET", history+"?resourceVersion="+want.version(), ""); r.body != want.body {
			t.Errorf("version %s has %d bytes, want %d", want.version(), len(r.body), len(want.body))
		}
	}
}

func TestAnObjectNamedHistory(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection, named("history"))
	table := []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}
	if r := a.must(200, "GET", collection+"/history", "", table...); !strings.Contains(r.body, `"kind":"Table"`) {
		t.Errorf("got %s", r.body)
	}
	isStatus(t, a.do("GET", collection+"/history/history", "", table...), 406, "NotAcceptable", "")
	a.must(200, "GET", collection+"/history/history", "")
}
