package client_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/pkg/client"
)

// counted adds up what a handler answers.
func counted(next http.Handler, size *int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&countingWriter{w, size}, r)
	})
}

type countingWriter struct {
	http.ResponseWriter
	size *int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	*w.size += len(p)
	return w.ResponseWriter.Write(p)
}

func TestNamesMoveNoData(t *testing.T) {
	size := 0
	c := connect(t, client.TargetOptions{Server: listen(t, counted(realAPI(t), &size))}, client.Options{})
	m := c.ConfigMaps(namespace)
	for i := range 3 {
		d := flags("big", strings.Repeat("x", 500<<10))
		d.SetMeta("name", fmt.Sprint("m", i))
		mustCreate(t, m, d)
	}
	size = 0
	names, err := m.Names(t.Context(), 100)
	if err != nil || !slices.Equal(names, []string{"m0", "m1", "m2"}) {
		t.Errorf("got %v, %v", names, err)
	}
	if size == 0 || size > 10<<10 {
		t.Errorf("%d bytes were moved", size)
	}
	if names, err = m.Names(t.Context(), 2); err != nil || !slices.Equal(names, []string{"m0", "m1"}) {
		t.Errorf("up to 2: %v, %v", names, err)
	}
	if names, err = c.Namespaces(t.Context(), 100); err != nil || !slices.Contains(names, namespace) {
		t.Errorf("namespaces: %v, %v", names, err)
	}
}

func TestNamesOfManyPages(t *testing.T) {
	names, err := mapsOf(t, pager(t, 0)).Names(t.Context(), 1000)
	if err != nil || len(names) < 2 {
		t.Errorf("got %v, %v", names, err)
	}
	if _, err := mapsOf(t, stub(200, "application/json", `{"kind":"ConfigMap"}`)).Names(t.Context(), 1); err == nil {
		t.Error("an object passes for a list")
	}
}

// A caller in a hurry takes what there is.
func TestNamesBeforeAnErrorAreKept(t *testing.T) {
	next := stub(500, "text/html", "")
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("continue") {
			next.ServeHTTP(w, r)
			return
		}
		stub(200, "application/json", `{"kind":"PartialObjectMetadataList","metadata":{"continue":"t"},"items":[{"metadata":{"name":"a"}}]}`).ServeHTTP(w, r)
	})
	if names, err := mapsOf(t, front).Names(t.Context(), 10); err == nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("got %v, %v", names, err)
	}
}
