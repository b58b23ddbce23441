package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/store"
)

// trail is an audit log in memory, which can be made to fail.
type trail struct {
	mu    sync.Mutex
	text  bytes.Buffer
	fails error
}

func (l *trail) WriteLine(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil {
		return l.fails
	}
	l.text.Write(line)
	return nil
}

func (*trail) MaxLine() int { return 1 << 20 }

func (l *trail) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = err
}

func (l *trail) raw() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// events are those that were written since the last call, each of which must be
// understood by whoever knows Kubernetes'.
func (l *trail) events(t testing.TB) []v1.Event {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []v1.Event
	for line := range strings.Lines(l.text.String()) {
		var e v1.Event
		strict, err := kjson.UnmarshalStrict([]byte(line), &e)
		if err = errors.Join(append(strict, err)...); err != nil || e.Kind != "Event" || e.APIVersion != "audit.k8s.io/v1" {
			t.Errorf("no event: %v: %s", err, line)
		}
		all = append(all, e)
	}
	l.text.Reset()
	return all
}

// audited starts a server with an audit log by a policy, or by the default one.
func audited(t testing.TB, policy *audit.Policy, options ...option) (*api, *trail) {
	t.Helper()
	l := &trail{}
	if policy == nil {
		policy = audit.DefaultPolicy(false)
	}
	r := &audit.Recorder{Sink: l, Policy: func() *audit.Policy { return policy }}
	return start(t, append(options, func(o *server.Options) { o.Audit = r })...), l
}

// told is what an event tells, in short.
func told(e v1.Event) string {
	ref := e.ObjectRef
	if ref == nil {
		ref = &v1.ObjectReference{}
	}
	code := int32(0)
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	text := fmt.Sprintf("%s %s %s/%s", e.Stage, e.Verb, ref.Resource, ref.Name)
	if code != 0 {
		text += fmt.Sprintf(" %d", code)
	}
	if outcome := e.Annotations[audit.AnnotationOutcome]; outcome != "" {
		text += fmt.Sprintf(" %s %s>%s", outcome, e.Annotations[audit.AnnotationPrevious], e.Annotations[audit.AnnotationVersion])
	}
	for _, key := range []string{audit.AnnotationPartOf, audit.AnnotationParts, audit.AnnotationAnswered} {
		if value := e.Annotations[key]; value != "" {
			text += " " + strings.TrimPrefix(key, "cmserver.example.com/") + "=" + value
		}
	}
	return strings.TrimPrefix(text, "ResponseComplete ")
}

func toldAll(all []v1.Event) []string {
	var texts []string
	for _, e := range all {
		texts = append(texts, told(e))
	}
	return texts
}

