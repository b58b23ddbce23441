package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// The types of patches.
var (
	jsonPatch      = []string{"Content-Type", "application/json-patch+json"}
	mergePatch     = []string{"Content-Type", "application/merge-patch+json"}
	strategicPatch = []string{"Content-Type", "application/strategic-merge-patch+json"}
	applyPatch     = []string{"Content-Type", "application/apply-patch+yaml"}
)

func TestPatchMakesTheNextVersion(t *testing.T) {
	for _, c := range []struct {
		name string
		kind []string
		body string
	}{
		{"merge", mergePatch, `{"data":{"mode":"green"}}`},
		{"strategic merge", strategicPatch, `{"data":{"mode":"green"}}`},
		{"operations", jsonPatch, `[{"op":"test","path":"/data/mode","value":"blue"},{"op":"replace","path":"/data/mode","value":"green"}]`},
		{"merge, with a charset", []string{"Content-Type", "application/merge-patch+json; charset=utf-8"}, `{"data":{"mode":"green"}}`},
		{"merge, from the current version", mergePatch, `{"metadata":{"resourceVersion":"1"},"data":{"mode":"green"}}`},
		{"merge, from any version", mergePatch, `{"metadata":{"resourceVersion":null},"data":{"mode":"green"}}`},
		{"merge, without its name's namespace", mergePatch, `{"metadata":{"namespace":null,"uid":null},"data":{"mode":"green"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			was := a.create()
			r := a.must(200, "PATCH", flags+"?fieldManager=painter", c.body, c.kind...)
			if r.version() == was.version() || r.object.Data["mode"] != "green" || r.object.UID != was.object.UID {
				t.Errorf("%s became %s", was.body, r.body)
			}
			if got := a.must(200, "GET", flags, ""); got.body != r.body {
				t.Errorf("answered %s, stored %s", r.body, got.body)
			}
			fields := r.object.ManagedFields
			if len(fields) != 2 || fields[1].Manager != "painter" && fields[0].Manager != "painter" {
				t.Errorf("managedFields %+v", fields)
			}
			var history types.HistoryList
			if err := json.Unmarshal([]byte(a.must(200, "GET", flags+"/history", "").body), &history); err != nil {
				t.Fatal(err)
			}
			if e := history.Items[0]; e.Verb != "patch" || e.FieldManager != "painter" || e.ResourceVersion != r.version() {
				t.Errorf("history %+v", e)
			}
		})
	}
}

// Each patch is refused with a Status that says why, and nothing is stored.
// flags is there at version 1.
func TestPatchesThatAreRefused(t *testing.T) {
	const uid2 = "22222222-2222-4222-8222-222222222222"
	nope := collection + "/nope"
	yes := `{"data":{"mode":"green"}}`
	for _, c := range []struct {
		name, path, body string
		headers          []string
		code             int
		reason, message  string
	}{
		{"of nothing", nope, yes, mergePatch, 404, "NotFound", `configmaps "nope" not found`},
		{"malformed, of nothing", nope, `{`, mergePatch, 400, "BadRequest", "invalid JSON patch"},
		{"in another namespace", "/api/v1/namespaces/other/configmaps/flags", yes, strategicPatch, 404, "NotFound", "not found"},
		{"from a stale version", flags, `{"metadata":{"resourceVersion":"99"},"data":{"mode":"green"}}`, mergePatch, 409, "Conflict",
			`Operation cannot be fulfilled on configmaps "flags": the object has been modified; sent resourceVersion 99, current 1`},
		{"from a stale version, of bad content", flags, `{"metadata":{"resourceVersion":"99"},"data":{"a b":""}}`, strategicPatch, 409, "Conflict", "sent resourceVersion 99"},
		{"from a stale version, changing nothing", flags, `{"metadata":{"resourceVersion":"99"}}`, mergePatch, 409, "Conflict", "sent resourceVersion 99"},
		{"from a version that is no number", flags, `{"metadata":{"resourceVersion":"abc"}}`, mergePatch, 400, "BadRequest", `"abc"`},
		{"with a test that fails", flags, `[{"op":"test","path":"/metadata/resourceVersion","value":"99"}]`, jsonPatch, 422, "Invalid", "rejected our request"},
		{"to another name", flags, `{"metadata":{"name":"other"}}`, mergePatch, 400, "BadRequest", "metadata.name does not match the URL"},
		{"to no name", flags, `{"metadata":{"name":null}}`, mergePatch, 400, "BadRequest", "metadata.name does not match the URL"},
		{"to another namespace", flags, `{"metadata":{"namespace":"other"}}`, mergePatch, 400, "BadRequest", "does not match the namespace"},
		{"to another uid", flags, `{"metadata":{"uid":"` + uid2 + `"}}`, mergePatch, 422, "Invalid", "metadata.uid: Invalid value: \"" + uid2 + "\": field is immutable"},
		{"to be deleted", flags, `{"metadata":{"deletionTimestamp":"2024-01-01T00:00:00Z"}}`, mergePatch, 422, "Invalid", "metadata.deletionTimestamp"},
		{"of a key with a space", flags, `{"data":{"a b":""}}`, mergePatch, 422, "Invalid", "data[a b]"},
		{"of a number", flags, `{"data":{"mode":5}}`, strategicPatch, 422, "Invalid", "cannot convert int64 to string"},
		{"of 1 MiB", flags, `{"data":{"k":"` + strings.Repeat("x", 1<<20) + `"}}`, mergePatch, 422, "Invalid", "may not be more than 1048576 bytes"},
		{"of 4 MiB", flags, `{"data":{"k":"` + strings.Repeat("x", 4<<20) + `"}}`, mergePatch, 413, "RequestEntityTooLarge", "limit is 3145728"},
		{"with a directive that there is not", flags, `{"$patch":"bogus"}`, strategicPatch, 400, "BadRequest", "bogus"},
		{"with an unknown field, strictly", flags + "?fieldValidation=Strict", `{"Data":{}}`, mergePatch, 422, "Invalid", `strict decoding error: unknown field "Data"`},
		{"of no type", flags, yes, nil, 415, "UnsupportedMediaType", "415: Unsupported Media Type"},
		{"of JSON", flags, yes, []string{"Content-Type", "application/json"}, 415, "UnsupportedMediaType", "415: Unsupported Media Type"},
		{"of CBOR", flags, yes, []string{"Content-Type", "application/apply-patch+cbor"}, 415, "UnsupportedMediaType", "415: Unsupported Media Type"},
		{"of a type in other letters", flags, yes, []string{"Content-Type", "Application/Merge-Patch+JSON"}, 415, "UnsupportedMediaType", "415: Unsupported Media Type"},
		{"of a type that can't be read", flags, yes, []string{"Content-Type", "a b"}, 415, "UnsupportedMediaType", "415: Unsupported Media Type"},
		{"in another charset", flags, yes, []string{"Content-Type", "application/merge-patch+json; charset=iso-8859-1"}, 415, "UnsupportedMediaType", "only utf-8"},
		{"compressed", flags, yes, append([]string{"Content-Encoding", "gzip"}, mergePatch...), 415, "UnsupportedMediaType", "415"},
		{"forced", flags + "?force=true", yes, mergePatch, 422, "Invalid", "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden"},
		{"with an unknown dry run", flags + "?dryRun=Some", yes, mergePatch, 422, "Invalid", "PatchOptions"},
		{"with an unknown field validation", flags + "?fieldValidation=Sometimes", yes, mergePatch, 422, "Invalid", "PatchOptions"},
		{"with a long field manager", flags + "?fieldManager=" + strings.Repeat("m", 129), yes, mergePatch, 422, "Invalid", "PatchOptions"},
		{"bad options and a malformed body", flags + "?dryRun=Some", `{`, mergePatch, 422, "Invalid", "PatchOptions"},
		{"with a long write id", flags, yes, append([]string{"Cmctl-Write-Id", strings.Repeat("w", 65)}, mergePatch...), 400, "BadRequest", "Cmctl-Write-Id"},
		{"of a collection", collection, yes, mergePatch, 405, "MethodNotAllowed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			a.create()
			before := a.must(200, "GET", flags, "")
			r := a.do("PATCH", c.path, c.body, c.headers...)
			isStatus(t, r, c.code, c.reason, c.message)
			if got := a.store.State().Current.String(); got != before.version() {
				t.Errorf("something was stored: the store is at version %s, and was at %s", got, before.version())
			}
			if got := a.must(200, "GET", flags, ""); got.body != before.body {
				t.Errorf("the object changed from\n%s to\n%s", before.body, got.body)
			}
		})
	}
}

func TestImmutableCannotBePatched(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection, `{"metadata":{"name":"flags"},"data":{"mode":"blue"},"immutable":true}`)
	isStatus(t, a.do("PATCH", flags, `{"data":{"mode":"green"}}`, mergePatch...), 422, "Invalid", "data: Forbidden: field is immutable")
	isStatus(t, a.do("PATCH", flags, `{"immutable":null}`, mergePatch...), 422, "Invalid", "immutable: Forbidden")
	a.must(200, "PATCH", flags, `{"metadata":{"labels":{"a":"b"}}}`, mergePatch...)
}

func TestPatchThatChangesNothingKeepsTheVersion(t *testing.T) {
	a := start(t)
	was := a.create()
	for _, c := range []struct {
		kind []string
		body string
	}{
		{mergePatch, `{}`}, {jsonPatch, `[]`}, {strategicPatch, `{"data":{"mode":"blue"}}`},
		{mergePatch, `{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z","generation":7,"selfLink":"/x"}}`},
	} {
		if r := a.must(200, "PATCH", flags+"?fieldManager=other", c.body, c.kind...); r.body != was.body {
			t.Errorf("%s changed\n%s to\n%s", c.body, was.body, r.body)
		}
	}
	if got := a.store.State().Current.String(); got != was.version() {
		t.Errorf("the store is at version %s", got)
	}
}

func TestDryRunOfAPatchStoresNothing(t *testing.T) {
	a := start(t)
	was := a.create()
	r := a.must(200, "PATCH", flags+"?dryRun=All", `{"data":{"mode":"green"}}`, mergePatch...)
	if r.object.Data["mode"] != "green" || r.version() != was.version() {
		t.Errorf("answered %s", r.body)
	}
	if got := a.must(200, "GET", flags, ""); got.body != was.body {
		t.Errorf("stored %s", got.body)
	}
}

func TestUnknownFieldsOfAPatch(t *testing.T) {
	a := start(t)
	was := a.create()
	r := a.must(200, "PATCH", flags, `{"Data":{"k":"v"}}`, mergePatch...)
	if got := r.header.Values("Warning"); !slices.Equal(got, []string{`299 - "unknown field \"Data\""`}) || r.body != was.body {
		t.Errorf("warnings %q, answer %s", got, r.body)
	}
	r = a.must(200, "PATCH", flags+"?fieldValidation=Ignore", `{"Data":{"k":"v"}}`, mergePatch...)
	if got := r.header.Values("Warning"); len(got) > 0 {
		t.Errorf("warnings %q", got)
	}
}

func TestPatchingTheLastFinalizerAwayDeletes(t *testing.T) {
	a := start(t)
	a.must(201, "POST", collection, `{"metadata":{"name":"flags","finalizers":["example.com/a"]}}`)
	a.must(200, "DELETE", flags, "")
	marked := a.must(200, "PATCH", flags, `{"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z","labels":{"a":"b"}}}`, mergePatch...)
	if marked.object.DeletionTimestamp == nil || marked.object.DeletionTimestamp.Year() != a.noon.Year() {
		t.Errorf("the deletion was patched to %s", marked.body)
	}
	r := a.must(200, "PATCH", flags, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`, strategicPatch...)
	if len(r.object.Finalizers) > 0 || r.version() != marked.version() {
		t.Errorf("answered %s", r.body)
	}
	isStatus(t, a.do("GET", flags, ""), 404, "NotFound", "")
}

func TestNamespacesArePatched(t *testing.T) {
	a := start(t)
	a.must(201, "POST", namespaces, named("team-a"))
	r := a.must(200, "PATCH", teamA, `{"metadata":{"labels":{"team":"a","kubernetes.io/metadata.name":"b"}},"status":{"phase":"Terminating"}}`, mergePatch...)
	for _, part := range []string{`"team":"a"`, `"kubernetes.io/metadata.name":"team-a"`, `"phase":"Active"`, `"finalizers":["kubernetes"]`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("no %s in %s", part, r.body)
		}
	}
	isStatus(t, a.do("PATCH", teamA, `{"metadata":{"name":"team-b"}}`, mergePatch...), 400, "BadRequest", "metadata.name")
	isStatus(t, a.do("PATCH", namespaces+"/team-b", `{}`, mergePatch...), 404, "NotFound", `namespaces "team-b" not found`)
}

// many is how many writers the tests below have.
const many = 100

// answersOf runs n writers at once and gives their answers.
func answersOf(n int, write func(i int) result) []result {
	answers := make([]result, n)
	together(n, func(i int) { answers[i] = write(i) })
	return answers
}

// allLanded checks that each writer made a version of its own, and that the
// object has the key of each.
func allLanded(t *testing.T, a *api, answers []result, codes ...int) {
	t.Helper()
	versions := map[string]bool{}
	for i, r := range answers {
		if !slices.Contains(codes, r.code) {
			t.Fatalf("writer %d: %d %s", i, r.code, r.body)
		}
		versions[r.version()] = true
	}
	got := a.must(200, "GET", flags, "").object
	if len(versions) != len(answers) || len(got.Data) != len(answers) {
		t.Errorf("%d writers made %d versions and %d keys", len(answers), len(versions), len(got.Data))
	}
	if state := a.store.State().Current.String(); !versions[state] {
		t.Errorf("the store is at version %s, which is no writer's", state)
	}
}

// Patches that name no version are never refused for what others write, and none
// is lost.
func TestParallelPatchesAllLand(t *testing.T) {
	for name, c := range map[string]struct {
		kind []string
		body string
	}{
		"merge":           {mergePatch, `{"data":{"k%d":"v"}}`},
		"strategic merge": {strategicPatch, `{"data":{"k%d":"v"}}`},
		"operations":      {jsonPatch, `[{"op":"add","path":"/data/k%d","value":"v"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			a.must(201, "POST", collection, flagsBody("", `{"k0":""}`))
			allLanded(t, a, answersOf(many, func(i int) result {
				return a.do("PATCH", flags, fmt.Sprintf(c.body, i), c.kind...)
			}), 200)
		})
	}
}

// Patches that name a version, or test a value, are as good as a PUT with one:
// of four that count together, none is lost.
func TestCountingByGuardedPatches(t *testing.T) {
	const writers, each = 4, 10
	guards := map[string]func(cm types.ConfigMap, next string) (kind []string, body string){
		"by version": func(cm types.ConfigMap, next string) ([]string, string) {
			return mergePatch, fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"mode":%q}}`, cm.ResourceVersion, next)
		},
		"by test": func(cm types.ConfigMap, next string) ([]string, string) {
			return jsonPatch, fmt.Sprintf(`[{"op":"test","path":"/data/mode","value":%q},{"op":"replace","path":"/data/mode","value":%q}]`, cm.Data["mode"], next)
		},
	}
	for name, guard := range guards {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			a.must(201, "POST", collection, flagsBody("", `{"mode":"0"}`))
			together(writers, func(int) {
				for done := 0; done < each; {
					cm := a.do("GET", flags, "").object
					n, err := strconv.Atoi(cm.Data["mode"])
					if err != nil {
						t.Error(err)
						return
					}
					kind, body := guard(cm, strconv.Itoa(n+1))
					switch r := a.do("PATCH", flags, body, kind...); r.code {
					case http.StatusOK:
						done++
					case http.StatusConflict, http.StatusUnprocessableEntity:
					default:
						t.Errorf("%d %s", r.code, r.body)
						return
					}
				}
			})
			if got := a.must(200, "GET", flags, "").object.Data["mode"]; got != strconv.Itoa(writers*each) {
				t.Errorf("%d times one is %s", writers*each, got)
			}
		})
	}
}

// interrupted starts a server to which flags is written by somebody else just
// before the first commit of a test.
func interrupted(t *testing.T, method, body string) *api {
	a, h := hook(t)
	a.create()
	var once sync.Once
	var other *api // sees the store without the hook
	h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
		once.Do(func() { other.must(200, method, flags, body, mergePatch...) })
		return h.Store.Commit(ctx, txn)
	}
	other = start(t, over(func(store.Store) store.Store { return h.Store }))
	return a
}

func TestPatchIsMadeAgainToWhatOthersWrote(t *testing.T) {
	a := interrupted(t, "PATCH", `{"data":{"theirs":"1"}}`)
	r := a.must(200, "PATCH", flags, `{"data":{"ours":"1"},"extra":1}`, mergePatch...)
	if d := r.object.Data; d["theirs"] != "1" || d["ours"] != "1" || d["mode"] != "blue" {
		t.Errorf("got %v", d)
	}
	if got := r.header.Values("Warning"); len(got) != 1 {
		t.Errorf("two attempts warn %q", got)
	}
}

func TestPatchWithAVersionIsNotMadeAgain(t *testing.T) {
	a := interrupted(t, "PATCH", `{"data":{"theirs":"1"}}`)
	r := a.do("PATCH", flags, `{"metadata":{"resourceVersion":"1"},"data":{"ours":"1"}}`, mergePatch...)
	isStatus(t, r, 409, "Conflict", "sent resourceVersion 1, current 2")
}

func TestPatchOfWhatIsDeletedMeanwhile(t *testing.T) {
	a := interrupted(t, "DELETE", "")
	isStatus(t, a.do("PATCH", flags, `{"data":{"ours":"1"}}`, mergePatch...), 404, "NotFound", `configmaps "flags" not found`)
}

// FuzzPatch sends any body as any patch. The server never fails, and what it
// stores is valid.
func FuzzPatch(f *testing.F) {
	kinds := [][]string{jsonPatch, mergePatch, strategicPatch, applyPatch}
	for i := range kinds {
		for _, body := range []string{
			`{}`, `[]`, `null`, `{"data":{"k":"v","mode":null}}`, `[{"op":"replace","path":""}]`, "data:\n  k: v\n",
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"},"binaryData":{"b":null},"data":{"mode":"blue"}}`,
			`{"metadata":{"resourceVersion":"1","finalizers":["a/b"],"ownerReferences":[{"uid":"1"},{"uid":"1"}],"managedFields":[{}]}}`,
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":[]}}`,
			`{"metadata":{"creationTimestamp":"9999-12-31T23:59:59-23:00","managedFields":[{"manager":"m","operation":"Apply","fieldsV1":{"f:x":1}}]}}`,
		} {
			f.Add(byte(i), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		a := start(t)
		a.create()
		r := a.do("PATCH", flags+"?fieldManager=m", string(body), kinds[int(kind)%len(kinds)]...)
		if r.code >= 500 || r.code != 200 && r.status.Reason == "" {
			t.Fatalf("%d %s", r.code, r.body)
		}
		stored := a.must(200, "GET", flags, "")
		if r.code == 200 && stored.body != r.body {
			t.Fatalf("answered %s, stored %s", r.body, stored.body)
		}
		// It is still an object that can be written as it was read.
		a.must(200, "PUT", flags, stored.body)
	})
}
