package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

func TestAListReadsOneNamespaceOrAll(t *testing.T) {
	c := connect(t, client.TargetOptions{Server: listen(t, realAPI(t))}, client.Options{})
	for _, ns := range []string{"team-a", "team-b"} {
		mustCreate(t, c.ConfigMaps(ns), types.NewDocument(ns, "flags"))
	}
	last := mustCreate(t, c.ConfigMaps("team-b"), types.NewDocument("team-b", "more"))
	for ns, want := range map[string]int{"team-a": 1, "team-b": 2, "team-c": 0, "": 3} {
		list, err := c.ConfigMaps(ns).List(t.Context(), client.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want || list.ResourceVersion != last.ResourceVersion() {
			t.Errorf("namespace %q: %d items at version %s, want %d at %s", ns, len(list.Items), list.ResourceVersion, want, last.ResourceVersion())
		}
		for _, d := range list.Items {
			if d.Kind() != "ConfigMap" || d.APIVersion() != "v1" || d.ResourceVersion() == "" {
				t.Errorf("an item is not complete: %v", d)
			}
		}
	}
}

func TestAListOfManyPagesIsWhole(t *testing.T) {
	const n = 1201
	api := record(realAPI(t))
	m := mapsOf(t, api)
	for i := range n {
		mustCreate(t, m, types.NewDocument(namespace, fmt.Sprintf("cm-%04d", i)))
	}
	list, err := m.List(t.Context(), client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pages := len(api.sent(http.MethodGet)); pages != 3 {
		t.Errorf("%d pages were read, want 3", pages)
	}
	for i := range n {
		if want := fmt.Sprintf("cm-%04d", i); i >= len(list.Items) || list.Items[i].Name() != want {
			t.Fatalf("of %d items, number %d is not %s", len(list.Items), i, want)
		}
	}
}

// pager answers with two pages of one item each. The second has expired as
// often as it says.
func pager(t *testing.T, expired int) *recorded {
	return record(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		token := r.URL.Query().Get("continue")
		if token != "" && expired > 0 {
			expired--
			w.WriteHeader(http.StatusGone)
			_, _ = w.Write([]byte(`{"kind":"Status","status":"Failure","reason":"Expired","code":410}`))
			return
		}
		meta := map[string]any{"resourceVersion": "7"}
		name := "second"
		if token == "" {
			name, meta["continue"] = "first", "token"
		}
		page := map[string]any{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta,
			"items": []any{map[string]any{"metadata": map[string]any{"name": name}}}}
		if err := json.NewEncoder(w).Encode(page); err != nil {
			t.Error(err)
		}
	}))
}

func TestAListThatExpiresBetweenPagesBeginsAnew(t *testing.T) {
	for expired, want := range map[int]struct {
		requests int
		ok       bool
	}{
		0: {2, true},
		1: {4, true},
		2: {6, true},
		3: {6, false},
	} {
		t.Run(strconv.Itoa(expired), func(t *testing.T) {
			server := pager(t, expired)
			list, err := mapsOf(t, server).List(t.Context(), client.ListOptions{})
			if n := len(server.sent(http.MethodGet)); n != want.requests {
				t.Errorf("%d requests, want %d", n, want.requests)
			}
			switch {
			case want.ok && (err != nil || len(list.Items) != 2):
				t.Errorf("got %v, %v; want two items", list, err)
			case !want.ok && (!apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "no consistent list")):
				t.Errorf("got %v, want the Expired, and that the list is not consistent", err)
			}
		})
	}
}

func TestAListOfLargeObjectsIsReadInSmallerPages(t *testing.T) {
	api := realAPI(t)
	var limits []string
	m := mapsOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			limit := r.URL.Query().Get("limit")
			limits = append(limits, limit)
			if limit != "5" {
				w.Header().Set("Content-Length", "100000000") // and it is not read
				return
			}
		}
		api.ServeHTTP(w, r)
	}))
	for i := range 7 {
		mustCreate(t, m, types.NewDocument(namespace, fmt.Sprintf("cm-%d", i)))
	}
	list, err := m.List(t.Context(), client.ListOptions{})
	if err != nil || len(list.Items) != 7 {
		t.Errorf("got %v, %v", list, err)
	}
	if want := []string{"500", "50", "5", "5"}; !slices.Equal(limits, want) {
		t.Errorf("the pages were of %v, want %v", limits, want)
	}
}

func TestAListWithoutEndIsNoList(t *testing.T) {
	m := mapsOf(t, stub(200, "application/json", `{"kind":"ConfigMapList","metadata":{"continue":"again"},"items":[]}`))
	if _, err := m.List(t.Context(), client.ListOptions{}); err == nil {
		t.Error("a page that leads to itself was followed to its end")
	}
}

func TestAListMayHoldNothing(t *testing.T) {
	for name, body := range map[string]string{
		"null":   `{"kind":"ConfigMapList","metadata":{"resourceVersion":"7"},"items":null}`,
		"absent": `{"kind":"ConfigMapList","metadata":{"resourceVersion":"7"}}`,
	} {
		list, err := mapsOf(t, stub(200, "application/json", body)).List(t.Context(), client.ListOptions{})
		if err != nil || len(list.Items) != 0 || list.ResourceVersion != "7" {
			t.Errorf("%s: got %v, %v", name, list, err)
		}
	}
}

// A version of anything tells at which version an object was then.
func TestVersionAtIsWhatTheObjectHadThen(t *testing.T) {
	m := connect(t, client.TargetOptions{Server: listen(t, realAPI(t))}, client.Options{}).ConfigMaps(namespace)
	before, err := m.List(t.Context(), client.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := m.Create(t.Context(), flags("a", "1"), "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := m.Create(t.Context(), types.NewDocument(namespace, "other"), "")
	if err != nil {
		t.Fatal(err)
	}
	is := retry.Version{UID: made.UID(), ResourceVersion: made.ResourceVersion()}
	for _, c := range []struct {
		name, at string
		want     retry.Version
	}{
		{"before it was made", before.ResourceVersion, retry.Version{}},
		{"its own version", made.ResourceVersion(), is},
		{"the version of another object", other.ResourceVersion(), is},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := m.VersionAt(t.Context(), "flags", c.at); err != nil || got != c.want {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
	if got, err := m.VersionAt(t.Context(), "flags", "900000000000"); !errors.Is(err, client.ErrNotReached) {
		t.Errorf("a version to come: got %v, %v", got, err)
	}
}
