// Package servertest gives tests a real API server for ConfigMaps and
// Namespaces: cmserver itself, in memory, ready in milliseconds, and gone when
// the test ends. Nothing is downloaded, and no other process runs.
//
//	func TestReconciler(t *testing.T) {
//		s := servertest.Start(t)
//		clients := kubernetes.NewForConfigOrDie(s.Config())
//		…
//	}
//
// What a client sees is what it would see of kube-apiserver, for these two
// resources, with one difference to know: an update without a resourceVersion
// is refused unless UnconditionalPut says otherwise.
package servertest

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/inject"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// Option changes a server before it starts.
type Option func(*options)

type options struct {
	server         server.Options
	initialVersion int64
	inject         string
}

// UnconditionalPut says what becomes of an update without a resourceVersion. The
// default is server.PutNever; kube-apiserver does as server.PutAlways.
func UnconditionalPut(p server.UnconditionalPut) Option {
	return func(o *options) { o.server.UnconditionalPut = p }
}

// StrictNamespaces has namespaces created before anything is put into them, as
// kube-apiserver does. By default the first object makes its namespace.
func StrictNamespaces() Option {
	return func(o *options) { o.server.StrictNamespaces = true }
}

// InitialVersion is the first resourceVersion. By default it is a random one, so
// that no test comes to depend on it.
func InitialVersion(v int64) Option {
	return func(o *options) { o.initialVersion = v }
}

// Inject makes the server misbehave on purpose, as the flag --inject of cmserver
// does: "conflict=10%,lost=1x,seed=42". What can be given tells inject.Parse.
func Inject(faults string) Option {
	return func(o *options) { o.inject = faults }
}

// LogTo has the server log its requests and errors. By default it logs nothing.
func LogTo(l *slog.Logger) Option {
	return func(o *options) { o.server.Logger = l }
}

// Server is a running server.
type Server struct {
	// URL is where it listens, on the loopback interface.
	URL   string
	api   *server.Server
	store store.Store
}

// Start starts a server with nothing in it but the namespaces default,
// kube-public and kube-system. It ends with the test: its watches first, so that
// a client that still follows one holds nothing up.
func Start(t testing.TB, with ...Option) *Server {
	t.Helper()
	var o options
	for _, option := range with {
		option(&o)
	}
	faults, err := inject.Parse(o.inject)
	if err != nil {
		t.Fatalf("servertest: inject: %v", err)
	}
	o.server.Inject = faults
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: store.Revision(o.initialVersion)})
	if err != nil {
		t.Fatalf("servertest: open a store in memory: %v", err)
	}
	o.server.Store = st
	api := server.New(o.server)
	if err := api.Start(context.Background()); err != nil {
		t.Fatalf("servertest: %v", err)
	}
	hs := httptest.NewServer(api.Handler())
	t.Cleanup(func() {
		api.Stop()
		hs.Close()
		if err := st.Close(); err != nil {
			t.Errorf("servertest: close the store: %v", err)
		}
	})
	return &Server{URL: hs.URL, api: api, store: st}
}

// Config is how Kubernetes clients reach the server. Each call gives a new one,
// to be changed at will.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: s.URL,
		// A test is no load that a client would have to hold back from.
		QPS:   -1,
		Burst: -1,
	}
}

// Injected tells how often each fault struck that Inject asked for.
func (s *Server) Injected() map[inject.Kind]inject.Count { return s.api.Injected() }

// Compact gives up all states but the current one, as a server does with those
// that are older than its history. A watch from an older version, and a list that
// goes on from an older page, gets 410 Gone from then on: clients must list anew.
func (s *Server) Compact(ctx context.Context) error {
	return s.store.Compact(ctx, s.store.State().Current)
}