// Every write is one line that tells from which version to which, whatever becomes of
// it; reads and probes are none.
func TestEveryWriteIsOneLineOfTheAuditLog(t *testing.T) {
	a, l := audited(t, nil)
	const marked = `{"metadata":{"name":"held","finalizers":["example.com/x"]}}`
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		want                     []string
	}{
		{"create, and the namespace with it", "POST", collection, flagsBody("", `{"a":"1"}`), nil, []string{
			"create namespaces/default created none>1 part-of=create", "create configmaps/flags 201 created none>1 parts=1"}},
		{"create what is there", "POST", collection, flagsBody("", `{"a":"1"}`), nil, []string{"create configmaps/flags 409"}},
		{"update", "PUT", flags, flagsBody("1", `{"a":"2"}`), nil, []string{"update configmaps/flags 200 updated 1>2"}},
		{"stale update", "PUT", flags, flagsBody("1", `{"a":"3"}`), nil, []string{"update configmaps/flags 409"}},
		{"update that changes nothing", "PUT", flags, flagsBody("2", `{"a":"2"}`), nil, []string{"update configmaps/flags 200 unchanged 2>2"}},
		{"rehearsed update", "PUT", flags + "?dryRun=All", flagsBody("2", `{"a":"9"}`), nil, []string{"update configmaps/flags 200 dry-run 2>"}},
		{"update of nothing", "PUT", collection + "/none", strings.Replace(flagsBody("2", `{}`), "flags", "none", 1), nil, []string{"update configmaps/none 404"}},
		{"patch", "PATCH", flags, `{"data":{"b":"1"}}`, mergePatch, []string{"patch configmaps/flags 200 updated 2>3"}},
		{"patch that changes nothing", "PATCH", flags, `{"data":{"b":"1"}}`, mergePatch, []string{"patch configmaps/flags 200 unchanged 3>3"}},
		{"apply", "PATCH", flags + "?fieldManager=x", flagsBody("", `{"c":"1"}`), applyPatch, []string{"patch configmaps/flags 200 updated 3>4"}},
		{"apply again", "PATCH", flags + "?fieldManager=x", flagsBody("", `{"c":"1"}`), applyPatch, []string{"patch configmaps/flags 200 unchanged 4>4"}},
		{"apply that creates", "PATCH", collection + "/made?fieldManager=x", strings.Replace(flagsBody("", `{"c":"1"}`), "flags", "made", 1), applyPatch,
			[]string{"patch configmaps/made 201 created none>5"}},
		{"rehearsed create", "POST", collection + "?dryRun=All", named("new"), nil, []string{"create configmaps/new 201 dry-run none>"}},
		{"rehearsed delete", "DELETE", flags, `{"dryRun":["All"]}`, nil, []string{"delete configmaps/flags 200 dry-run 4>"}},
		{"delete", "DELETE", flags, "", nil, []string{"delete configmaps/flags 200 deleted 4>6"}},
		{"delete again", "DELETE", flags, "", nil, []string{"delete configmaps/flags 404"}},
		{"create what finalizers hold", "POST", collection, marked, nil, []string{"create configmaps/held 201 created none>7"}},
		{"delete of a collection", "DELETE", collection, "", nil, []string{
			"delete configmaps/held updated 7>8 part-of=deletecollection", "delete configmaps/made deleted 5>9 part-of=deletecollection",
			"deletecollection configmaps/ 200 parts=2"}},
		{"the last finalizer", "PATCH", collection + "/held", `{"metadata":{"finalizers":null}}`, mergePatch, []string{"patch configmaps/held 200 deleted 8>10"}},
		{"a namespace", "POST", "/api/v1/namespaces", named("team"), nil, []string{"create namespaces/team 201 created none>11"}},
		{"deletion of a namespace", "DELETE", "/api/v1/namespaces/team", "", nil, []string{"delete namespaces/team 200 updated 11>12"}},
		{"malformed", "POST", collection, `{"metadata":`, nil, []string{"create configmaps/ 400"}},
		{"bad timeout", "DELETE", flags + "?timeout=x", "", nil, []string{"delete configmaps/flags 400"}},
		{"no verb of the resource", "POST", flags, "{}", nil, []string{"create configmaps/flags 405"}},
		{"a resource that there is not", "PUT", "/api/v1/namespaces/x/secrets/y", "{}", nil, []string{"update secrets/y 404"}},
		{"a path that is none", "DELETE", "/api/v1/namespaces/x/./configmaps/y", "", nil, []string{"delete ./configmaps 404"}},
		{"a question", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "{}", nil, nil},
		{"read", "GET", flags, "", nil, nil},
		{"list", "GET", collection, "", nil, nil},
		{"watch", "GET", collection + "?watch=1&resourceVersion=999", "", nil, nil},
		{"probe", "GET", "/readyz", "", nil, nil},
		{"version", "GET", "/version", "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.name == "watch" {
				cancel() // what it would tell is nothing
			}
			_, _ = a.try(ctx, c.method, c.path, c.body, c.headers...)
			if got := toldAll(l.events(t)); !slices.Equal(got, c.want) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// The objects of a namespace that was deleted are deleted by the server itself.
func TestWhatTheServerDoesByItselfIsAudited(t *testing.T) {
	l := &trail{}
	policy := audit.DefaultPolicy(false)
	a := begin(t, func(o *server.Options) {
		o.Audit = &audit.Recorder{Sink: l, Policy: func() *audit.Policy { return policy }}
	})
	const made = "created none>1"
	if got, want := toldAll(l.events(t)), []string{"create namespaces/default " + made, "create namespaces/kube-public " + made, "create namespaces/kube-system " + made}; !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
	a.must(201, "POST", "/api/v1/namespaces/team/configmaps", named("a"))
	l.events(t)
	a.must(200, "DELETE", "/api/v1/namespaces/team", "")
	for range 500 {
		if strings.Contains(l.raw(), `previous-version":"3"`) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	all := l.events(t)
	// The server may begin before the request's own line is written.
	slices.SortFunc(all, func(a, b v1.Event) int {
		return strings.Compare(a.Annotations[audit.AnnotationVersion], b.Annotations[audit.AnnotationVersion])
	})
	want := []string{"delete namespaces/team 200 updated 2>3", "delete configmaps/a deleted 2>4", "delete namespaces/team deleted 3>5"}
	if got := toldAll(all); !slices.Equal(got, want) {
		t.Fatalf("told %q, want %q", got, want)
	}
	if e := all[1]; e.User.Username != audit.SystemUser || e.RequestURI != "/api/v1/namespaces/team/configmaps/a" || e.AuditID == "" {
		t.Errorf("told %+v", e)
	}
}

// For one object, the versions of all writers make one chain: no gap, and no fork.
func TestTheAuditLogHasTheWholeChainOfVersions(t *testing.T) {
	a, l := audited(t, nil, putMode(server.PutAlways))
	a.create()
	const writers, writes = 8, 25
	var wait sync.WaitGroup
	for i := range writers {
		wait.Go(func() {
			for n := range writes {
				body, value := "", fmt.Sprintf("%d-%d", i, n)
				switch n % 5 {
				case 0:
					got := a.do("GET", flags, "")
					a.do("PUT", flags, flagsBody(got.version(), `{"a":"`+value+`"}`)) // which may be stale
				case 1:
					a.do("PUT", flags, flagsBody("", `{"a":"`+value+`"}`))
				case 2:
					a.do("PATCH", flags+"?fieldManager=m"+fmt.Sprint(i), flagsBody("", `{"k`+fmt.Sprint(i)+`":"`+value+`"}`), applyPatch...)
				case 3:
					body = `{"data":{"b":"` + value + `"}}`
					a.do("PATCH", flags, body, mergePatch...)
				default:
					if i == 0 {
						a.do("DELETE", flags, "")
						continue
					}
					a.do("POST", collection, flagsBody("", `{"a":"`+value+`"}`))
				}
			}
		})
	}
	wait.Wait()
	next := map[string]string{} // from each version
	acknowledged := 0
	for _, e := range l.events(t) {
		outcome := audit.Outcome(e.Annotations[audit.AnnotationOutcome])
		if e.ObjectRef.Resource != "configmaps" || outcome == "" || outcome == audit.Unchanged {
			continue
		}
		from, to := e.Annotations[audit.AnnotationPrevious], e.Annotations[audit.AnnotationVersion]
		if from == "none" {
			from = "none before " + to // there is one for each life of the object
		}
		if other, ok := next[from]; ok {
			t.Errorf("both %s and %s come from %s", other, to, from)
		}
		next[from] = to
		acknowledged++
	}
	heads := a.must(200, "GET", flags+"/history", "")
	var history struct {
		Items []struct {
			ResourceVersion string
			Deleted         bool
		}
	}
	if err := json.Unmarshal([]byte(heads.body), &history); err != nil {
		t.Fatal(err)
	}
	for i, v := range history.Items {
		from := "none before " + v.ResourceVersion
		if i+1 < len(history.Items) && !history.Items[i+1].Deleted {
			from = history.Items[i+1].ResourceVersion
		}
		if i+1 == len(history.Items) {
			continue // what came before it is kept no more
		}
		if next[from] != v.ResourceVersion {
			t.Errorf("version %s comes from %s in the history; the audit log has %q", v.ResourceVersion, from, next[from])
		}
	}
	if acknowledged < writers || len(history.Items) < 2 {
		t.Errorf("%d writes, %d versions: too few to tell", acknowledged, len(history.Items))
	}
}

// In no line is there a secret, wherever it was sent.
func TestNoSecretIsInTheAuditLog(t *testing.T) {
	everything := policyOf(t, "rules: [{level: Metadata}]")
	a, l := audited(t, everything, access(&judge{}))
	const secret = "Hunter2Secret"
	for _, body := range []string{
		`{"metadata":{"name":"flags"},"data":{"password":"` + secret + `"}}`,
		`{"metadata":{"name":"flags"},"data":{"` + secret + ` !":"x"}}`,
		`{"metadata":{"name":"flags","labels":{"a":"` + secret + ` !"}}}`,
		`{"metadata":{"name":"flags"},"data":"` + secret + `"}`,
		`{"` + secret + `":1}`, secret, `{"kind":"` + secret + `"}`,
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			for _, media := range []string{"application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"} {
				path := flags
				if method == "POST" {
					path = collection
				}
				a.do(method, path+"?access_token="+secret+"&token="+secret+"&"+secret+"&fieldManager=x&a%5F"+secret+"=1", body,
					"Content-Type", media, "Authorization", "Bearer "+secret, "Cookie", "session="+secret, "Proxy-Authorization", "Basic "+secret,
					"X-Api-Key", secret, "Test-User", "jane")
			}
		}
	}
	a.do("DELETE", flags+"?access_token="+secret, "", "Authorization", "Bearer "+secret, "Test-User", "impostor")
	a.do("GET", "/version?id_token="+secret, "", "Authorization", "Bearer "+secret)
	text := l.raw()
	if len(l.events(t)) < 280 {
		t.Errorf("too few events")
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, secret) {
			t.Fatalf("told: %s", line)
		}
	}
}

