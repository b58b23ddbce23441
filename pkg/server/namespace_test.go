package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// The paths that these tests use.
const (
	namespaces = "/api/v1/namespaces"
	teamA      = namespaces + "/team-a"
	teamAMaps  = teamA + "/configmaps"
)

func strict(o *server.Options) { o.StrictNamespaces = true }

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func gone(a *api, path string) func() bool {
	return func() bool { return a.do("GET", path, "").code == 404 }
}

func TestFirstObjectMakesItsNamespace(t *testing.T) {
	a := begin(t)
	isStatus(t, a.do("GET", teamA, ""), 404, "NotFound", `namespaces "team-a" not found`)
	if r := a.must(200, "GET", teamAMaps, ""); len(r.list.Items) != 0 {
		t.Errorf("an unused namespace holds %s", r.body)
	}
	a.must(201, "POST", teamAMaps+"?dryRun=All", named("flags"))
	isStatus(t, a.do("GET", teamA, ""), 404, "NotFound", "")

	first := a.must(201, "POST", teamAMaps, named("flags"))
	ns := a.must(200, "GET", teamA, "").space
	if ns.ResourceVersion != first.version() {
		t.Errorf("the namespace has version %s, its first object %s", ns.ResourceVersion, first.version())
	}
	if ns.UID == "" || ns.UID == first.object.UID || ns.CreationTimestamp.IsZero() || ns.Status.Phase != "Active" ||
		ns.Labels["kubernetes.io/metadata.name"] != "team-a" || len(ns.Spec.Finalizers) != 1 {
		t.Errorf("namespace %+v", ns)
	}
	a.must(201, "POST", teamAMaps, named("other"))
	a.must(200, "DELETE", teamAMaps, "")
	if again := a.must(200, "GET", teamA, "").space; again.UID != ns.UID || again.ResourceVersion != ns.ResourceVersion {
		t.Errorf("an emptied namespace became %+v", again)
	}
}

func TestNamespaceThatIsNoName(t *testing.T) {
	a := begin(t)
	isStatus(t, a.do("POST", namespaces+"/Team_A/configmaps", named("flags")), 422, "Invalid", "metadata.namespace")
	if r := a.must(200, "GET", namespaces, ""); len(r.spaces.Items) != 3 {
		t.Errorf("namespaces %s", r.body)
	}
}

func TestSystemNamespaces(t *testing.T) {
	a := begin(t)
	list := a.must(200, "GET", namespaces, "").spaces
	var names []string
	for _, ns := range list.Items {
		names = append(names, ns.Name)
	}
	if want := []string{"default", "kube-public", "kube-system"}; !slices.Equal(names, want) || list.ResourceVersion != "1" {
		t.Errorf("namespaces %v at %s", names, list.ResourceVersion)
	}
	for _, name := range names {
		isStatus(t, a.do("DELETE", namespaces+"/"+name, ""), 403, "Forbidden",
			fmt.Sprintf("namespaces %q is forbidden: this namespace may not be deleted", name))
	}
	isStatus(t, a.do("DELETE", namespaces, ""), 405, "MethodNotAllowed", "")
}

