package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

func TestTheScenario(t *testing.T) {
	m := mapsOf(t, realAPI(t))
	v1 := mustCreate(t, m, flags("a", "0"))
	if v1.UID() == "" || v1.ResourceVersion() == "" || v1.Namespace() != namespace {
		t.Errorf("created %v", v1)
	}
	if _, err := m.Create(t.Context(), flags("a", "0"), ""); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second create: %v", err)
	}
	put := func(from types.Document, value string) (types.Document, error) {
		d := from.Clone()
		d.Set(types.Field{Section: "data", Key: "a"}, value)
		return m.Put(t.Context(), d, "")
	}
	v2, err := put(v1, "A")
	if err != nil || v2.ResourceVersion() == v1.ResourceVersion() || v2.UID() != v1.UID() {
		t.Fatalf("A's put: %v, %v", v2, err)
	}
	if _, err := put(v1, "B"); !apierrors.IsConflict(err) {
		t.Errorf("B's put of the stale version: %v", err)
	}
	if got := value(mustGet(t, m, "flags"), "a"); got != "A" {
		t.Errorf("after the refusal it holds %v", got)
	}
	v3, err := put(mustGet(t, m, "flags"), "B")
	if err != nil {
		t.Fatal(err)
	}
	if list, err := m.List(t.Context(), client.ListOptions{}); err != nil || list.ResourceVersion != v3.ResourceVersion() || len(list.Items) != 1 {
		t.Errorf("the list: %v, %v", list, err)
	}
	if err := m.Delete(t.Context(), "flags", retry.Version{}, ""); err != nil {
		t.Error(err)
	}
	for verb, err := range map[string]error{
		"get":    func() error { _, err := m.Get(t.Context(), "flags"); return err }(),
		"put":    func() error { _, err := put(v3, "C"); return err }(),
		"delete": m.Delete(t.Context(), "flags", retry.Version{}, ""),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s after the delete: %v", verb, err)
		}
	}
}

func TestADeleteIsOfWhatItNames(t *testing.T) {
	m := mapsOf(t, realAPI(t))
	d := mustCreate(t, m, flags("a", "1"))
	for name, v := range map[string]retry.Version{
		"another uid":     {UID: "00000000-0000-4000-8000-000000000000"},
		"another version": {UID: d.UID(), ResourceVersion: "1000000000"},
	} {
		if err := m.Delete(t.Context(), "flags", v, ""); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.Delete(t.Context(), "flags", retry.Version{UID: d.UID(), ResourceVersion: d.ResourceVersion()}, ""); err != nil {
		t.Error(err)
	}
}

func TestADeleteMayAnswerWithTheObject(t *testing.T) {
	m := mapsOf(t, stub(200, "application/json",
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"flags","namespace":"team-a","resourceVersion":"2","finalizers":["x/y"]}}`))
	if err := m.Delete(t.Context(), "flags", retry.Version{}, ""); err != nil {
		t.Error(err)
	}
}

func TestWritesThatCanOnlyGoWrongAreNotSent(t *testing.T) {
	api := record(realAPI(t))
	m := mapsOf(t, api)
	versioned := func(version string) types.Document {
		d := flags("a", "1")
		d.SetMeta("resourceVersion", version)
		return d
	}
	create := func(d types.Document) error { _, err := m.Create(t.Context(), d, ""); return err }
	put := func(d types.Document) error { _, err := m.Put(t.Context(), d, ""); return err }
	for name, err := range map[string]error{
		"a put without a version":      put(flags("a", "1")),
		"a put with an empty version":  put(versioned("")),
		"a put with version 0":         put(versioned("0")),
		"a create with a version":      create(versioned("1")),
		"a create without a name":      create(types.Document{"metadata": map[string]any{"generateName": "x-"}}),
		"a delete of the empty name":   m.Delete(t.Context(), "", retry.Version{}, ""),
		"a put through another object": func() error { _, err := m.Object("other").Put(t.Context(), versioned("1"), ""); return err }(),
	} {
		if err == nil {
			t.Errorf("%s was let through", name)
		}
	}
	if len(api.requests) != 0 {
		t.Errorf("%d requests were sent", len(api.requests))
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	api := record(realAPI(t))
	c := connect(t, client.TargetOptions{Server: listen(t, api)}, client.Options{})
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a%2fb", "/"} {
		for who, m := range map[string]*client.ConfigMaps{"name": c.ConfigMaps(namespace), "namespace": c.ConfigMaps(name)} {
			object := name
			if who == "namespace" {
				object = "flags"
			}
			_, get := m.Get(t.Context(), object)
			_, history := m.History(t.Context(), object)
			d := types.NewDocument("", object)
			_, create := m.Create(t.Context(), d, "")
			for verb, err := range map[string]error{
				"get": get, "create": create, "history": history,
				"delete": m.Delete(t.Context(), object, retry.Version{}, ""),
			} {
				if !apierrors.IsInvalid(err) {
					t.Errorf("%s of the %s %q: %v", verb, who, name, err)
				}
			}
		}
		if name != "" {
			if _, err := c.ConfigMaps(name).List(t.Context(), client.ListOptions{}); !apierrors.IsInvalid(err) {
				t.Errorf("list of namespace %q: %v", name, err)
			}
		}
	}
	if len(api.requests) != 0 {
		t.Errorf("%d requests were sent", len(api.requests))
	}
}

func TestOddNamesAreEscaped(t *testing.T) {
	api := record(realAPI(t))
	m := mapsOf(t, api)
	for _, name := range []string{"a b", "a?b=c", "a#b", "{a}", "ä", "a;b"} {
		_, err := m.Get(t.Context(), name)
		if !apierrors.IsNotFound(err) {
			t.Errorf("%q: %v", name, err)
		}
		sent := api.sent(http.MethodGet)
		if got := sent[len(sent)-1].URL; got.Path != "/api/v1/namespaces/team-a/configmaps/"+name || got.RawQuery != "" {
			t.Errorf("%q was asked for as %s", name, got)
		}
	}
}

func TestRequestsSayWhoSendsThem(t *testing.T) {
	api := record(realAPI(t))
	c := connect(t, client.TargetOptions{Server: listen(t, api)}, client.Options{FieldManager: "cmctl-edit", UserAgent: "cmctl/1.2.3"})
	m := c.ConfigMaps(namespace)
	d, err := m.Create(t.Context(), flags("a", "1"), "id-1")
	if err != nil {
		t.Fatal(err)
	}
	d.Set(types.Field{Section: "data", Key: "a"}, "2")
	if _, err := m.Put(t.Context(), d, "id-2"); err != nil {
		t.Fatal(err)
	}
	if err := m.Delete(t.Context(), "flags", retry.Version{UID: d.UID()}, "id-3"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.List(t.Context(), client.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	for method, id := range map[string]string{"POST": "id-1", "PUT": "id-2", "DELETE": "id-3", "GET": ""} {
		r := api.sent(method)[0]
		manager := "cmctl-edit"
		if method == "GET" {
			manager = ""
		}
		if got := r.URL.Query().Get("fieldManager"); got != manager {
			t.Errorf("%s: fieldManager is %q", method, got)
		}
		for header, want := range map[string]string{
			"Cmctl-Write-Id": id, "User-Agent": "cmctl/1.2.3", "Accept": "application/json", "Idempotency-Key": "",
		} {
			if got := r.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", method, header, got, want)
			}
		}
	}
}

func TestTheDefaultUserAgentNamesTheProgram(t *testing.T) {
	api := record(realAPI(t))
	if _, err := mapsOf(t, api).List(t.Context(), client.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := api.sent("GET")[0].UserAgent(); !strings.HasPrefix(got, "cmctl/") {
		t.Errorf("it is %q", got)
	}
}

func TestNumbersAndUnknownFieldsAreKeptAsTheyAre(t *testing.T) {
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generation":9007199254740993,"name":"flags",` +
		`"namespace":"team-a","novel":{"n":1.50},"resourceVersion":"7"},"novel":[1e2]}`
	var put []byte
	m := mapsOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			var raw json.RawMessage
			if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
				t.Error(err)
			}
			put = raw
		}
		stub(200, "application/json", body).ServeHTTP(w, r)
	}))
	d := mustGet(t, m, "flags")
	if _, err := m.Put(t.Context(), d, ""); err != nil {
		t.Fatal(err)
	}
	if string(put) != body {
		t.Errorf("read %s\nsent %s", body, put)
	}
}

