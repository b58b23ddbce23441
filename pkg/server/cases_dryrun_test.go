package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// A dry run of any write checks everything and does nothing: nothing is stored, no
// version is spent, and whoever watches sees the next real write only.
func TestDryRunsReachNobody(t *testing.T) {
	const (
		held    = collection + "/held"
		unknown = "/api/v1/namespaces/unknown"
	)
	a := begin(t)
	was := a.create()
	a.must(201, "POST", collection, `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`)
	a.must(201, "POST", namespaces, named("team-a"))
	at := a.store.State().Current
	watches := []*events{
		a.watch(fmt.Sprintf("/api/v1/configmaps?watch=1&resourceVersion=%d", at)),
		a.watch(fmt.Sprintf("%s?watch=1&resourceVersion=%d", namespaces, at)),
	}
	applied := func(name, data string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":` + data + `}`
	}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
	}{
		{"create", "POST", collection, named("new"), nil, 201},
		{"create what exists", "POST", collection, named("flags"), nil, 409},
		{"create with a bad key", "POST", collection, `{"metadata":{"name":"new"},"data":{"bad/key":""}}`, nil, 422},
		{"create in a namespace that is not there", "POST", unknown + "/configmaps", named("new"), nil, 201},
		{"update", "PUT", flags, flagsBody(was.version(), `{"mode":"green"}`), nil, 200},
		{"update from a stale version", "PUT", flags, flagsBody("99", `{"mode":"green"}`), nil, 409},
		{"merge patch", "PATCH", flags, `{"data":{"mode":"green"}}`, mergePatch, 200},
		{"strategic patch", "PATCH", flags, `{"data":{"mode":"green"}}`, strategicPatch, 200},
		{"operations", "PATCH", flags, `[{"op":"add","path":"/data/mode","value":"green"}]`, jsonPatch, 200},
		{"operations whose test fails", "PATCH", flags, `[{"op":"test","path":"/data/mode","value":"green"}]`, jsonPatch, 422},
		{"patch to a bad key", "PATCH", flags, `{"data":{"bad/key":""}}`, mergePatch, 422},
		{"patch that takes the last finalizer", "PATCH", held, `{"metadata":{"finalizers":null}}`, mergePatch, 200},
		{"apply what is not there", "PATCH", collection + "/new?fieldManager=m", applied("new", `{}`), applyPatch, 201},
		{"apply", "PATCH", flags + "?fieldManager=m", applied("flags", `{"more":"1"}`), applyPatch, 200},
		{"apply another's field", "PATCH", flags + "?fieldManager=m", applied("flags", `{"mode":"green"}`), applyPatch, 409},
		{"apply another's field by force", "PATCH", flags + "?fieldManager=m&force=true", applied("flags", `{"mode":"green"}`), applyPatch, 200},
		{"delete", "DELETE", flags, "", nil, 200},
		{"delete what is not there", "DELETE", collection + "/nope", "", nil, 404},
		{"delete another version", "DELETE", flags, `{"preconditions":{"resourceVersion":"99"}}`, nil, 409},
		{"delete what finalizers hold", "DELETE", held, "", nil, 200},
		{"delete so that a finalizer is added", "DELETE", flags, `{"propagationPolicy":"Orphan"}`, nil, 200},
		{"delete the collection", "DELETE", collection, "", nil, 200},
		{"create a namespace", "POST", namespaces, named("team-b"), nil, 201},
		{"patch a namespace", "PATCH", teamA, `{"metadata":{"labels":{"a":"b"}}}`, mergePatch, 200},
		{"delete a namespace", "DELETE", teamA, "", nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.t = t
			before := a.must(200, "GET", "/api/v1/configmaps", "").body + a.must(200, "GET", namespaces, "").body
			if r := a.do(c.method, withParameter(c.path, "dryRun=All"), c.body, c.headers...); r.code != c.code {
				t.Errorf("got %d, want %d: %s", r.code, c.code, r.body)
			}
			if got := a.must(200, "GET", "/api/v1/configmaps", "").body + a.must(200, "GET", namespaces, "").body; got != before {
				t.Errorf("stored is\n%s, and was\n%s", got, before)
			}
			if got := a.store.State().Current; got != at {
				t.Errorf("the store is at version %d, and was at %d", got, at)
			}
			for _, bad := range []string{"dryRun=Some", "dryRun=", "dryRun=all", "dryRun=true"} {
				isStatus(t, a.do(c.method, withParameter(c.path, bad), c.body, c.headers...), 422, "Invalid", "dryRun")
			}
		})
	}
	a.t = t
	a.must(200, "DELETE", flags, "")
	a.must(201, "POST", namespaces, named("team-c"))
	watches[0].sees(fmt.Sprintf("DELETED flags@%d", at+1))
	watches[1].sees(fmt.Sprintf("ADDED team-c@%d", at+2))
}

// withParameter adds a parameter to a path that may have some.
func withParameter(path, parameter string) string {
	if strings.Contains(path, "?") {
		return path + "&" + parameter
	}
	return path + "?" + parameter
}