func TestSystemNamespacesKeepTheirIdentityOverARestart(t *testing.T) {
	st, err := local.Open(local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for range 2 {
		s := server.New(server.Options{Store: st})
		if err := s.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.Stop()
	}
	if now := st.State().Current; now != 1 {
		t.Errorf("the store is at %d, want 1: the second start must write nothing", now)
	}
}

// Stores of releases that had no namespaces hold objects only.
func TestStartMakesTheNamespacesOfWhatIsStored(t *testing.T) {
	a := start(t)
	for _, ns := range []string{"a", "a-b", "b"} {
		for _, name := range []string{"x", "y"} {
			if _, err := a.store.Commit(t.Context(), store.Txn{Writes: []store.Record{{
				Key: store.Key("configmaps/" + ns + "/" + name), Value: []byte(`{"metadata":{"name":"x"}}`), VersionAt: 13,
			}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := a.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := a.must(200, "GET", namespaces, "").spaces
	var names []string
	for _, ns := range list.Items {
		names = append(names, ns.Name)
		if ns.ResourceVersion != "7" {
			t.Errorf("%s has version %s, want all in one", ns.Name, ns.ResourceVersion)
		}
	}
	if want := []string{"a", "a-b", "b", "default", "kube-public", "kube-system"}; !slices.Equal(names, want) {
		t.Errorf("namespaces %v, want %v", names, want)
	}
}

func TestNamespaceVerbs(t *testing.T) {
	a := begin(t)
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a"%s}}`
	made := a.must(201, "POST", namespaces, fmt.Sprintf(body, ""))
	if made.space.Status.Phase != "Active" || made.space.Namespace != "" {
		t.Errorf("created %s", made.body)
	}
	isStatus(t, a.do("POST", namespaces, fmt.Sprintf(body, "")), 409, "AlreadyExists", `namespaces "team-a" already exists`)
	isStatus(t, a.do("POST", namespaces, `{"metadata":{"name":"a.b"}}`), 422, "Invalid", "metadata.name")
	isStatus(t, a.do("POST", namespaces, `{"metadata":{"name":"b"},"spec":{"finalizers":["c"]}}`), 422, "Invalid", "spec.finalizers")
	if r := a.must(201, "POST", namespaces+"?dryRun=All", `{"metadata":{"name":"b","namespace":"c"}}`); r.space.Namespace != "" {
		t.Errorf("in a namespace: %s", r.body)
	}
	isStatus(t, a.do("PUT", teamA, fmt.Sprintf(body, "")), 400, "BadRequest", "update requires metadata.resourceVersion")
	isStatus(t, a.do("PUT", teamA, fmt.Sprintf(body, `,"resourceVersion":"1"`)), 409, "Conflict", "")
	labelled := a.must(200, "PUT", teamA, fmt.Sprintf(body, `,"labels":{"team":"a"},"resourceVersion":"`+made.space.ResourceVersion+`"`))
	if l := labelled.space.Labels; l["team"] != "a" || l["kubernetes.io/metadata.name"] != "team-a" ||
		labelled.space.Status.Phase != "Active" || labelled.space.UID != made.space.UID {
		t.Errorf("labelled %s", labelled.body)
	}
	found := a.must(200, "GET", namespaces+"?labelSelector=team%3Da", "").spaces
	if len(found.Items) != 1 || found.Items[0].Name != "team-a" {
		t.Errorf("found %+v", found)
	}
}

func TestStrictNamespaces(t *testing.T) {
	a := begin(t, strict)
	isStatus(t, a.do("POST", teamAMaps, named("flags")), 404, "NotFound", `namespaces "team-a" not found`)
	a.must(201, "POST", collection, named("flags"))
	a.must(201, "POST", namespaces, `{"metadata":{"name":"team-a"}}`)
	a.must(201, "POST", teamAMaps, named("flags"))
}

func TestDeletedNamespaceTakesItsContentsAlong(t *testing.T) {
	a := begin(t)
	for i := range 3 {
		a.must(201, "POST", teamAMaps, named(fmt.Sprintf("m%d", i)))
	}
	a.must(201, "POST", namespaces+"/team-a2/configmaps", named("kept"))
	old := a.must(200, "GET", teamA, "").space
	before := a.store.State().Current

	isStatus(t, a.do("DELETE", teamA, `{"preconditions":{"uid":"another"}}`), 409, "Conflict", `namespaces "team-a"`)
	if r := a.must(200, "DELETE", teamA+"?dryRun=All", ""); r.space.Status.Phase != "Terminating" {
		t.Errorf("dry run %s", r.body)
	}
	r := a.must(200, "DELETE", teamA, "")
	if r.space.Status.Phase != "Terminating" || r.space.DeletionTimestamp == nil {
		t.Errorf("deleted %s", r.body)
	}
	eventually(t, "the namespace is gone", gone(a, teamA))
	if r := a.must(200, "GET", teamAMaps, ""); len(r.list.Items) != 0 {
		t.Errorf("left in it: %s", r.body)
	}
	// Marked, three objects, and the namespace itself.
	if now := a.store.State().Current; now != before+5 {
		t.Errorf("it took %d revisions, want 5", now-before)
	}
	a.must(200, "GET", namespaces+"/team-a2/configmaps/kept", "")

	a.must(201, "POST", teamAMaps, named("m0"))
	if again := a.must(200, "GET", teamA, "").space; again.UID == old.UID {
		t.Error("made anew, the namespace has its old uid")
	}
}

func TestTerminatingNamespaceTakesNothingNew(t *testing.T) {
	a := begin(t)
	held := `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`
	a.must(201, "POST", teamAMaps, held)
	a.must(201, "POST", teamAMaps, named("loose"))
	a.must(200, "DELETE", teamA, "")
	eventually(t, "what nothing holds is gone", gone(a, teamAMaps+"/loose"))

	r := a.do("POST", teamAMaps, named("new"))
	isStatus(t, r, 403, "Forbidden", `configmaps "new" is forbidden: unable to create new content in namespace team-a because it is being terminated`)
	if d := r.status.Details; d == nil || d.Name != "new" || d.Kind != "configmaps" || len(d.Causes) != 1 ||
		d.Causes[0].Type != "NamespaceTerminating" || d.Causes[0].Field != "metadata.namespace" {
		t.Errorf("details %+v", d)
	}
	isStatus(t, a.do("POST", namespaces, `{"metadata":{"name":"team-a"}}`), 409, "AlreadyExists", "object is being deleted")
	if r := a.must(200, "DELETE", teamA, ""); r.space.Status.Phase != "Terminating" {
		t.Errorf("deleted again: %s", r.body)
	}

	waiting := a.must(200, "GET", teamAMaps+"/held", "")
	if waiting.object.DeletionTimestamp == nil {
		t.Errorf("held: %s", waiting.body)
	}
	a.must(200, "PUT", teamAMaps+"/held", `{"metadata":{"name":"held","resourceVersion":"`+waiting.version()+`"}}`)
	eventually(t, "the namespace is gone", gone(a, teamA))
}

func TestNamespaceWaitsForItsOwnFinalizers(t *testing.T) {
	a := begin(t)
	a.must(201, "POST", namespaces, `{"metadata":{"name":"team-a","finalizers":["example.com/hold"]}}`)
	a.must(201, "POST", teamAMaps, named("flags"))
	a.must(200, "DELETE", teamA, "")
	var version string
	eventually(t, "it is emptied and waits", func() bool {
		ns := a.must(200, "GET", teamA, "").space
		version = ns.ResourceVersion
		return len(ns.Spec.Finalizers) == 0
	})
	a.must(200, "PUT", teamA, `{"metadata":{"name":"team-a","resourceVersion":"`+version+`"}}`)
	eventually(t, "the namespace is gone", gone(a, teamA))
}

func TestNamespaceWaitsForFinalizersInItsSpec(t *testing.T) {
	a := begin(t)
	a.must(201, "POST", namespaces, `{"metadata":{"name":"team-a"},"spec":{"finalizers":["example.com/hold"]}}`)
	a.must(201, "POST", teamAMaps, `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`)
	a.must(200, "DELETE", teamA, "")
	finalize := func(finalizers string) result {
		version := a.must(200, "GET", teamA, "").space.ResourceVersion
		return a.do("PUT", teamA+"/finalize", `{"metadata":{"name":"team-a","resourceVersion":"`+version+`"},"spec":{"finalizers":`+finalizers+`}}`)
	}
	eventually(t, "the object waits", func() bool { return a.do("GET", teamAMaps+"/held", "").object.DeletionTimestamp != nil })
	// The contents can't be left behind.
	eventually(t, "only the server's finalizer is left", func() bool {
		r := finalize(`[]`)
		return r.code == 200 && len(r.space.Spec.Finalizers) == 1 && r.space.Spec.Finalizers[0] == "kubernetes"
	})
	isStatus(t, finalize(`["!!"]`), 422, "Invalid", "spec.finalizers")
	eventually(t, "another is there", func() bool { return finalize(`["example.com/hold"]`).code == 200 })
	a.must(200, "PATCH", teamAMaps+"/held", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	eventually(t, "it is emptied and waits", func() bool {
		f := a.must(200, "GET", teamA, "").space.Spec.Finalizers
		return len(f) == 1 && f[0] == "example.com/hold"
	})
	if r := finalize(`[]`); r.code != 200 {
		t.Errorf("finalize: %s", r.body)
	}
	eventually(t, "the namespace is gone", gone(a, teamA))
}

// While a namespace is being emptied it goes, and is made anew with an object of the
// same name, as another server of the store could do it. That object is not touched.
func TestANamespaceMadeAnewIsNotEmptied(t *testing.T) {
	a, h := hook(t)
	a.must(201, "POST", teamAMaps, named("flags"))
	a.must(200, "DELETE", teamA, "")
	var once sync.Once
	var renewed atomic.Bool
	looked := make(chan struct{})
	h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
		if txn.Writes[0].Key != "configmaps/team-a/flags" {
			return h.Store.Commit(ctx, txn)
		}
		once.Do(func() {
			if _, err := h.Store.Commit(ctx, store.Txn{Writes: []store.Record{
				{Key: "configmaps/team-a/flags", Deleted: true}, {Key: "namespaces/team-a", Deleted: true},
			}}); err != nil {
				t.Error(err)
			}
			other := server.New(server.Options{Store: h.Store})
			w := httptest.NewRecorder()
			other.Handler().ServeHTTP(w, httptest.NewRequest("POST", teamAMaps, strings.NewReader(named("flags"))))
			if w.Code != 201 {
				t.Errorf("made anew: %d %s", w.Code, w.Body)
			}
			renewed.Store(true)
		})
		return h.Store.Commit(ctx, txn)
	}
	h.get = func(ctx context.Context, key store.Key) (store.Record, error) {
		if key == "namespaces/team-a" && renewed.CompareAndSwap(true, false) {
			defer close(looked)
		}
		return h.Store.Get(ctx, key, 0)
	}
	follow := server.New(server.Options{Store: h})
	if err := follow.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer follow.Stop()
	select {
	case <-looked: // at the new namespace, after whatever it did
	case <-time.After(20 * time.Second):
		t.Fatal("the reaper does not look again")
	}
	a.must(200, "GET", teamAMaps+"/flags", "")
	if r := a.must(200, "GET", teamA, ""); r.space.Status.Phase != "Active" {
		t.Errorf("the new namespace is %s", r.body)
	}
}

// What was left to do when the server stopped is in the store.
func TestTerminationGoesOnAfterARestart(t *testing.T) {
	a := start(t) // without Start nobody empties anything
	a.must(201, "POST", teamAMaps, named("flags"))
	a.must(200, "DELETE", teamA, "")
	a.must(200, "GET", teamAMaps+"/flags", "")
	if err := a.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", gone(a, teamA))
	isStatus(t, a.do("GET", teamAMaps+"/flags", ""), 404, "NotFound", "")
}

// A namespace that is deleted between a create's look at it and its commit takes
// nothing in any more.
func TestCreateThatLosesItsNamespaceAtTheLastMoment(t *testing.T) {
	for name, c := range map[string]struct{ method, path, body, kind string }{
		"create": {"POST", teamAMaps, named("new"), "application/json"},
		"apply": {"PATCH", teamAMaps + "/new?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}`,
			"application/apply-patch+yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			a, h := hook(t)
			a.must(201, "POST", teamAMaps, named("first"))
			h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
				h.commit = nil
				a.must(200, "DELETE", teamA, "")
				return h.Store.Commit(ctx, txn)
			}
			isStatus(t, a.do(c.method, c.path, c.body, "Content-Type", c.kind), 403, "Forbidden", "it is being terminated")
			isStatus(t, a.do("GET", teamAMaps+"/new", ""), 404, "NotFound", "")
		})
	}
}

// Two first objects of a namespace make it once.
func TestCreatesThatMakeTheSameNamespace(t *testing.T) {
	a, h := hook(t)
	h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
		h.commit = nil
		a.must(201, "POST", teamAMaps, named("first"))
		return h.Store.Commit(ctx, txn)
	}
	second := a.must(201, "POST", teamAMaps, named("second"))
	first := a.must(200, "GET", teamAMaps+"/first", "")
	if ns := a.must(200, "GET", teamA, "").space; ns.ResourceVersion != first.version() || ns.ResourceVersion == second.version() {
		t.Errorf("namespace at %s, first object at %s, second at %s", ns.ResourceVersion, first.version(), second.version())
	}
}

// However creates and a deletion of their namespace meet: no object is ever in
// a namespace that does not exist.
func TestCreatesRaceTheDeletionOfTheirNamespace(t *testing.T) {
	a := begin(t)
	for round := range 20 {
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := range 5 {
					name := fmt.Sprintf("m%d-%d-%d", round, w, i)
					if r := a.do("POST", teamAMaps, named(name)); r.code != 201 && r.code != 403 {
						t.Errorf("create: %d %s", r.code, r.body)
					}
				}
			})
		}
		writers.Go(func() { a.do("DELETE", teamA, "") })
		writers.Wait()
	}
	if a.do("GET", teamA, "").code == 200 {
		a.do("DELETE", teamA, "")
	}
	eventually(t, "the namespace is gone", gone(a, teamA))
	if r := a.must(200, "GET", teamAMaps, ""); len(r.list.Items) != 0 {
		t.Errorf("objects without a namespace: %s", r.body)
	}
}
