package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Each request is refused with a Status that says why, and nothing is stored.
// flags is there at version 1.
func TestRefusals(t *testing.T) {
	const (
		object = `{"metadata":{"name":"new"}}`
		put    = `{"metadata":{"name":"flags","resourceVersion":"1"}}`
		uid2   = "22222222-2222-4222-8222-222222222222"
	)
	yamlBody := []string{"Content-Type", "application/yaml"}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		reason, message          string
	}{
		// What is there, or is not.
		{"create what exists", "POST", collection, named("flags"), nil, 409, "AlreadyExists", `configmaps "flags" already exists`},
		{"read nothing", "GET", collection + "/nope", "", nil, 404, "NotFound", `configmaps "nope" not found`},
		{"update nothing", "PUT", collection + "/nope", `{"metadata":{"name":"nope","resourceVersion":"1"}}`, nil, 404, "NotFound", `configmaps "nope" not found`},
		{"delete nothing", "DELETE", collection + "/nope", "", nil, 404, "NotFound", `configmaps "nope" not found`},
		{"read another namespace", "GET", "/api/v1/namespaces/other/configmaps/flags", "", nil, 404, "NotFound", `configmaps "flags" not found`},

		// Versions and identity.
		{"create with a version", "POST", collection, `{"metadata":{"name":"new","resourceVersion":"5"}}`, nil, 400, "BadRequest", "create cannot set resourceVersion"},
		{"update from a stale version", "PUT", flags, strings.Replace(put, `"1"`, `"99"`, 1), nil, 409, "Conflict",
			`Operation cannot be fulfilled on configmaps "flags": the object has been modified; sent resourceVersion 99, current 1`},
		{"update without a version", "PUT", flags, named("flags"), nil, 400, "BadRequest", "update requires metadata.resourceVersion"},
		{"update with an empty version", "PUT", flags, strings.Replace(put, `"1"`, `""`, 1), nil, 400, "BadRequest", "update requires metadata.resourceVersion"},
		{"update with version 0", "PUT", flags, strings.Replace(put, `"1"`, `"0"`, 1), nil, 400, "BadRequest", "update requires metadata.resourceVersion"},
		{"update of nothing without a version", "PUT", collection + "/nope", named("nope"), nil, 400, "BadRequest", "update requires metadata.resourceVersion"},
		{"version that is no number", "PUT", flags, strings.Replace(put, `"1"`, `"abc"`, 1), nil, 400, "BadRequest", `"abc"`},
		{"another uid", "PUT", flags, strings.Replace(put, `"name"`, `"uid":"`+uid2+`","name"`, 1), nil, 409, "Conflict", "UID is immutable"},
		{"another uid and a stale version", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"99","uid":"` + uid2 + `"}}`, nil, 409, "Conflict", "UID is immutable"},
		{"a stale version and bad content", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"99"},"data":{"a b":""}}`, nil, 409, "Conflict", "sent resourceVersion 99"},
		{"another name", "PUT", flags, `{"metadata":{"name":"other","resourceVersion":"1"}}`, nil, 400, "BadRequest", "metadata.name does not match the URL"},
		{"another name without a version", "PUT", flags, named("other"), nil, 400, "BadRequest", "metadata.name does not match the URL"},
		{"no name", "PUT", flags, `{"metadata":{"resourceVersion":"1"}}`, nil, 400, "BadRequest", "metadata.name does not match the URL"},
		{"create in another namespace", "POST", collection, `{"metadata":{"name":"new","namespace":"other"}}`, nil, 400, "BadRequest", "does not match the namespace"},
		{"update in another namespace", "PUT", flags, `{"metadata":{"name":"flags","namespace":"other","resourceVersion":"1"}}`, nil, 400, "BadRequest", "does not match the namespace"},
		{"deletion mark", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"1","deletionTimestamp":"2024-01-01T00:00:00Z"}}`, nil, 422, "Invalid", "metadata.deletionTimestamp"},

		// Content.
		{"no name at all", "POST", collection, `{}`, nil, 422, "Invalid", "metadata.name: Required value: name or generateName is required"},
		{"name of 254", "POST", collection, named(strings.Repeat("n", 254)), nil, 422, "Invalid", "must be no more than 253"},
		{"name climbing up", "POST", collection, named("../../etc/passwd"), nil, 422, "Invalid", "metadata.name"},
		{"bad namespace", "POST", "/api/v1/namespaces/Bad_One/configmaps", object, nil, 422, "Invalid", "metadata.namespace"},
		{"key with a space", "POST", collection, `{"metadata":{"name":"new"},"data":{"a b":""}}`, nil, 422, "Invalid", "data[a b]"},
		{"key in both", "POST", collection, `{"metadata":{"name":"new"},"data":{"k":""},"binaryData":{"k":""}}`, nil, 422, "Invalid", "duplicate of key present in binaryData"},
		{"1 MiB and a byte", "POST", collection, `{"metadata":{"name":"new"},"data":{"k":"` + strings.Repeat("x", 1<<20+1) + `"}}`, nil, 422, "Invalid", "may not be more than 1048576 bytes"},
		{"update with bad content", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"1"},"data":{"a b":""}}`, nil, 422, "Invalid", "data[a b]"},

		// Bodies.
		{"empty body", "POST", collection, "", nil, 400, "BadRequest", "unexpected end of JSON input"},
		{"malformed JSON", "POST", collection, `{"metadata":`, nil, 400, "BadRequest", "unexpected end of JSON input"},
		{"two values", "POST", collection, object + object, nil, 400, "BadRequest", "after top-level value"},
		{"two YAML documents", "POST", collection, "metadata: {name: a}\n---\nmetadata: {name: b}\n", []string{"Content-Type", "application/yaml"}, 400, "BadRequest", "line 3: another YAML document"},
		{"two YAML flow maps", "POST", collection, "{metadata: {name: a}}\n{metadata: {name: b}}\n", yamlBody, 400, "BadRequest", "line 2: the YAML document has ended"},
		{"YAML after a flow map", "POST", collection, "{metadata: {name: a}}\ndata: {a: b}\n", yamlBody, 400, "BadRequest", "line 2"},
		{"garbage after JSON that claims to be YAML", "POST", collection, object + " x", yamlBody, 400, "BadRequest", "line 1"},
		{"YAML keys that are no strings", "POST", collection, "metadata: {name: a}\ndata: {yes: a, 0755: b}\n", yamlBody, 400, "BadRequest", "line 2: key yes"},
		{"YAML bytes", "POST", collection, "metadata: {name: a}\ndata:\n  a: !!binary /w==\n", yamlBody, 400, "BadRequest", "line 3: tag !!binary"},
		{"bytes", "POST", collection, `{"metadata":{"name":"new"},"data":{"k":"` + "\xff" + `"}}`, nil, 400, "BadRequest", "byte 0xff at offset 40; a ConfigMap keeps bytes in binaryData"},
		{"bytes in an update", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"1"},"data":{"k":"` + "\xe9" + `"}}`, nil, 400, "BadRequest", "byte 0xe9"},
		{"other charset", "POST", collection, object, []string{"Content-Type", "application/json; charset=iso-8859-1"}, 415, "UnsupportedMediaType", "only utf-8"},

		// Fields that would be dropped though they were meant.
		{"update with a version in another case", "PUT", flags, `{"metadata":{"name":"flags","ResourceVersion":"99","resourceVersion":"1"}}`, nil, 400, "BadRequest", `unknown field "metadata.ResourceVersion"`},
		{"update with a uid in another case", "PUT", flags + "?fieldValidation=Ignore", `{"metadata":{"name":"flags","resourceVersion":"1","UID":"u"}}`, nil, 400, "BadRequest", `unknown field "metadata.UID"`},
		{"update with two versions", "PUT", flags, `{"metadata":{"name":"flags","resourceVersion":"99","resourceVersion":"1"}}`, nil, 400, "BadRequest", `duplicate field "metadata.resourceVersion"`},
		{"precondition in another case", "DELETE", flags, `{"preconditions":{"resourceversion":"99"}}`, nil, 400, "BadRequest", `unknown field "preconditions.resourceversion"`},
		{"preconditions in another case", "DELETE", flags, `{"Preconditions":{"resourceVersion":"99"}}`, nil, 400, "BadRequest", `unknown field "Preconditions"`},
		{"precondition in the singular", "DELETE", flags, `{"precondition":{"resourceVersion":"99"}}`, nil, 400, "BadRequest", `unknown field "precondition"`},
		{"precondition outside", "DELETE", flags, `{"resourceVersion":"99"}`, nil, 400, "BadRequest", `unknown field "resourceVersion"`},
		{"dry run in another case", "DELETE", flags, `{"dryrun":["All"]}`, nil, 400, "BadRequest", `unknown field "dryrun"`},
		{"repeated preconditions", "DELETE", flags, `{"preconditions":{"resourceVersion":"99"},"preconditions":null}`, nil, 400, "BadRequest", `duplicate field "preconditions"`},
		{"precondition in the query beside a body", "DELETE", flags + "?resourceVersion=99", `{}`, nil, 409, "Conflict", "(99) does not match"},
		{"one precondition each", "DELETE", flags + "?resourceVersion=99", `{"preconditions":{"uid":null}}`, nil, 409, "Conflict", "(99) does not match"},
		{"contradicting preconditions", "DELETE", flags + "?resourceVersion=99", `{"preconditions":{"resourceVersion":"1"}}`, nil, 400, "BadRequest", "contradict"},
		{"dry run of a deletion in another case", "DELETE", flags + "?dryrun=All", "", nil, 400, "BadRequest", "it is written dryRun"},
		{"dry run as its flag is spelt", "DELETE", flags + "?dry-run=All", "", nil, 400, "BadRequest", "it is written dryRun"},
		{"dry run with brackets", "POST", collection + "?dryRun[]=All", `{"metadata":{"name":"new"}}`, nil, 400, "BadRequest", "it is written dryRun"},
		{"precondition by its path in the query", "DELETE", flags + "?preconditions.resourceVersion=99", "", nil, 400, "BadRequest", "written uid and resourceVersion"},
		{"precondition in brackets in the query", "DELETE", flags + "?preconditions%5Buid%5D=u", "", nil, 400, "BadRequest", "written uid and resourceVersion"},
		{"condition in a header", "PUT", flags, put, []string{"If-Match", "1"}, 400, "BadRequest", "If-Match is no condition here"},
		{"field selector of a deletion that is none", "DELETE", collection + "?fieldSelector=,", "", nil, 400, "BadRequest", "selects everything"},
		{"selector of a deletion by another name", "DELETE", collection + "?label=a%3Db", "", nil, 400, "BadRequest", "written labelSelector"},
		{"selector of a deletion that is none", "DELETE", collection + "?labelSelector=%00", "", nil, 400, "BadRequest", "selects everything"},
		{"selector of a deletion in another case", "DELETE", collection + "?labelselector=a%3Db", "", nil, 400, "BadRequest", "it is written labelSelector"},
		{"two selectors of a deletion", "DELETE", collection + "?labelSelector=a&labelSelector=b", "", nil, 400, "BadRequest", "given twice"},
		{"field manager that is not UTF-8", "PUT", flags + "?fieldManager=%FF", put, nil, 400, "BadRequest", "not UTF-8"},
		{"unknown content type", "POST", collection, object, []string{"Content-Type", "text/plain"}, 415, "UnsupportedMediaType", "application/json"},
		{"compressed body", "POST", collection, object, []string{"Content-Encoding", "gzip"}, 415, "UnsupportedMediaType", ""},
		{"wrong kind", "POST", collection, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"new"}}`, nil, 400, "BadRequest", "Secret"},
		{"number as a value", "POST", collection, `{"metadata":{"name":"new"},"data":{"rollout":50}}`, nil, 400, "BadRequest", "data[rollout] must be a string"},
		{"body of 4 MiB", "POST", collection, `{"metadata":{"name":"new"},"data":{"k":"` + strings.Repeat("x", 4<<20) + `"}}`, nil, 413, "RequestEntityTooLarge", "limit is 3145728"},
		{"body of 4 MiB on update", "PUT", flags, strings.Repeat(" ", 4<<20), nil, 413, "RequestEntityTooLarge", "limit is 3145728"},

		// Parameters.
		{"unknown field, strictly", "POST", collection + "?fieldValidation=Strict", `{"metadata":{"name":"new"},"spec":1}`, nil, 400, "BadRequest", `unknown field "spec"`},
		{"unknown field validation", "POST", collection + "?fieldValidation=Sometimes", object, nil, 422, "Invalid", "fieldValidation"},
		{"unknown dry run", "POST", collection + "?dryRun=Some", object, nil, 422, "Invalid", "dryRun"},
		{"empty dry run", "PUT", flags + "?dryRun=", put, nil, 422, "Invalid", "dryRun"},
		{"unknown dry run of a deletion", "DELETE", flags + "?dryRun=Some", "", nil, 422, "Invalid", "dryRun"},
		{"query that can't be parsed", "DELETE", flags + "?dryRun=All;x=1", "", nil, 400, "BadRequest", "query"},
		{"long field manager", "PUT", flags + "?fieldManager=" + strings.Repeat("m", 129), put, nil, 422, "Invalid", "fieldManager"},
		{"long write id", "PUT", flags, put, []string{"Cmctl-Write-Id", strings.Repeat("w", 65)}, 400, "BadRequest", "Cmctl-Write-Id"},
		{"write id that is not ASCII", "POST", collection, object, []string{"Cmctl-Write-Id", "é"}, 400, "BadRequest", "Cmctl-Write-Id"},
		{"delete options of another kind", "DELETE", flags, `{"kind":"ConfigMap","apiVersion":"v1"}`, nil, 400, "BadRequest", "takes kind DeleteOptions"},
		{"delete another uid", "DELETE", flags, `{"preconditions":{"uid":"` + uid2 + `"}}`, nil, 409, "Conflict", "UID in the precondition"},
		{"delete another version", "DELETE", flags, `{"preconditions":{"resourceVersion":"99"}}`, nil, 409, "Conflict", "(99) does not match"},
		{"delete another version, in the query", "DELETE", flags + "?resourceVersion=99", "", nil, 409, "Conflict", "(99) does not match"},
		{"unknown propagation", "DELETE", flags + "?propagationPolicy=Bogus", "", nil, 422, "Invalid", "propagationPolicy"},
		{"bad label selector", "GET", collection + "?labelSelector=x+in", "", nil, 400, "BadRequest", "unable to parse"},
		{"bad selector of a deletion", "DELETE", collection + "?fieldSelector=data.k%3Dv", "", nil, 400, "BadRequest", "not a known field selector"},
		{"bad limit", "GET", collection + "?limit=x", "", nil, 400, "BadRequest", "invalid syntax"},
		{"bad continue token", "GET", collection + "?continue=abc", "", nil, 400, "BadRequest", "continue key is not valid"},
		{"version of a list that is no number", "GET", collection + "?resourceVersion=abc", "", nil, 400, "BadRequest", "invalid resource version"},
		{"version of a read that is no number", "GET", flags + "?resourceVersion=abc", "", nil, 400, "BadRequest", "abc"},
		{"future version of a read", "GET", flags + "?resourceVersion=99", "", nil, 504, "Timeout", "Too large resource version: 99, current: 1"},
		{"future version of a list", "GET", collection + "?resourceVersion=99", "", nil, 504, "Timeout", "Too large resource version: 99, current: 1"},
		{"exact future version", "GET", collection + "?resourceVersion=99&resourceVersionMatch=Exact", "", nil, 504, "Timeout", "Too large resource version: 99, current: 1"},
		{"match without a version", "GET", collection + "?resourceVersionMatch=Exact", "", nil, 422, "Invalid", "resourceVersionMatch"},

		// What is not served.
		{"patch without a type", "PATCH", flags, `{"data":{"a":"b"}}`, nil, 415, "UnsupportedMediaType", "Unsupported Media Type"},
		{"create by name", "POST", flags, named("flags"), nil, 405, "MethodNotAllowed", "does not allow this method"},
		{"update a collection", "PUT", collection, put, nil, 405, "MethodNotAllowed", ""},
		{"create in all namespaces", "POST", "/api/v1/configmaps", object, nil, 405, "MethodNotAllowed", ""},
		{"delete in all namespaces", "DELETE", "/api/v1/configmaps", "", nil, 405, "MethodNotAllowed", ""},
		{"options", "OPTIONS", flags, "", nil, 405, "MethodNotAllowed", ""},
		{"delete a probe", "DELETE", "/healthz", "", nil, 405, "MethodNotAllowed", ""},
		{"unknown resource", "GET", "/api/v1/namespaces/default/secrets", "", nil, 404, "NotFound", "could not find the requested resource"},
		{"unknown subresource", "GET", flags + "/status", "", nil, 404, "NotFound", "could not find the requested resource"},
		{"unknown path", "GET", "/nothing", "", nil, 404, "NotFound", "could not find the requested resource"},
		{"empty segment", "PUT", "/api/v1/namespaces/default//configmaps/flags", put, nil, 404, "NotFound", "could not find"},
		{"slashes first", "PUT", "//api/v1/namespaces/default/configmaps/flags", put, nil, 404, "NotFound", "could not find"},
		{"climbing up", "PUT", collection + "/x/../flags", put, nil, 404, "NotFound", "could not find"},
		{"climbing up, escaped", "GET", collection + "/%2e%2e", "", nil, 400, "BadRequest", `Name parameter invalid: "..": may not be '..'`},
		{"climbing up at the end", "DELETE", collection + "/..", "", nil, 400, "BadRequest", `Name parameter invalid: ".."`},
		{"a dot for a name", "GET", collection + "/.", "", nil, 400, "BadRequest", `Name parameter invalid: "."`},
		{"percent in a name", "GET", collection + "/a%25b", "", nil, 400, "BadRequest", `may not contain '%'`},
		{"slash in a name", "DELETE", collection + "/a%2Fb", "", nil, 404, "NotFound", "could not find"},
		{"slash in a namespace", "GET", "/api/v1/namespaces/a%2Fb/configmaps/c", "", nil, 404, "NotFound", "could not find"},
		{"time limit without a unit", "GET", flags + "?timeout=5", "", nil, 400, "BadRequest", `missing unit in duration "5"`},
		{"NUL in a name", "GET", collection + "/a%00b", "", nil, 404, "NotFound", "not found"},
		{"unknown Accept", "POST", collection, object, []string{"Accept", "text/html"}, 406, "NotAcceptable", "application/json"},
		{"any application", "GET", flags, "", []string{"Accept", "application/*"}, 406, "NotAcceptable", "application/yaml"},
		{"a table in protobuf", "GET", flags, "", []string{"Accept", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"}, 406, "NotAcceptable", "only the following"},
		{"a list of one object", "PUT", flags, put, []string{"Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}, 406, "NotAcceptable", "not a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			before := a.create()
			r := a.do(c.method, c.path, c.body, c.headers...)
			isStatus(t, r, c.code, c.reason, c.message)
			if got := a.store.State().Current.String(); got != before.version() {
				t.Errorf("something was stored: the store is at version %s, and was at %s", got, before.version())
			}
			if got := a.must(200, "GET", flags, ""); got.body != before.body {
				t.Errorf("the object changed from\n%s to\n%s", before.body, got.body)
			}
			if strings.Contains(r.body, "configmaps/default") {
				t.Errorf("a storage key got out: %s", r.body)
			}
		})
	}
}

