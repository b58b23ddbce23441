package server_test

import (
	"regexp"
	"strings"
	"testing"
)

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestCreateFillsInWhatTheServerDecides(t *testing.T) {
	a := start(t)
	r := a.must(201, "POST", collection, `{"metadata":{"name":"flags","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z",
		"deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x","managedFields":[{"manager":"x","operation":"Update"}]},"data":{"mode":"<blue>"}}`)
	o := r.object
	if o.Namespace != "default" || o.ResourceVersion != "1" || !uuid4.MatchString(string(o.UID)) {
		t.Errorf("got %+v", o.ObjectMeta)
	}
	if got := o.CreationTimestamp.UTC(); !got.Equal(a.noon.Truncate(1e9)) {
		t.Errorf("created %s", got)
	}
	if o.DeletionTimestamp != nil || o.SelfLink != "" || o.Data["mode"] != "<blue>" {
		t.Errorf("got %+v", o)
	}
	if m := o.ManagedFields; len(m) != 1 || m[0].Manager != "Go-http-client" || m[0].Operation != "Update" || !m[0].Time.Equal(&o.CreationTimestamp) {
		t.Errorf("managed by %+v", m)
	}
	for _, absent := range []string{"null", "binaryData", "immutable", "resource_version"} {
		if strings.Contains(r.body, absent) {
			t.Errorf("%q in %s", absent, r.body)
		}
	}
	if got := a.must(200, "GET", flags, ""); got.body != r.body {
		t.Errorf("read\n%s, want\n%s", got.body, r.body)
	}
}

func TestTheSameNameInTwoNamespacesIsTwoObjects(t *testing.T) {
	a := start(t)
	a.create()
	a.must(201, "POST", "/api/v1/namespaces/other/configmaps", flagsBody("", `{"mode":"red"}`))
	a.must(200, "DELETE", "/api/v1/namespaces/other/configmaps/flags", "")
	if got := a.must(200, "GET", flags, "").object.Data["mode"]; got != "blue" {
		t.Errorf("mode %q", got)
	}
}

func TestCreateAcceptsVersionZeroAsNone(t *testing.T) {
	start(t).must(201, "POST", collection, `{"metadata":{"name":"flags","resourceVersion":"0"}}`)
}

func TestCreateGeneratesNames(t *testing.T) {
	a := start(t)
	seen := map[string]bool{}
	for range 20 {
		name := a.must(201, "POST", collection, `{"metadata":{"generateName":"run-"}}`).object.Name
		if !regexp.MustCompile(`^run-[a-z0-9]{5}$`).MatchString(name) || seen[name] {
			t.Errorf("name %q", name)
		}
		seen[name] = true
	}
	long := a.must(201, "POST", collection, `{"metadata":{"generateName":"`+strings.Repeat("n", 100)+`"}}`).object.Name
	if len(long) != 63 {
		t.Errorf("name of %d characters", len(long))
	}
}

func TestUnknownFieldsAreWarnedAbout(t *testing.T) {
	a := start(t)
	const body = `{"metadata":{"name":"NAME"},"spec":1,"Data":{"a":"b"}}`
	r := a.must(201, "POST", collection, strings.Replace(body, "NAME", "a", 1))
	if got := r.header.Values("Warning"); len(got) != 2 || !strings.Contains(got[0], `unknown field \"spec\"`) {
		t.Errorf("Warning %q", got)
	}
	r = a.must(201, "POST", collection+"?fieldValidation=Ignore", strings.Replace(body, "NAME", "b", 1))
	if got := r.header.Values("Warning"); len(got) != 0 {
		t.Errorf("Warning %q", got)
	}
	many := strings.Repeat(`"field":1,`, 5000)
	r = a.must(201, "POST", collection, `{`+many+`"metadata":{"name":"c"}}`)
	if size := len(strings.Join(r.header.Values("Warning"), "")); size > 8<<10 {
		t.Errorf("%d bytes of warnings", size)
	}
}

func TestYAMLInAndOut(t *testing.T) {
	a := start(t)
	r := a.must(201, "POST", collection, "metadata:\n  name: flags\ndata:\n  text: |\n    one\n    two\n  \"on\": \"yes\"\n  del: \"a\\x7f\"\n",
		"Content-Type", "application/yaml", "Accept", "application/yaml")
	if got := r.header.Get("Content-Type"); got != "application/yaml" {
		t.Errorf("content type %q", got)
	}
	for _, part := range []string{"kind: ConfigMap\n", "  text: |\n    one\n    two\n", "  \"on\": \"yes\"\n", `"a\x7F"`, "  resourceVersion: \"1\"\n"} {
		if !strings.Contains(r.body, part) {
			t.Errorf("no %q in\n%s", part, r.body)
		}
	}
	r = a.do("GET", collection+"/nope", "", "Accept", "application/yaml")
	if r.code != 404 || !strings.HasPrefix(r.body, "apiVersion: v1\ncode: 404\n") {
		t.Errorf("got %d\n%s", r.code, r.body)
	}
}

