// Package server is the HTTP side of the Kubernetes ConfigMap API over a
// store.Store. Every write is a compare-and-swap on the version that the client
// read, or, where the client gives none, on the one that the server has just
// read; what was made from an older version is refused with 409 Conflict.
//
//	s := server.New(server.Options{Store: st})
//	http.Serve(listener, s.Handler())
//
// A handler returns an answer or an error, and respond.go alone turns either
// into bytes, so every failure is a Status whose code is the HTTP status.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"example.com/cmctl/pkg/server/audit"
	"example.com/cmctl/pkg/server/authn"
	"example.com/cmctl/pkg/server/authz"
	"example.com/cmctl/pkg/server/fieldmanager"
	"example.com/cmctl/pkg/server/inject"
	"example.com/cmctl/pkg/server/quota"
	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// UnconditionalPut says what becomes of a PUT without a resourceVersion.
type UnconditionalPut string

// The values of UnconditionalPut.
const (
	// PutNever refuses it: it is how updates get lost. The default.
	PutNever UnconditionalPut = "never"
	// PutHelm lets it through for Helm's release records only, whose driver
	// sends none.
	PutHelm UnconditionalPut = "helm"
	// PutAlways lets it through, as kube-apiserver does.
	PutAlways UnconditionalPut = "always"
)

// What Options default to.
const (
	DefaultMaxBodyBytes        = 3 << 20
	DefaultMaxInFlight         = 1024
	DefaultMaxMutatingInFlight = 1024
	DefaultMaxWatches          = 10_000
	DefaultMaxReceiving        = 16_384
	DefaultMaxReceivedBytes    = 64 << 20
	DefaultMaxAnswerBytes      = 256 << 20
	DefaultRequestTimeout      = time.Minute
)

// renderCacheBytes is how much protobuf is kept, so that many clients can be
// sent what was encoded once.
const renderCacheBytes = 32 << 20

// historyPath is the subresource, below an object.
const historyPath = "/history"

// Options are what a Server is made from. Only Store must be set.
type Options struct {
	// Store keeps the data. The server does not close it.
	Store store.Store
	// Logger takes the access log and the causes of internal errors; nil: none.
	Logger *slog.Logger
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	// UnconditionalPut is PutNever if empty.
	UnconditionalPut UnconditionalPut
	// MaxBodyBytes limits request bodies; what is larger gets 413.
	MaxBodyBytes int64
	// MaxInFlight limits how many requests that read run at once, and
	// MaxMutatingInFlight how many that write; those beyond get 429. Neither takes
	// room from the other.
	MaxInFlight         int
	MaxMutatingInFlight int
	// MaxInFlightPerUser limits how many of either one user may have; 0: half. Who is
	// not known counts by address, and programs of this machine are not told apart
	// where nobody is asked who they are.
	MaxInFlightPerUser int
	// MaxWatches limits how many watches run at once, beside those requests, and
	// MaxWatchesPerUser how many of one user, 0: half; those beyond get 429.
	MaxWatches        int
	MaxWatchesPerUser int
	// MaxReceiving limits how many bodies may be on their way in at once, and
	// MaxReceivedBytes how much memory all bodies have until their requests are over,
	// beyond 4 KiB each; one user may have half of either. Where there is no room for
	// one more, the body that comes slowest is given up, with 429.
	MaxReceiving     int
	MaxReceivedBytes int64
	// MaxAnswerBytes limits how much memory all answers have until they are sent, beyond
	// 16 KiB each; one user may have half. A read beyond gets 429, unless an answer can
	// be given up that has been taken slowly for some seconds: its connection is cut.
	MaxAnswerBytes int64
	// RequestTimeout limits how long one request may take that is no watch.
	RequestTimeout time.Duration
	// StrictNamespaces refuses to create objects in a namespace that was not
	// created before. Otherwise the first object makes its namespace.
	StrictNamespaces bool
	// Authenticator finds out who sends a request; nil: nobody is asked, and
	// histories name no user.
	Authenticator authn.Authenticator
	// Authorizer decides what they may do; nil: everything.
	Authorizer authz.Authorizer
	// Quotas are the bounds of what a namespace holds, each of which must hold; nil:
	// there are none.
	Quotas func(namespace string) []quota.Quota
	// Audit logs who did what; nil: it is not logged.
	Audit *audit.Recorder
	// Concerns are told by probes that are asked for ?verbose.
	Concerns []Concern
	// Inject makes the server misbehave on purpose, for the tests of clients; the
	// zero Spec leaves it alone.
	Inject inject.Spec
	// Version is what /version answers; zero: that of a development build.
	Version version.Info
}

// Server answers the API. It is made by New and may be used by any number of
// goroutines.
type Server struct {
	store   store.Store
	log     *slog.Logger
	clock   func() time.Time
	options Options
	handler http.Handler
	reads   places
	writes  places
	intakes intakes
	answers answers
	queue   queue // of writes that name no version
	fields  map[*types.Resource]*fieldmanager.Manager
	watches watches
	render  *render.Renderer
	faults  *inject.Faults // nil unless they are wanted
	refused refused

	cancel     context.CancelFunc // ends background; nil before Start
	background sync.WaitGroup
}