func TestUpdateWithoutVersionNamesTheSetting(t *testing.T) {
	a := start(t)
	a.create()
	r := a.do("PUT", flags, flagsBody("", `{}`))
	if got := r.header.Get("Warning"); !strings.HasPrefix(got, "299 - ") || !strings.Contains(got, "--unconditional-put") {
		t.Errorf("Warning %q", got)
	}
}

func TestFutureVersionAsksToRetry(t *testing.T) {
	r := start(t).do("GET", collection+"?resourceVersion=99", "")
	if got := r.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q", got)
	}
}

func TestHeadIsRefusedWithoutABody(t *testing.T) {
	a := start(t)
	a.create()
	if r := a.do("HEAD", flags, ""); r.code != 405 || r.body != "" {
		t.Errorf("got %d %q", r.code, r.body)
	}
}

// unknownFields are n members that a ConfigMap doesn't have.
func unknownFields(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"unknown%d":1`, i)
	}
	return text.String()
}

// A body may have any number of unknown fields, the answer has so many headers.
func TestWarningsAreLimited(t *testing.T) {
	for n, last := range map[int]string{
		1: `unknown field \"unknown0\"`, 20: `unknown field \"unknown19\"`, 21: "and 2 more warnings", 300: "and at least 81 more warnings",
	} {
		a := start(t)
		r := a.must(201, "POST", collection, `{"metadata":{"name":"flags"}`+unknownFields(n)+`}`)
		got := r.header.Values("Warning")
		if len(got) != min(n, 20) || !strings.Contains(got[len(got)-1], last) {
			t.Errorf("%d fields: %d warnings, the last %q", n, len(got), got[len(got)-1])
		}
	}
	a := start(t)
	r := a.must(201, "POST", collection, `{"metadata":{"name":"flags"},"a":1,"`+strings.Repeat("x", 5000)+`":1,"b":1}`)
	if got := r.header.Values("Warning"); len(got) != 2 || !strings.Contains(got[1], "and 2 more warnings") {
		t.Errorf("got %q", got)
	}
}

