package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// withoutHistory is a server that does not know the history of an object, and
// says so with that answer.
func withoutHistory(next, answer http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/history") {
			answer.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// kubernetes is how kube-apiserver answers a path that it does not know.
func kubernetes() http.Handler {
	return stub(404, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
		`"message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`)
}

func TestHistoryTellsWhereVersionsCameFrom(t *testing.T) {
	c := connect(t, client.TargetOptions{Server: listen(t, realAPI(t))}, client.Options{FieldManager: "tester"})
	m := c.ConfigMaps(namespace)
	first, err := m.Create(t.Context(), flags("a", "1"), "id-1")
	if err != nil {
		t.Fatal(err)
	}
	next := first.Clone()
	next.Set(types.Field{Section: "data", Key: "a"}, "2")
	second, err := m.Put(t.Context(), next, "id-2")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Delete(t.Context(), "flags", retry.Version{}, "id-3"); err != nil {
		t.Fatal(err)
	}
	h, err := m.History(t.Context(), "flags")
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Items) != 3 {
		t.Fatalf("got %+v", h.Items)
	}
	// Kubernetes' deletions name no field manager.
	want := []struct{ verb, id, manager string }{
		{"delete", "id-3", h.Items[0].FieldManager}, {"update", "id-2", "tester"}, {"create", "id-1", "tester"},
	}
	for i, e := range h.Items {
		if e.Verb != want[i].verb || e.WriteID != want[i].id || e.FieldManager != want[i].manager || e.Time.IsZero() {
			t.Errorf("entry %d is %+v, want %v", i, e, want[i])
		}
	}

	t.Run("a version is read whole", func(t *testing.T) {
		for want, d := range map[string]types.Document{"1": first, "2": second} {
			old, err := m.At(t.Context(), "flags", d.ResourceVersion())
			if err != nil || !old.Equal(d) || value(old, "a") != want {
				t.Errorf("got %v, %v", old, err)
			}
		}
	})
	t.Run("one that never was is NotFound", func(t *testing.T) {
		if _, err := m.At(t.Context(), "flags", h.Items[0].ResourceVersion); !apierrors.IsNotFound(err) || errors.Is(err, client.ErrNoHistory) {
			t.Errorf("the deletion: %v", err)
		}
	})
	t.Run("none at all is refused", func(t *testing.T) {
		if d, err := m.At(t.Context(), "flags", ""); !apierrors.IsBadRequest(err) {
			t.Errorf("got %v, %v", d, err)
		}
	})
	t.Run("what never was has none", func(t *testing.T) {
		if _, err := m.History(t.Context(), "nope"); !apierrors.IsNotFound(err) || errors.Is(err, client.ErrNoHistory) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNoHistory(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.Handler
		none   bool
	}{
		"kube-apiserver":       {kubernetes(), true},
		"a plain 404":          {http.NotFoundHandler(), true},
		"NotFound of nothing":  {stub(404, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`), true},
		"NotFound of another":  {stub(404, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{"name":"history"}}`), true},
		"Forbidden":            {stub(403, "application/json", `{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"details":{"name":"flags"}}`), false},
		"MethodNotAllowed":     {stub(405, "application/json", `{"kind":"Status","status":"Failure","reason":"MethodNotAllowed","code":405}`), true},
		"NotFound of this":     {stub(404, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{"name":"flags"}}`), false},
		"Expired":              {stub(410, "application/json", `{"kind":"Status","status":"Failure","reason":"Expired","code":410}`), false},
		"a server in trouble":  {stub(500, "application/json", `{"kind":"Status","status":"Failure","reason":"InternalError","code":500}`), false},
		"a gateway in trouble": {stub(502, "text/html", "<html>"), false},
		"a login page":         {stub(200, "text/html", "<html>"), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapsOf(t, c.answer)
			_, list := m.History(t.Context(), "flags")
			_, at := m.At(t.Context(), "flags", "1")
			for verb, err := range map[string]error{"history": list, "at": at} {
				if errors.Is(err, client.ErrNoHistory) != c.none || err == nil {
					t.Errorf("%s: got %v", verb, err)
				}
				if c.none && (apierrors.IsNotFound(err) || !strings.Contains(err.Error(), client.ErrNoHistory.Error())) {
					t.Errorf("%s: %v passes for the absence of the object", verb, err)
				}
			}
		})
	}
}

func TestFindAsksTheHistory(t *testing.T) {
	m := mapsOf(t, realAPI(t))
	made, err := m.Create(t.Context(), flags("a", "1"), "id-1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		object, since string
		id            retry.WriteID
		want          retry.Finding
	}{
		"the create":           {"flags", "", "id-1", retry.Landed},
		"another create":       {"flags", "", "id-2", retry.Absent},
		"a write since":        {"flags", made.ResourceVersion(), "id-2", retry.Absent},
		"what has no history":  {"nope", "", "id-2", retry.NoHistory},
		"an unknown beginning": {"flags", "999999999999", "id-2", retry.NoHistory},
	} {
		if got, err := m.Object(c.object).Find(t.Context(), c.id, c.since); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestFindWaitsForAHistoryThatIsThere(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"429":             stub(429, "text/plain", "later"),
		"500":             stub(500, "application/json", `{"kind":"Status","status":"Failure","reason":"InternalError","code":500}`),
		"502":             stub(502, "text/html", "<html>"),
		"a broken answer": hangUp("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
	} {
		if got, err := mapsOf(t, h).Object("flags").Find(t.Context(), "id-1", "1"); err == nil {
			t.Errorf("%s: got %v without an error", name, got)
		}
	}
	if got, err := mapsOf(t, kubernetes()).Object("flags").Find(t.Context(), "id-1", "1"); err != nil || got != retry.NoHistory {
		t.Errorf("kube-apiserver: got %v, %v", got, err)
	}
}
