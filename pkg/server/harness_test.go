package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The paths that tests use.
const (
	collection = "/api/v1/namespaces/default/configmaps"
	flags      = collection + "/flags"
)

// What clients accept that don't want the contents of a list.
const (
	acceptTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
	acceptPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// api is a server under test, over a store in memory.
type api struct {
	t      testing.TB
	server *server.Server
	store  store.Store // as the server sees it
	url    string
	client *http.Client
	// noon is what the server's clock shows.
	noon time.Time
}

// option changes the server before it starts.
type option func(*server.Options)

func putMode(m server.UnconditionalPut) option {
	return func(o *server.Options) { o.UnconditionalPut = m }
}

// over wraps the store that the server sees.
func over(wrap func(store.Store) store.Store) option {
	return func(o *server.Options) { o.Store = wrap(o.Store) }
}

// start serves a new store whose first version is 1. The server's Start is left
// out, so that the version is a test's own; begin calls it.
func start(t testing.TB, options ...option) *api {
	t.Helper()
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: 1})
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2024, 5, 6, 12, 0, 0, 345_000_000, time.UTC)
	o := server.Options{Store: st, Clock: func() time.Time { return noon }}
	for _, change := range options {
		change(&o)
	}
	srv := server.New(o)
	hs := httptest.NewServer(srv.Handler())
	t.Cleanup(func() {
		hs.Close()
		srv.Stop()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return &api{t: t, server: srv, store: o.Store, url: hs.URL, client: hs.Client(), noon: noon}
}

// begin is start with the server's Start. Version 1 are the system's namespaces.
func begin(t testing.TB, options ...option) *api {
	t.Helper()
	a := start(t, options...)
	if err := a.server.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return a
}

// result is an answer, read as whatever it may be.
type result struct {
	code   int
	header http.Header
	body   string
	status metav1.Status
	object types.ConfigMap
	list   types.ConfigMapList
	space  types.Namespace
	spaces corev1.NamespaceList
}

// version is the version of the object that was answered.
func (r result) version() string { return r.object.ResourceVersion }

// do sends a request. Headers come in pairs.
func (a *api) do(method, path, body string, headers ...string) result {
	a.t.Helper()
	return a.doContext(context.Background(), method, path, body, headers...)
}

func (a *api) doContext(ctx context.Context, method, path, body string, headers ...string) result {
	a.t.Helper()
	r, err := a.try(ctx, method, path, body, headers...)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (a *api) try(ctx context.Context, method, path, body string, headers ...string) (result, error) {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, reader)
	if err != nil {
		return result{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return a.answer(req)
}

// answer sends a request that is made.
func (a *api) answer(req *http.Request) (result, error) {
	resp, err := a.client.Do(req)
	if err != nil {
		return result{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	r := result{code: resp.StatusCode, header: resp.Header, body: string(text)}
	var kind metav1.TypeMeta
	if json.Unmarshal(text, &kind) == nil {
		into := map[string]any{"Status": &r.status, "ConfigMap": &r.object, "ConfigMapList": &r.list,
			"Namespace": &r.space, "NamespaceList": &r.spaces}[kind.Kind]
		if into != nil {
			_ = json.Unmarshal(text, into)
		}
	}
	return r, err
}

// must is do for requests that a test builds on.
func (a *api) must(code int, method, path, body string, headers ...string) result {
	a.t.Helper()
	r := a.do(method, path, body, headers...)
	if r.code != code {
		a.t.Fatalf("%s %s: got %d, want %d: %s", method, path, r.code, code, r.body)
	}
	return r
}

// flagsBody is the object flags as clients send it: with a version if there is
// one, and data as JSON.
func flagsBody(version, data string) string {
	if version != "" {
		version = fmt.Sprintf(`,"resourceVersion":%q`, version)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"flags"%s},"data":%s}`, version, data)
}

// create makes flags with mode blue.
func (a *api) create() result {
	a.t.Helper()
	return a.must(201, "POST", collection, flagsBody("", `{"mode":"blue"}`))
}

// isStatus checks that a refusal is a whole Status.
func isStatus(t testing.TB, r result, code int, reason, message string) {
	t.Helper()
	s := r.status
	if r.code != code || int(s.Code) != code || string(s.Reason) != reason || s.Status != metav1.StatusFailure ||
		s.Kind != "Status" || s.APIVersion != "v1" || !strings.Contains(strings.ReplaceAll(r.body, " ", ""), `"metadata":{`) {
		t.Errorf("got %d %s, want a Status %d %s", r.code, r.body, code, reason)
	}
	if !strings.Contains(s.Message, message) {
		t.Errorf("message %q does not contain %q", s.Message, message)
	}
	if got := r.header.Get("Content-Type"); got != types.MediaJSON {
		t.Errorf("content type %q", got)
	}
}

// hooked is a store of which a test overrides some methods.
type hooked struct {
	store.Store
	get     func(context.Context, store.Key) (store.Record, error)
	commit  func(context.Context, store.Txn) (store.Revision, error)
	healthy func() error
}

func (h *hooked) Get(ctx context.Context, key store.Key, at store.Revision) (store.Record, error) {
	if h.get != nil {
		return h.get(ctx, key)
	}
	return h.Store.Get(ctx, key, at)
}

func (h *hooked) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if h.commit != nil {
		return h.commit(ctx, txn)
	}
	return h.Store.Commit(ctx, txn)
}

func (h *hooked) Healthy() error {
	if h.healthy != nil {
		return h.healthy()
	}
	return h.Store.Healthy()
}

// hook starts a server over a hooked store.
func hook(t testing.TB, options ...option) (*api, *hooked) {
	t.Helper()
	h := &hooked{}
	a := start(t, append(options, over(func(s store.Store) store.Store { h.Store = s; return h }))...)
	return a, h
}

// named is the body of an object with nothing but a name.
func named(name string) string { return `{"metadata":{"name":"` + name + `"}}` }