// policyOf is a policy of which the head is left out.
func policyOf(t testing.TB, rules string) *audit.Policy {
	t.Helper()
	p, err := audit.Parse([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n"+rules), false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wary is grouped, and takes no impostor.
type wary struct{ grouped }

func (w wary) Authenticate(r *http.Request) (user.Info, error) {
	if r.Header.Get("Test-User") == "impostor" {
		return nil, errors.New("an impostor")
	}
	return w.grouped.Authenticate(r)
}

// Who is refused is told, and who acts as whom.
func TestTheAuditLogTellsWho(t *testing.T) {
	rules := rulesOf(t, impersonation)
	a, l := audited(t, nil, func(o *server.Options) { o.Authenticator, o.Authorizer = wary{}, rules })
	for _, c := range []struct {
		name    string
		headers []string
		want    string
	}{
		{"a user", []string{"Test-User", "jane"}, "jane [system:authenticated] as  404 allow"},
		{"one who may not", []string{"Test-User", "joe"}, "joe [system:authenticated] as  403 forbid"},
		{"bad credentials", []string{"Test-User", "impostor"}, " [] as  401 "},
		{"nobody", nil, "system:anonymous [system:unauthenticated] as  403 forbid"},
		{"as another", []string{"Test-User", "boss", "Impersonate-User", "jane"}, "boss [system:authenticated] as jane 404 allow"},
		{"as another who may not be", []string{"Test-User", "boss", "Impersonate-User", "joe"}, "boss [system:authenticated] as  403 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			a.do("DELETE", flags, "", append(c.headers, "User-Agent", strings.Repeat("u", 2000))...)
			all := l.events(t)
			if len(all) != 1 {
				t.Fatalf("told %q", toldAll(all))
			}
			e, as := all[0], ""
			if e.ImpersonatedUser != nil {
				as = e.ImpersonatedUser.Username
			}
			got := fmt.Sprintf("%s %v as %s %d %s", e.User.Username, e.User.Groups, as, e.ResponseStatus.Code, e.Annotations["authorization.k8s.io/decision"])
			if got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
			if ip := net.ParseIP(strings.Join(e.SourceIPs, "")); ip == nil || !ip.IsLoopback() || !strings.HasSuffix(e.UserAgent, "u...TRUNCATED") || len(e.UserAgent) > 1100 {
				t.Errorf("told %q %q", e.SourceIPs, e.UserAgent)
			}
		})
	}
	// A proxy that nobody asked for is not believed.
	a.do("DELETE", flags, "", "X-Forwarded-For", "10.9.9.9", "X-Real-Ip", "10.9.9.9")
	if text := l.raw(); strings.Contains(text, "10.9.9.9") {
		t.Errorf("told %s", text)
	}
}

// The id that a client gets is the one in the log, and the event is there before the
// answer.
func TestAnEventIsWrittenBeforeItsAnswer(t *testing.T) {
	a, l := audited(t, nil)
	for range 50 {
		r := a.do("POST", collection, `{"metadata":{"generateName":"a-"}}`)
		all := l.events(t)
		last := all[len(all)-1]
		if string(last.AuditID) != r.header.Get("Audit-Id") || last.ObjectRef.Name != r.object.Name || last.ObjectRef.UID != r.object.UID {
			t.Fatalf("told %+v", last)
		}
	}
}

// What can't be logged is served, or refused before it begins.
func TestAnAuditLogThatCantBeWritten(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict=%t", strict), func(t *testing.T) {
			l, policy := &trail{}, audit.DefaultPolicy(strict)
			a := start(t, func(o *server.Options) {
				o.Audit = &audit.Recorder{Sink: l, Policy: func() *audit.Policy { return policy }, Strict: strict}
			})
			l.fail(errors.New("no room"))
			r := a.do("POST", collection, flagsBody("", "{}"))
			if !strict && r.code != 201 {
				t.Errorf("answered %d", r.code)
			}
			if strict {
				isStatus(t, r, 503, "ServiceUnavailable", "nothing was stored")
			}
			if got := a.do("GET", flags, "").code; (got == 404) != strict {
				t.Errorf("then %d", got)
			}
			l.fail(nil)
			a.must(200, "DELETE", collection, "")
			if got := toldAll(l.events(t)); strict && (len(got) != 2 || got[0] != "RequestReceived deletecollection configmaps/") {
				t.Errorf("told %q", got)
			}
		})
	}
}

