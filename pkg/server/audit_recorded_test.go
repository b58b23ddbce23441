package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/audit"
)

// tok is who the recorded requests came from.
type tok struct{}

func (tok) Authenticate(r *http.Request) (user.Info, error) {
	switch r.Header.Get("Authorization") {
	case "":
		return nil, nil
	case "Bearer tok":
		return &user.DefaultInfo{Name: "admin", UID: "1", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}, nil
	}
	return nil, errors.New("an unknown token")
}

// recordedRequests are those whose events were recorded, in each of the namespaces
// full, body and meta, whose levels the recorded policy tells.
func recordedRequests(a *api, namespace string) {
	const yes, media = "Bearer tok", "application/json"
	base := "/api/v1/namespaces/" + namespace + "/configmaps"
	send := func(method, path, body, media, token string, headers ...string) result {
		headers = append(headers, "User-Agent", "rec/1", "Content-Type", media)
		if token != "" {
			headers = append(headers, "Authorization", token)
		}
		return a.do(method, base+path, body, headers...)
	}
	v := send("POST", "", `{"metadata":{"name":"flags"},"data":{"a":"1"}}`, media, yes).version()
	send("POST", "", `{"metadata":{"name":"flags"},"data":{"a":"1"}}`, media, yes)
	send("POST", "", `{"metadata":{"generateName":"gen-"},"data":{"a":"1"}}`, media, yes)
	send("POST", "", `{"metadata":{"name":"BAD"}}`, media, yes)
	send("POST", "", `{"metadata":`, media, yes)
	send("GET", "/flags", "", media, yes)
	send("HEAD", "/flags", "", media, yes)
	send("GET", "?limit=1", "", media, yes)
	send("PUT", "/flags", `{"metadata":{"name":"flags","resourceVersion":"1"},"data":{"a":"2"}}`, media, yes)
	send("PUT", "/flags", `{"metadata":{"name":"flags","resourceVersion":"`+v+`"},"data":{"a":"2"}}`, media, yes)
	send("PUT", "/flags?dryRun=All", `{"metadata":{"name":"flags"},"data":{"a":"3"}}`, media, yes)
	send("PATCH", "/flags", `{"data":{"b":"1"}}`, "application/merge-patch+json", yes)
	send("PATCH", "/flags?fieldManager=me&force=true", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flags}\ndata: {c: \"1\"}\n", "application/apply-patch+yaml", yes)
	a.glimpse(base+"?watch=1&timeoutSeconds=1", "User-Agent", "rec/1", "Authorization", yes)
	send("DELETE", "/flags", "", media, yes)
	send("DELETE", "/flags", "", media, yes)
	send("DELETE", "", "", media, yes)
	send("DELETE", "/flags", "", media, "Bearer wrong")
	send("DELETE", "/flags", "", media, yes, "Impersonate-User", "jane")
	send("GET", "?watch=1&timeoutSeconds=1", "", media, yes, "Impersonate-User", "jane")
	send("DELETE", "/flags", "", media, "")
}

