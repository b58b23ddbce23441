package client_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apitypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/client"
)

func TestAPatchOfEachType(t *testing.T) {
	for _, c := range []struct {
		patchType apitypes.PatchType
		body      string
	}{
		{apitypes.JSONPatchType, `[{"op":"replace","path":"/data/a","value":"2"}]`},
		{apitypes.MergePatchType, `{"data":{"a":"2"}}`},
		{apitypes.StrategicMergePatchType, `{"data":{"a":"2"}}`},
		{apitypes.ApplyYAMLPatchType, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flags}\ndata: {a: '2'}\n"},
	} {
		t.Run(string(c.patchType), func(t *testing.T) {
			r := record(realAPI(t))
			m := connect(t, client.TargetOptions{Server: listen(t, r)}, client.Options{FieldManager: "tests"}).ConfigMaps(namespace)
			v1 := mustCreate(t, m, flags("a", "1"))
			o := client.PatchOptions{Force: c.patchType == apitypes.ApplyYAMLPatchType}
			got, err := m.Patch(t.Context(), "flags", c.patchType, []byte(c.body), o, "id-1")
			if err != nil {
				t.Fatal(err)
			}
			if value(got, "a") != "2" || got.UID() != v1.UID() || got.ResourceVersion() == v1.ResourceVersion() {
				t.Errorf("patched is %v", got)
			}
			sent := r.sent("PATCH")[0]
			if sent.Header.Get("Content-Type") != string(c.patchType) || sent.Header.Get("Cmctl-Write-Id") != "id-1" || sent.URL.Query().Get("fieldManager") != "tests" {
				t.Errorf("sent %v to %v", sent.Header, sent.URL)
			}
		})
	}
}

func TestAPatchIsOfTheVersionThatItNames(t *testing.T) {
	m := mapsOf(t, realAPI(t))
	mustCreate(t, m, flags("a", "1"))
	_, err := m.Patch(t.Context(), "flags", apitypes.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1000000000"},"data":{"a":"2"}}`), client.PatchOptions{}, "")
	if !apierrors.IsConflict(err) || len(client.ManagerConflicts(err)) > 0 {
		t.Errorf("a stale version: %v", err)
	}
	if got := value(mustGet(t, m, "flags"), "a"); got != "1" {
		t.Errorf("after the refusal it holds %v", got)
	}
}

func TestAPatchOfNothing(t *testing.T) {
	m := connect(t, client.TargetOptions{Server: listen(t, realAPI(t))}, client.Options{FieldManager: "tests"}).ConfigMaps(namespace)
	if _, err := m.Patch(t.Context(), "flags", apitypes.MergePatchType, []byte(`{}`), client.PatchOptions{}, ""); !apierrors.IsNotFound(err) {
		t.Errorf("a merge patch: %v", err)
	}
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"a":"1"}}`)
	if made, err := m.Patch(t.Context(), "flags", apitypes.ApplyYAMLPatchType, body, client.PatchOptions{}, ""); err != nil || made.UID() == "" {
		t.Errorf("an apply: %v, %v", made, err)
	}
}

func TestAnApplyNeedsAFieldManager(t *testing.T) {
	r := record(realAPI(t))
	m := mapsOf(t, r)
	if _, err := m.Patch(t.Context(), "flags", apitypes.ApplyYAMLPatchType, []byte(`{}`), client.PatchOptions{}, ""); err == nil || len(r.sent("PATCH")) > 0 {
		t.Errorf("without one: %v", err)
	}
}

func TestAnApplyNamesWhoOwnsTheField(t *testing.T) {
	url := listen(t, realAPI(t))
	as := func(manager string) *client.ConfigMaps {
		return connect(t, client.TargetOptions{Server: url}, client.Options{FieldManager: manager}).ConfigMaps(namespace)
	}
	mustCreate(t, as("first"), flags("a", "1"))
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"a":"2"}}`)
	_, err := as("second").Patch(t.Context(), "flags", apitypes.ApplyYAMLPatchType, body, client.PatchOptions{}, "")
	conflicts := client.ManagerConflicts(err)
	if len(conflicts) != 1 || conflicts[0].Field != ".data.a" || conflicts[0].Message == "" {
		t.Errorf("%v: %v", err, conflicts)
	}
	if got := value(mustGet(t, as("first"), "flags"), "a"); got != "1" {
		t.Errorf("after the refusal it holds %v", got)
	}
}