func TestDryRunsStoreNothing(t *testing.T) {
	a := start(t)
	was := a.create()
	check := func(r result, code int) {
		t.Helper()
		if r.code != code {
			t.Errorf("got %d, want %d: %s", r.code, code, r.body)
		}
		if now := a.must(200, "GET", flags, ""); now.body != was.body || a.store.State().Current != 1 {
			t.Errorf("something was stored: %s", now.body)
		}
	}
	check(a.do("POST", collection+"?dryRun=All", `{"metadata":{"name":"new"}}`), 201)
	check(a.do("GET", collection+"/new", ""), 404)
	check(a.do("POST", collection+"?dryRun=All", `{"metadata":{"name":"flags"}}`), 409)
	r := a.do("PUT", flags+"?dryRun=All", flagsBody(was.version(), `{"mode":"green"}`))
	check(r, 200)
	if r.object.Data["mode"] != "green" || r.version() != was.version() {
		t.Errorf("got %s", r.body)
	}
	check(a.do("PUT", flags+"?dryRun=All", flagsBody("99", `{}`)), 409)
	check(a.do("DELETE", flags+"?dryRun=All", ""), 200)
	check(a.do("DELETE", flags, `{"dryRun":["All"]}`), 200)
	// Kubernetes would delete here.
	check(a.do("DELETE", flags+"?dryRun=All", `{"kind":"DeleteOptions","apiVersion":"v1"}`), 200)
	check(a.do("DELETE", collection+"?dryRun=All", ""), 200)
}

func TestManagerIsNamedByTheUserAgent(t *testing.T) {
	for agent, want := range map[string]string{
		"kubectl/v1.37 (linux)":               "kubectl",
		"two words":                           "two words",
		"a\tb\u00ad/1":                        "ab",
		"\xe9/1":                              "\ufffd",
		"/1":                                  "unknown",
		strings.Repeat("x", 127) + "\u00e9/1": strings.Repeat("x", 127),
	} {
		a := start(t)
		r := a.must(201, "POST", collection, flagsBody("", `{"mode":"blue"}`), "User-Agent", agent)
		if m := r.object.ManagedFields; len(m) != 1 || m[0].Manager != want {
			t.Errorf("%q is %+v, want %q", agent, m, want)
		}
	}
}

// Who gives a generateName is asked to try again, even if a name came with it.
func TestCreateOfWhatExistsWithAGenerateName(t *testing.T) {
	a := start(t)
	a.create()
	for _, query := range []string{"", "?dryRun=All"} {
		r := a.do("POST", collection+query, `{"metadata":{"name":"flags","generateName":"f-"}}`)
		isStatus(t, r, 409, "AlreadyExists", "not able to generate a unique name")
		if got := r.header.Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After is %q", got)
		}
	}
}

// Only references that are equal in all count as repeated, and are told each time.
func TestRepeatedOwnersAreDropped(t *testing.T) {
	const owner, other = `{"apiVersion":"v1","kind":"Secret","name":"o","uid":"u"}`, `{"apiVersion":"v1","kind":"Secret","name":"p","uid":"u"}`
	for _, c := range []struct {
		method, path, owners string
		kept                 int
		warning              string
	}{
		{"POST", collection, owner + "," + other, 2, ""},
		{"POST", collection, owner + "," + owner + "," + owner, 1, "duplicate entries; API server dedups owner references in 1.20+, " +
			"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u, u"},
		{"PATCH", flags, other + "," + other, 1, "duplicate entries after mutating admission happens;"},
	} {
		a, headers := start(t), []string(nil)
		if c.method == "PATCH" {
			a.create()
			headers = mergePatch
		}
		r := a.do(c.method, c.path, `{"metadata":{"name":"flags","ownerReferences":[`+c.owners+`]}}`, headers...)
		if got := r.header.Get("Warning"); len(r.object.OwnerReferences) != c.kept || !strings.Contains(got, c.warning) || (got == "") != (c.warning == "") {
			t.Errorf("%s %s: %s with warning %s", c.method, c.owners, r.body, got)
		}
	}
}
