package server_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server"
)

// The limit is on what a client sends. An object that has more entries, because
// the server added one, can still be written in every way.
func TestAnObjectOfManyManagersCanBeWritten(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection, flagsBody("", `{"k0":"",`+numbered(999, `"k%d":"v"`)+`}`))
	entries := numbered(1000, `{"manager":"m%d","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k%[1]d":{}}}}`)
	merge := `{"metadata":{"managedFields":[` + entries + `]},"data":{"own":"1"}}`
	if r := a.must(200, "PATCH", flags, merge, mergePatch...); len(r.object.ManagedFields) <= 1000 {
		t.Fatalf("%d entries; the test wants more than the limit", len(r.object.ManagedFields))
	}
	a.must(200, "PATCH", flags, `{"data":{"own":"2"}}`, mergePatch...)
	a.must(200, "PATCH", flags, `{"data":{"own":"3"}}`, strategicPatch...)
	a.must(200, "PATCH", flags, `[{"op":"add","path":"/data/own","value":"4"}]`, jsonPatch...)
	a.must(200, "PATCH", flags+"?fieldManager=new", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"data":{"other":"1"}}`, applyPatch...)
	read := a.must(200, "GET", flags, "")
	a.must(200, "PUT", flags, strings.Replace(read.body, `"own":"4"`, `"own":"5"`, 1))
	more := strings.Replace(read.body, `"managedFields":[`, `"managedFields":[{"manager":"more","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:immutable":{}}},`, 1)
	version := a.must(200, "GET", flags, "").version()
	more = strings.Replace(more, `"resourceVersion":"`+read.version()+`"`, `"resourceVersion":"`+version+`"`, 1)
	isStatus(t, a.do("PUT", flags, more), 400, "BadRequest", "entries; at most 1000 are taken")
}

// Each manager adds to an object, which must stay small enough to be sent back. One
// that is too large can still be deleted.
func TestAnObjectMustFitIntoABody(t *testing.T) {
	const limit = 20_000
	a := start(t, func(o *server.Options) { o.MaxBodyBytes = limit })
	configuration := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags","finalizers":["example.com/hold"]},"data":{` +
		numbered(400, `"key-%04d":""`) + `}}`
	apply := func(manager string) result {
		return a.do("PATCH", flags+"?fieldManager="+manager, configuration, applyPatch...)
	}
	if r := apply("m0"); r.code != 201 {
		t.Fatalf("first: %d %.200s", r.code, r.body)
	}
	if r := apply("m1"); r.code != 200 {
		t.Fatalf("second: %d %.200s", r.code, r.body)
	}
	before := a.must(200, "GET", flags, "")
	isStatus(t, apply("m2"), 413, "RequestEntityTooLarge", "metadata.managedFields included")
	isStatus(t, a.do("PATCH", flags, `{"data":{"more":"`+strings.Repeat("x", limit/2)+`"}}`, mergePatch...), 413, "RequestEntityTooLarge", "")
	wide := `{"metadata":{"name":"wide"},"data":{` + numbered(900, `"key-%04d":""`) + `}}`
	isStatus(t, a.do("POST", collection, wide), 413, "RequestEntityTooLarge", "metadata.managedFields included")
	if got := a.must(200, "GET", flags, ""); got.body != before.body || a.do("GET", collection+"/wide", "").code != 404 {
		t.Error("something was stored")
	}
}

// What is over the limit already, since the limit was another, can be marked as
// deleted and let go.
func TestALargeObjectCanBeDeleted(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection, `{"metadata":{"name":"flags","finalizers":["example.com/hold"]},"data":{"k":"`+strings.Repeat("x", 5000)+`"}}`)
	small := server.New(server.Options{Store: a.store, MaxBodyBytes: 1000})
	for _, step := range []struct{ method, body, kind string }{
		{"DELETE", "", ""},
		{"PATCH", `{"metadata":{"finalizers":null}}`, "application/merge-patch+json"},
	} {
		r := httptest.NewRequest(step.method, flags, strings.NewReader(step.body))
		r.Header.Set("Content-Type", step.kind)
		w := httptest.NewRecorder()
		small.Handler().ServeHTTP(w, r)
		if w.Code != 200 {
			t.Fatalf("%s: %d %.200s", step.method, w.Code, w.Body)
		}
	}
	isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
}
