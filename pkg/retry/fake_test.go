package retry_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/cmctl/pkg/retry"
)

// doc is a copy of the one object that a server keeps.
type doc struct {
	uid, version string
	data         map[string]string
}

func (d doc) String() string {
	var text []string
	for _, k := range slices.Sorted(maps.Keys(d.data)) {
		text = append(text, k+"="+d.data[k])
	}
	return strings.Join(text, " ")
}

// with is the next version of a copy; it keeps uid and version.
func (d doc) with(key, value string) doc {
	d.data = maps.Clone(d.data)
	if d.data == nil {
		d.data = map[string]string{}
	}
	d.data[key] = value
	return d
}

// landing is one write in the server's own book, which forgets nothing.
type landing struct {
	id      retry.WriteID
	version string
}

// server keeps one object in memory and is the Target, Creator and Deleter of
// the tests. It starts with version 1 of an object u1 that holds a=1, unless
// made empty.
type server struct {
	faults  script
	weather func(verb string) fault // draws the faults instead, if set
	history bool                    // whether Find may look into the book

	mu       sync.Mutex // guards what follows
	revision int
	uids     int
	object   *doc
	book     []landing
	late     []func() // requests on their way: they land before the next write
	seen     map[string]int
	requests []string
}

func newServer(faults script, history bool) *server {
	s := emptyServer(faults, history)
	s.another(func(doc) doc { return doc{data: map[string]string{"a": "1"}} })
	return s
}

func emptyServer(faults script, history bool) *server {
	return &server{faults: faults, history: history, seen: map[string]int{}}
}

func (s *server) Object() string { return `things "it"` }

func (s *server) Version(d doc) retry.Version {
	return retry.Version{UID: d.uid, ResourceVersion: d.version}
}

func (s *server) Get(ctx context.Context) (doc, error) {
	return s.request(ctx, "GET", "", func() (doc, error) {
		if s.object == nil {
			return doc{}, notFound()
		}
		return *s.object, nil
	})
}

func (s *server) Put(ctx context.Context, d doc, id retry.WriteID) (doc, error) {
	return s.request(ctx, "PUT", d.version, func() (doc, error) {
		switch {
		case s.object == nil:
			return doc{}, notFound()
		case s.Version(*s.object) != s.Version(d):
			return doc{}, conflict()
		}
		return s.store(d, id), nil
	})
}

func (s *server) Check(ctx context.Context, d doc, at retry.Version) error {
	_, err := s.request(ctx, "CHECK", at.ResourceVersion, func() (doc, error) {
		switch {
		case s.object == nil:
			return doc{}, notFound()
		case s.Version(*s.object) != at:
			return doc{}, conflict()
		}
		return d, nil
	})
	return err
}

func (s *server) Create(ctx context.Context, d doc, id retry.WriteID) (doc, error) {
	return s.request(ctx, "POST", "", func() (doc, error) {
		if s.object != nil {
			return doc{}, alreadyExists()
		}
		return s.store(d, id), nil
	})
}

func (s *server) Delete(ctx context.Context, v retry.Version, id retry.WriteID) error {
	_, err := s.request(ctx, "DELETE", v.ResourceVersion, func() (doc, error) {
		switch {
		case s.object == nil:
			return doc{}, notFound()
		case v.UID != s.object.uid, v.ResourceVersion != "" && v.ResourceVersion != s.object.version:
			return doc{}, conflict()
		}
		s.remove(id)
		return doc{}, nil
	})
	return err
}

func (s *server) Find(ctx context.Context, id retry.WriteID, since string) (retry.Finding, error) {
	found := retry.NoHistory
	_, err := s.request(ctx, "FIND", since, func() (doc, error) {
		if !s.history {
			return doc{}, nil
		}
		found = retry.Absent
		after := 0
		if since != "" {
			after = number(since)
		}
		for _, l := range s.book {
			if l.id == id && number(l.version) > after {
				found = retry.Landed
			}
		}
		return doc{}, nil
	})
	return found, err
}

// request plays one request, with the fault that the script has for it.
func (s *server) request(ctx context.Context, verb, version string, carryOut func() (doc, error)) (doc, error) {
	s.mu.Lock()
	f := s.faults.of(verb, s.seen[verb])
	if s.weather != nil {
		f = s.weather(verb)
	}
	s.seen[verb]++
	s.requests = append(s.requests, strings.TrimSuffix(verb+"@"+version, "@"))
	s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return doc{}, &retry.UnsentError{Err: err}
	}
	r := request{server: s, write: verb != "GET" && verb != "FIND" && verb != "CHECK", carryOut: carryOut}
	if f == nil {
		return r.land()
	}
	return f(ctx, r)
}

// request is one request in the hands of a fault.
type request struct {
	*server
	write    bool
	carryOut func() (doc, error) // called with mu held
}

// land carries the request out.
func (r request) land() (doc, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.write {
		r.landLateLocked()
	}
	return r.carryOut()
}

// landLater leaves the request on its way.
func (r request) landLater() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = append(r.late, func() {
		_, _ = r.carryOut() // its answer reaches nobody
	})
}

func (s *server) store(d doc, id retry.WriteID) doc {
	if s.object == nil {
		s.uids++
		d.uid = "u" + strconv.Itoa(s.uids)
	}
	d.version = s.next(id)
	s.object = &d
	return d
}

func (s *server) remove(id retry.WriteID) {
	s.object = nil
	s.next(id)
}

func (s *server) next(id retry.WriteID) string {
	s.revision++
	s.book = append(s.book, landing{id, strconv.Itoa(s.revision)})
	return strconv.Itoa(s.revision)
}

func (s *server) landLateLocked() {
	for _, land := range s.late {
		land()
	}
	s.late = nil
}

// another is somebody else's write: it creates the object if need be.
func (s *server) another(change func(doc) doc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d doc
	if s.object != nil {
		d = *s.object
	}
	s.store(change(d), "another")
}

// anotherDeletes is somebody else's delete.
func (s *server) anotherDeletes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object != nil {
		s.remove("another")
	}
}

// state is what the server holds once every request that is on its way landed.
func (s *server) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.landLateLocked()
	if s.object == nil {
		return "gone"
	}
	return s.object.String()
}

// now is the object as it is.
func (s *server) now() doc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.object
}

// landed is how often a write of that id was carried out.
func (s *server) landed(id retry.WriteID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.book {
		if l.id == id {
			n++
		}
	}
	return n
}

func number(version string) int {
	n, err := strconv.Atoi(version)
	if err != nil {
		panic(fmt.Sprintf("version %q was not passed back as it came", version))
	}
	return n
}

var things = schema.GroupResource{Resource: "things"}

func notFound() error      { return apierrors.NewNotFound(things, "it") }
func alreadyExists() error { return apierrors.NewAlreadyExists(things, "it") }
func conflict() error      { return apierrors.NewConflict(things, "it", fmt.Errorf("modified")) }
func forbidden() error     { return apierrors.NewForbidden(things, "it", fmt.Errorf("no")) }

// status is an answer of the server with that code, reason and Retry-After.
func status(code int, reason metav1.StatusReason, retryAfter int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: http.StatusText(code),
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}

func tooMany(retryAfter int32) error {
	return status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, retryAfter)
}

func unavailable(retryAfter int32) error {
	return status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, retryAfter)
}

func internal() error {
	return status(http.StatusInternalServerError, metav1.StatusReasonInternalError, 0)
}