func TestServerVersion(t *testing.T) {
	c := connect(t, client.TargetOptions{Server: listen(t, realAPI(t))}, client.Options{})
	if v, err := c.ServerVersion(t.Context()); err != nil || v.GitVersion != "v9.9.9" {
		t.Errorf("got %v, %v", v, err)
	}
	c = connect(t, client.TargetOptions{Server: listen(t, stub(200, "text/html", "<html>"))}, client.Options{})
	if v, err := c.ServerVersion(t.Context()); !errors.As(err, new(*client.UnexpectedError)) {
		t.Errorf("of a page: got %v, %v", v, err)
	}
}

// A dry run is checked by the server, and nothing is stored.
func TestADryRunStoresNothing(t *testing.T) {
	server := client.TargetOptions{Server: listen(t, realAPI(t))}
	stored := connect(t, server, client.Options{}).ConfigMaps(namespace)
	dry := connect(t, server, client.Options{DryRun: true}).ConfigMaps(namespace)
	ctx := t.Context()
	if _, err := dry.Create(ctx, flags("mode", "blue"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := stored.Get(ctx, "flags"); !apierrors.IsNotFound(err) {
		t.Fatalf("after a dry run of a create: %v", err)
	}
	was := mustCreate(t, stored, flags("mode", "blue"))
	next := was.Clone()
	next.Set(types.Field{Section: "data", Key: "mode"}, "green")
	got, err := dry.Put(ctx, next, "")
	if err != nil || value(got, "mode") != "green" {
		t.Fatalf("a dry run shows what would be stored: %v, %v", got, err)
	}
	if err := dry.Delete(ctx, "flags", retry.Version{}, ""); err != nil {
		t.Fatal(err)
	}
	if now := mustGet(t, stored, "flags"); !now.Equal(was) {
		t.Errorf("after dry runs: %v, was %v", now, was)
	}
}

// What would be refused is, and what would be taken is not stored.
func TestCheckStoresNothing(t *testing.T) {
	m := mapsOf(t, realAPI(t))
	made := mustCreate(t, m, flags("a", "1"))
	o := m.Object("flags")
	current := o.Version(made)
	next := made.Clone()
	next.Set(types.Field{Section: "data", Key: "a"}, "2")
	for name, c := range map[string]struct {
		at       retry.Version
		conflict bool
	}{
		"the current version": {at: current},
		"another version":     {at: retry.Version{UID: current.UID, ResourceVersion: current.ResourceVersion + "1"}, conflict: true},
		"another object":      {at: retry.Version{UID: "u", ResourceVersion: current.ResourceVersion}, conflict: true},
	} {
		if err := o.Check(t.Context(), next, c.at); apierrors.IsConflict(err) != c.conflict || err != nil && !c.conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := mustGet(t, m, "flags"); !now.Equal(made) {
		t.Errorf("stored is %v, want %v", now, made)
	}
}
