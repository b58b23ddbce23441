package server_test

import "testing"

// Two operators hold the same version of one object. The second to write is
// refused, and loses nothing that the first wrote.
func TestScenario(t *testing.T) {
	a := start(t)
	v := map[string]string{} // the versions that were seen, by name
	for _, step := range []struct {
		name, method, path string
		sends, data        string // the version that the body carries, and its data
		code               int
		reason             string
		gets               string // the name of the version in the answer
	}{
		{"create", "POST", collection, "", `{"mode":"blue","rollout":"10"}`, 201, "", "v1"},
		{"create again", "POST", collection, "", `{"mode":"red"}`, 409, "AlreadyExists", ""},
		{"PUT by A", "PUT", flags, "v1", `{"mode":"green","rollout":"10"}`, 200, "", "v2"},
		{"PUT by B, stale", "PUT", flags, "v1", `{"mode":"blue","rollout":"50"}`, 409, "Conflict", ""},
		{"a fresh read shows A's value", "GET", flags, "", "", 200, "", "v2"},
		{"PUT by B after a re-read", "PUT", flags, "v2", `{"mode":"green","rollout":"50"}`, 200, "", "v3"},
		{"list", "GET", collection, "", "", 200, "", "v3"},
		{"delete", "DELETE", flags, "", "", 200, "", ""},
		{"read after delete", "GET", flags, "", "", 404, "NotFound", ""},
	} {
		body := ""
		if step.data != "" {
			body = flagsBody(v[step.sends], step.data)
		}
		r := a.do(step.method, step.path, body)
		if r.code != step.code || string(r.status.Reason) != step.reason {
			t.Fatalf("%s: got %d %q, want %d %q: %s", step.name, r.code, r.status.Reason, step.code, step.reason, r.body)
		}
		got := r.object.ResourceVersion
		if step.name == "list" {
			got = r.list.ResourceVersion
			if len(r.list.Items) != 1 || r.list.Items[0].ResourceVersion != v["v3"] {
				t.Errorf("%s: items %+v", step.name, r.list.Items)
			}
		}
		if step.gets == "" {
			continue
		}
		if seen, again := v[step.gets]; again && seen != got {
			t.Errorf("%s: version %s, want the %s of before, %s", step.name, got, step.gets, seen)
		}
		for name, seen := range v {
			if seen == got && name != step.gets {
				t.Errorf("%s: version %s was that of %s", step.name, got, name)
			}
		}
		v[step.gets] = got
		if step.name == "a fresh read shows A's value" && r.object.Data["mode"] != "green" {
			t.Errorf("%s: %v", step.name, r.object.Data)
		}
	}
}
