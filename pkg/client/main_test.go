package client_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// namespace is where the tests' objects are.
const namespace = "team-a"

// realAPI is the server itself, over a store in memory.
func realAPI(tb testing.TB) http.Handler {
	tb.Helper()
	store, err := local.Open(local.Options{InMemory: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return server.New(server.Options{Store: store, Version: version.Info{GitVersion: "v9.9.9"}}).Handler()
}

// listen serves a handler on a free port and returns its address.
func listen(tb testing.TB, h http.Handler) string {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	tb.Cleanup(s.Close)
	return s.URL
}

// connect makes a client, closed with the test.
func connect(tb testing.TB, where client.TargetOptions, o client.Options) *client.Client {
	tb.Helper()
	target, err := client.ResolveTarget(where)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := client.New(target, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.CloseIdleConnections)
	return c
}

// mapsOf are the ConfigMaps of the tests' namespace on a server with that
// handler.
func mapsOf(tb testing.TB, h http.Handler) *client.ConfigMaps {
	tb.Helper()
	return connect(tb, client.TargetOptions{Server: listen(tb, h)}, client.Options{}).ConfigMaps(namespace)
}

// stub answers every request alike.
func stub(code int, contentType, body string, header ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // a client that is gone needs no answer
	})
}

// flags is a document with one key, as a person would write it.
func flags(key, value string) types.Document {
	d := types.NewDocument(namespace, "flags")
	d.Set(types.Field{Section: "data", Key: key}, value)
	return d
}

// mustCreate stores a document.
func mustCreate(tb testing.TB, m *client.ConfigMaps, d types.Document) types.Document {
	tb.Helper()
	made, err := m.Create(tb.Context(), d, "")
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// mustGet reads a document.
func mustGet(tb testing.TB, m *client.ConfigMaps, name string) types.Document {
	tb.Helper()
	d, err := m.Get(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// value is a key of data, nil if it is not there.
func value(d types.Document, key string) any {
	return d.Fields()[types.Field{Section: "data", Key: key}]
}

// recorded counts the requests that reach a handler.
type recorded struct {
	next http.Handler

	mu       sync.Mutex
	requests []*http.Request // guarded by mu
}

func record(next http.Handler) *recorded { return &recorded{next: next} }

func (r *recorded) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, req)
	r.mu.Unlock()
	r.next.ServeHTTP(w, req)
}

// sent are the requests with that method.
func (r *recorded) sent(method string) []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*http.Request
	for _, req := range r.requests {
		if req.Method == method {
			found = append(found, req)
		}
	}
	return found
}

// calls are the verbs, each as a function, for claims that hold for several.
var calls = map[string]func(context.Context, *client.ConfigMaps) error{
	"get": func(ctx context.Context, m *client.ConfigMaps) error {
		_, err := m.Get(ctx, "flags")
		return err
	},
	"list": func(ctx context.Context, m *client.ConfigMaps) error {
		_, err := m.List(ctx, client.ListOptions{})
		return err
	},
	"create": func(ctx context.Context, m *client.ConfigMaps) error {
		_, err := m.Create(ctx, flags("a", "1"), "id-1")
		return err
	},
	"put": func(ctx context.Context, m *client.ConfigMaps) error {
		d := flags("a", "1")
		d.SetMeta("resourceVersion", "1")
		_, err := m.Put(ctx, d, "id-1")
		return err
	},
	"patch": func(ctx context.Context, m *client.ConfigMaps) error {
		_, err := m.Patch(ctx, "flags", apitypes.MergePatchType, []byte(`{"data":{"a":"1"}}`), client.PatchOptions{}, "id-1")
		return err
	},
	"delete": func(ctx context.Context, m *client.ConfigMaps) error {
		return m.Delete(ctx, "flags", retry.Version{}, "id-1")
	},
}

// writes are those of calls that change something.
var writes = []string{"create", "put", "patch", "delete"}
