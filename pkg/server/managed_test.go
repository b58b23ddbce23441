package server_test

import (
	"strings"
	"testing"
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