// glimpse begins a watch, and leaves it.
func (a *api) glimpse(path string, headers ...string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.url+path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// The events are those that a real kube-apiserver wrote for the same requests under
// the same policy, but for what differs on purpose.
func TestTheAuditLogIsAsKubeAPIServers(t *testing.T) {
	recorded, err := os.ReadFile("testdata/audit/kube-apiserver.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := audit.Load("testdata/audit/policy.yaml", false)
	if err != nil {
		t.Fatal(err)
	}
	rules := rulesOf(t, impersonation) // which give jane nothing in these namespaces
	a, l := audited(t, policy, putMode(server.PutAlways), func(o *server.Options) { o.Authenticator, o.Authorizer = tok{}, rules })
	for _, namespace := range []string{"full", "body", "meta"} {
		a.must(201, "POST", "/api/v1/namespaces", named(namespace), "Authorization", "Bearer tok")
		l.events(t)
		recordedRequests(a, namespace)
		ended(a, l)
		got, want := comparable(t, l.raw(), namespace), comparable(t, string(recorded), namespace)
		l.events(t)
		if len(got) != len(want) {
			t.Errorf("%s: %d events, recorded are %d", namespace, len(got), len(want))
		}
		for i := range min(len(got), len(want)) {
			if !reflect.DeepEqual(got[i], want[i]) {
				ours, _ := json.Marshal(got[i])
				real, _ := json.Marshal(want[i])
				t.Errorf("%s: event %d\nours %s\nreal %s", namespace, i, ours, real)
			}
		}
	}
}

// ended waits for the end of watches to be logged, which comes after their answers.
func ended(a *api, l *trail) {
	for range 10_000 {
		text := l.raw()
		started, complete := 0, 0
		for line := range strings.Lines(text) {
			if strings.Contains(line, `"verb":"watch"`) {
				started += strings.Count(line, `"stage":"ResponseStarted"`)
				complete += strings.Count(line, `"stage":"ResponseComplete"`)
			}
		}
		if started == complete {
			return
		}
		a.do("GET", "/readyz", "")
	}
}

// comparable are the events of a namespace without what no two servers have in
// common, and without what differs on purpose.
func comparable(t *testing.T, log, namespace string) []map[string]any {
	t.Helper()
	var all, watches []map[string]any
	for line := range strings.Lines(log) {
		var e map[string]any
		decoder := json.NewDecoder(bytes.NewReader([]byte(line)))
		decoder.UseNumber()
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		ref, _ := e["objectRef"].(map[string]any)
		annotations, _ := e["annotations"].(map[string]any)
		if ref["namespace"] != namespace || e["userAgent"] != "rec/1" || annotations[audit.AnnotationPartOf] != nil {
			continue // parts are only ours
		}
		if ref["name"] == "flags" && e["verb"] == "get" && strings.Contains(line, `"MethodNotAllowed"`) {
			e["responseStatus"] = map[string]any{"metadata": map[string]any{}, "code": json.Number("200")} // HEAD is served here
			delete(e, "responseObject")
		}
		normalize(e)
		if e["verb"] == "watch" && e["stage"] == "ResponseComplete" {
			watches = append(watches, e) // they end when they do
			continue
		}
		all = append(all, e)
	}
	slices.SortFunc(watches, func(a, b map[string]any) int { return cmp.Compare(codeOf(a), codeOf(b)) })
	return append(all, watches...)
}

// codeOf is that of the answer.
func codeOf(e map[string]any) json.Number {
	status, _ := e["responseStatus"].(map[string]any)
	code, _ := status["code"].(json.Number)
	return code
}

func normalize(e map[string]any) {
	for _, key := range []string{"auditID", "requestReceivedTimestamp", "stageTimestamp", "authenticationMetadata"} {
		delete(e, key)
	}
	annotations, _ := e["annotations"].(map[string]any)
	for key := range annotations {
		if strings.HasPrefix(key, "cmserver.example.com/") {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		delete(e, "annotations")
	}
	status, _ := e["responseStatus"].(map[string]any)
	if status["code"] == json.Number("401") {
		e["stage"] = "ResponseComplete" // ResponseStarted there, of what was never received
	}
	ref := e["objectRef"].(map[string]any)
	if name, _ := ref["name"].(string); strings.HasPrefix(name, "gen-") {
		delete(ref, "name") // there only the answer has the name that was generated
	}
	if e["verb"] == "create" || e["verb"] == "patch" || e["verb"] == "update" || e["verb"] == "delete" {
		delete(ref, "uid") // there only that which the client sent
	}
	for _, o := range []any{status, ref, e["requestObject"], e["responseObject"]} {
		scrub(o, status["reason"])
	}
}

// scrub takes out what no two servers have in common, and the words of refusals
// that differ on purpose.
func scrub(o, reason any) {
	switch o := o.(type) {
	case map[string]any:
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "time", "continue"} {
			if o[key] != nil {
				o[key] = "some"
			}
		}
		if name, _ := o["name"].(string); strings.HasPrefix(name, "gen-") {
			o["name"] = "gen-"
		}
		if reason == "Conflict" || reason == "BadRequest" || reason == "Invalid" {
			delete(o, "message")
			delete(o, "causes")
		}
		for _, inner := range o {
			scrub(inner, reason)
		}
	case []any:
		for _, inner := range o {
			scrub(inner, reason)
		}
	}
}