// A panic, and a write of which nobody knows whether it was made, are told as such.
func TestTheAuditLogTellsWhatWentWrong(t *testing.T) {
	for _, c := range []struct {
		name   string
		commit func() error
		want   string
	}{
		{"a panic", func() error { panic("a secret") }, "Panic update configmaps/flags 500 unknown 1>"},
		{"too slow a disk", func() error { return store.ErrUnknown }, "update configmaps/flags 504 unknown 1>"},
		{"a failed disk", func() error { return store.ErrFailed }, "update configmaps/flags 500 unknown 1>"},
		{"a full disk", func() error { return store.ErrFull }, "update configmaps/flags 507"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, policy := &trail{}, audit.DefaultPolicy(false)
			a, h := hook(t, func(o *server.Options) {
				o.Audit = &audit.Recorder{Sink: l, Policy: func() *audit.Policy { return policy }}
			})
			version := a.create().version()
			l.events(t)
			h.commit = func(context.Context, store.Txn) (store.Revision, error) { return 0, c.commit() }
			a.do("PUT", flags, flagsBody(version, `{"a":"2"}`))
			if strings.Contains(l.raw(), "a secret") {
				t.Errorf("told %s", l.raw())
			}
			if got := toldAll(l.events(t)); len(got) != 1 || got[0] != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

// A write whose answer got lost was made.
func TestTheAuditLogTellsOfLostAnswers(t *testing.T) {
	a, l := audited(t, nil, injecting(t, "lost=100%"))
	if _, err := a.try(t.Context(), "POST", collection, flagsBody("", "{}")); err == nil {
		t.Error("it was answered")
	}
	for range 500 {
		if strings.Contains(l.raw(), audit.AnnotationAnswered) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	got := toldAll(l.events(t))
	if want := "create configmaps/flags created none>1 parts=1 answered=false"; got[len(got)-1] != want {
		t.Errorf("told %q", got)
	}
}

// A watch is told when it starts, and when it is over.
func TestTheAuditLogTellsOfWatches(t *testing.T) {
	a, l := audited(t, policyOf(t, "rules: [{level: Metadata, verbs: [watch]}]"))
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", a.url+collection+"?watch=1&resourceVersion=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	const started = "ResponseStarted watch configmaps/ 200"
	if got := toldAll(l.events(t)); !slices.Equal(got, []string{"RequestReceived watch configmaps/", started}) {
		t.Errorf("told %q", got)
	}
	cancel()
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	for range 500 {
		if l.raw() != "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := toldAll(l.events(t)); !slices.Equal(got, []string{"watch configmaps/ 200"}) {
		t.Errorf("then %q", got)
	}
}