// An unknown field of a deletion that resembles none is passed over with a
// warning; kube-apiserver says nothing.
func TestDeletionWithAnUnknownField(t *testing.T) {
	a := start(t)
	a.create()
	r := a.must(200, "DELETE", flags, `{"bogus":1}`)
	if got := r.header.Get("Warning"); got != "" {
		t.Errorf("kube-apiserver is on record without a Warning; ours is %q", got)
	}
}

func TestPreconditionsInBothPlaces(t *testing.T) {
	a := start(t)
	was := a.create()
	a.must(200, "DELETE", flags+"?resourceVersion=1&uid="+string(was.object.UID), `{"preconditions":{"resourceVersion":"1"}}`)
}

// Null means the same in both maps, and is never written.
func TestNullInMaps(t *testing.T) {
	a := start(t)
	r := a.must(201, "POST", collection, `{"metadata":{"name":"flags"},"data":{"a":null},"binaryData":{"b":null}}`)
	if got := a.must(200, "GET", flags, ""); strings.Contains(got.body, "null") || got.body != r.body ||
		!strings.Contains(got.body, `"binaryData":{"b":""}`) || !strings.Contains(got.body, `"data":{"a":""}`) {
		t.Errorf("got %s", got.body)
	}
}

// JSON that claims to be YAML is read as JSON, so that U+2028 and \/ are what
// they are; utf-8 may be named.
func TestJSONUnderOtherNames(t *testing.T) {
	for _, media := range []string{"application/yaml", "application/yaml; charset=UTF-8", "application/json;charset=utf-8"} {
		a := start(t)
		r := a.must(201, "POST", collection, flagsBody("", "{\"k\":\"a \u2028 b\u0085\\/\\ud83d\\ude00\"}"), "Content-Type", media)
		if got := r.object.Data["k"]; got != "a \u2028 b\u0085/\U0001f600" {
			t.Errorf("%s: got %q", media, got)
		}
		// And as YAML it comes out the same.
		text := a.must(200, "GET", flags, "", "Accept", "application/yaml").body
		a.must(200, "DELETE", flags, "")
		text = strings.Replace(text, `resourceVersion: "1"`, `resourceVersion: ""`, 1)
		if again := a.must(201, "POST", collection, text, "Content-Type", "application/yaml"); again.object.Data["k"] != r.object.Data["k"] {
			t.Errorf("%s: %q came back as %q", media, r.object.Data["k"], again.object.Data["k"])
		}
	}
}