// New makes a Server that is ready to serve.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.UnconditionalPut == "" {
		o.UnconditionalPut = PutNever
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = DefaultMaxBodyBytes
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.MaxMutatingInFlight == 0 {
		o.MaxMutatingInFlight = DefaultMaxMutatingInFlight
	}
	if o.MaxWatches == 0 {
		o.MaxWatches = DefaultMaxWatches
	}
	if o.MaxReceiving == 0 {
		o.MaxReceiving = DefaultMaxReceiving
	}
	if o.MaxReceivedBytes == 0 {
		o.MaxReceivedBytes = DefaultMaxReceivedBytes
	}
	if o.MaxAnswerBytes == 0 {
		o.MaxAnswerBytes = DefaultMaxAnswerBytes
	}
	if o.Version == (version.Info{}) {
		o.Version = Version("devel")
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	s := &Server{
		store:   o.Store,
		log:     o.Logger,
		clock:   o.Clock,
		options: o,
		reads:   newPlaces("reads", o.MaxInFlight, o.MaxInFlightPerUser),
		writes:  newPlaces("writes", o.MaxMutatingInFlight, o.MaxInFlightPerUser),
		intakes: newIntakes(o),
		answers: newAnswers(o.MaxAnswerBytes),
		queue:   queue{limit: max(1, o.MaxMutatingInFlight/2)},
		fields:  fieldManagers(),
		watches: watches{places: newPlaces("watches", o.MaxWatches, o.MaxWatchesPerUser)},
		render:  render.New(renderCacheBytes, o.Clock),
		faults:  inject.New(o.Inject),
	}
	s.handler = s.recoverPanics(s.identify(s.goOn(s.bound(s.checkHead(s.misbehave(s.checkPath(s.routes())))))))
	return s
}

// Start makes the namespaces that must be there, and begins the work that no
// request waits for: emptying deleted namespaces. It is called once, before the
// first request, and returns when the store has what it needs. Stop ends it.
func (s *Server) Start(ctx context.Context) error {
	if err := s.prepareNamespaces(ctx); err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.background.Go(func() { (&reaper{server: s}).run(background) })
	return nil
}

// Stop ends all watches and what Start began, and waits for the latter. The store
// must still be open.
func (s *Server) Stop() {
	s.EndWatches()
	if s.cancel != nil {
		s.cancel()
	}
	s.background.Wait()
}

// Injected tells how often each fault struck that Options.Inject asks for.
func (s *Server) Injected() map[inject.Kind]inject.Count { return s.faults.Counts() }

// Handler is the whole API.
func (s *Server) Handler() http.Handler { return s.handler }

// routes are all paths there are. A path takes every method, so that a wrong
// one gets our own 405 and not the router's.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	s.serveConfigMaps(mux)
	s.serveNamespaces(mux)

	s.serveReviews(mux)
	s.serveDiscovery(mux)
	s.serveHealth(mux)

	s.handle(mux, "/", route{nowhere: true}, s.serve(nil, nil))
	return mux
}

func (s *Server) serveConfigMaps(mux *http.ServeMux) {
	const (
		collection = "/api/v1/namespaces/{namespace}/configmaps"
		object     = collection + "/{name}"
	)
	s.handle(mux, collection, routeTo(types.ConfigMaps), s.serve(types.ConfigMaps, verbs{
		http.MethodGet:    s.list,
		http.MethodPost:   s.create,
		http.MethodDelete: s.deleteCollection,
	}))
	s.handle(mux, object, routeTo(types.ConfigMaps), s.serve(types.ConfigMaps, verbs{
		http.MethodGet:    s.read,
		http.MethodPut:    s.replace,
		http.MethodPatch:  s.patch,
		http.MethodDelete: s.delete,
	}))
	history := routeTo(types.ConfigMaps)
	history.subresource = "history"
	s.handle(mux, object+historyPath, history, s.serve(types.ConfigMaps, verbs{http.MethodGet: s.history}))
	s.handle(mux, "/api/v1/configmaps", routeTo(types.ConfigMaps), s.serve(types.ConfigMaps, verbs{http.MethodGet: s.list}))

	// The older form of a watch, by path.
	for _, path := range []string{"/configmaps", "/namespaces/{namespace}/configmaps", "/namespaces/{namespace}/configmaps/{name}"} {
		s.handle(mux, "/api/v1/watch"+path, watchOf(types.ConfigMaps), s.serve(types.ConfigMaps, verbs{http.MethodGet: s.watch}))
	}
}

func (s *Server) serveNamespaces(mux *http.ServeMux) {
	s.handle(mux, "/api/v1/namespaces", routeTo(types.Namespaces), s.serve(types.Namespaces, verbs{
		http.MethodGet:  s.list,
		http.MethodPost: s.create,
	}))
	s.handle(mux, "/api/v1/namespaces/{name}", routeTo(types.Namespaces), s.serve(types.Namespaces, verbs{
		http.MethodGet:    s.read,
		http.MethodPut:    s.replace,
		http.MethodPatch:  s.patch,
		http.MethodDelete: s.deleteNamespace,
	}))
	finalize := routeTo(types.Namespaces)
	finalize.subresource = "finalize"
	s.handle(mux, "/api/v1/namespaces/{name}/finalize", finalize, s.serve(types.Namespaces, verbs{http.MethodPut: s.finalize}))
	for _, path := range []string{"/namespaces", "/namespaces/{name}"} {
		s.handle(mux, "/api/v1/watch"+path, watchOf(types.Namespaces), s.serve(types.Namespaces, verbs{http.MethodGet: s.watch}))
	}
}
