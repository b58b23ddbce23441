package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// run is a ConfigMap without a name.
func run(generateName string) types.Document {
	d := types.NewDocument(namespace, "")
	d.SetMeta("name", nil)
	d.SetMeta("generateName", generateName)
	return d
}

func TestTheServerMakesTheName(t *testing.T) {
	m := mapsOf(t, realAPI(t))
	never := func(types.Document) bool { return false }
	res, err := retry.Create(t.Context(), m.Unnamed("run-"), run("run-"), never, patient())
	if err != nil || !strings.HasPrefix(res.Object.Name(), "run-") || res.Object.Name() == "run-" {
		t.Errorf("%v, %v", res.Object, err)
	}
	for what, d := range map[string]types.Document{
		"a name":               flags("a", "1"),
		"another generateName": run("walk-"),
	} {
		if _, err := m.Unnamed("run-").Create(t.Context(), d, ""); err == nil {
			t.Errorf("%s was let through", what)
		}
	}
}

// Where the answer is lost nobody knows what there is, and nothing is sent again,
// whether the request was carried out or not.
func TestAnUnnamedCreateIsSentOnce(t *testing.T) {
	for name, what := range map[string]loss{"carried out": dropAnswer, "not carried out": dropBefore} {
		t.Run(name, func(t *testing.T) {
			api := &lossy{next: realAPI(t), lose: first(what)}
			m := mapsOf(t, api)
			always := func(types.Document) bool { return true }
			_, err := retry.Create(t.Context(), m.Unnamed("run-"), run("run-"), always, patient())
			var unknown *retry.OutcomeUnknownError
			if !errors.As(err, &unknown) || !strings.Contains(err.Error(), `configmaps "run-*" in namespace "team-a"`) {
				t.Errorf("%v", err)
			}
			if n := api.count.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// An answer that is not the object tells nothing either.
func TestAnUnnamedCreateDemandsTheObject(t *testing.T) {
	for name, body := range map[string]string{
		"no name": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"team-a","resourceVersion":"2"}}`,
		"no JSON": `created`,
	} {
		t.Run(name, func(t *testing.T) {
			m := mapsOf(t, stub(http.StatusCreated, "application/json", body))
			_, err := retry.Create(t.Context(), m.Unnamed("run-"), run("run-"), nil, patient())
			if !errors.As(err, new(*retry.OutcomeUnknownError)) {
				t.Errorf("%v", err)
			}
		})
	}
}
