package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

// errBreak says that the caller wants no more events.
var errBreak = errors.New("the caller broke off")

// relistError says that the watch can't go on from the version it has.
type relistError struct{ why error }

func (e *relistError) Error() string { return "listing anew: " + e.why.Error() }
func (e *relistError) Unwrap() error { return e.why }

// follower is one watch. It belongs to the goroutine that ranges over it.
type follower struct {
	maps    *ConfigMaps // whose reads are made again by this loop alone
	patient *ConfigMaps // for the first list, which it makes once
	WatchOptions
	yield func(Event, error) bool

	known   map[objectKey]types.Document // as it was delivered
	version string                       // at which the collection is as known; empty: list anew
	synced  bool                         // the first list was delivered

	attempts int       // since the last event
	behind   int       // how often in a row a server had not come to the version
	heard    time.Time // when the server was heard last
	silent   bool      // the observer knows that it is out of reach
}

// objectKey names an object among all namespaces.
type objectKey struct{ namespace, name string }

func keyOf(d types.Document) objectKey { return objectKey{d.Namespace(), d.Name()} }

func newFollower(m *ConfigMaps, o WatchOptions, yield func(Event, error) bool) *follower {
	return &follower{
		maps: m.impatient(), patient: m, WatchOptions: o.withDefaults(), yield: yield,
		known: map[objectKey]types.Document{}, heard: time.Now(),
	}
}

// run follows until there is a reason to end; nil if that is the caller's.
func (f *follower) run(ctx context.Context) error {
	for {
		err := f.once(ctx)
		switch {
		case errors.Is(err, errBreak):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err = f.pause(ctx, err); err != nil {
			return err
		}
	}
}

// once follows for as long as one connection lasts. It returns with nil when
// the server ended the stream in good order.
func (f *follower) once(ctx context.Context) error {
	if f.version == "" {
		if err := f.list(ctx); err != nil {
			return err
		}
	}
	s, err := f.maps.openWatch(ctx, f.ListOptions, f.version, f.IdleLimit)
	if err != nil {
		return f.expired(err)
	}
	defer s.close()
	// In this order: the store that is checked is the one that the open stream
	// is from. One that was replaced in between has ended that stream.
	if err := f.verify(ctx, s); err != nil {
		return err
	}
	f.contact()
	f.behind = 0
	began := time.Now()
	for {
		e, err := s.next()
		if err != nil || e.Type == "" {
			if time.Since(began) >= shortStream {
				f.attempts = 0
			}
			return f.expired(err)
		}
		f.contact()
		f.attempts = 0
		if err := f.receive(e); err != nil {
			return err
		}
	}
}

// shortStream is how long a stream without events lasts at most that counts as
// a failed attempt, so that a server which ends them at once is not run down.
const shortStream = time.Second

// expired turns the server's word that it can't go on from the version into the
// wish to list anew. It comes as the code of the answer, or as an event.
func (f *follower) expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || tooNew(err) && !f.mayCatchUp() {
		return &relistError{err}
	}
	return err
}

// tooNew tells whether the server says that it has not come to the version.
func tooNew(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// maxBehind is how often in a row a server may be behind the version before that counts
// as one that it will never come to.
const maxBehind = 5

// mayCatchUp tells whether a server that has not come to the version may do so soon: it
// is one of several, and another one was there already. It counts how often that is said.
func (f *follower) mayCatchUp() bool {
	f.behind++
	return len(f.maps.client.peers.all) > 1 && f.behind <= maxBehind
}

// contact notes that the server was heard.
func (f *follower) contact() {
	f.heard = time.Now()
	if f.silent {
		f.silent = false
		f.Observe(WatchNotice{Kind: WatchResumed})
	}
}

// pause waits before the next attempt, or says why there is none.
func (f *follower) pause(ctx context.Context, err error) error {
	f.attempts++
	var relist *relistError
	switch {
	case err == nil: // the time that the server gives a watch was over
	case errors.As(err, &relist):
		f.version = ""
		if f.silent {
			f.attempts = 1 // what was waited for is there: the server answers
		}
		f.Observe(WatchNotice{Kind: WatchRelisting, Err: relist.why})
	case !f.mayPass(err):
		return err
	}
	var asked time.Duration
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && relist == nil {
		asked = time.Duration(seconds) * time.Second
	}
	wait := f.Backoff.Delay(f.attempts, asked)
	if f.GiveUpAfter > 0 && err != nil && time.Since(f.heard)+wait > f.GiveUpAfter {
		return &GaveUpError{Attempts: f.attempts, Elapsed: time.Since(f.heard), Err: err}
	}
	if err != nil && relist == nil {
		f.silent = true
		f.Observe(WatchNotice{Kind: WatchBroken, Err: err, Wait: wait})
		// What connections are left may be as dead.
		f.maps.client.CloseIdleConnections()
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayPass tells whether a failure may be over by itself.
func (f *follower) mayPass(err error) bool {
	if !f.synced && !f.Patient {
		return false
	}
	var status apierrors.APIStatus
	var unexpected *UnexpectedError
	switch {
	case errors.As(err, new(*ConnectionError)):
		return true
	case errors.As(err, new(*CredentialsError)):
		// It gave some before. What it asks may be as far as the server is.
		return f.synced
	case errors.As(err, &unexpected):
		// Once the API was there, what is no answer of it is somebody's in between.
		return f.synced || unexpected.Code == http.StatusTooManyRequests || unexpected.Code >= 500
	case errors.As(err, &status):
		return status.Status().Code == http.StatusTooManyRequests || status.Status().Code >= 500
	}
	return false
}

// list reads the collection and delivers how it differs from what is known.
func (f *follower) list(ctx context.Context) error {
	from := f.maps
	if !f.synced && !f.Patient {
		from = f.patient
	}
	list, err := from.List(ctx, f.ListOptions)
	if err != nil {
		return err
	}
	f.contact()
	listed := make(map[objectKey]string, len(list.Items))
	for _, d := range list.Items {
		listed[keyOf(d)] = d.UID()
	}
	for _, k := range slices.SortedFunc(maps.Keys(f.known), compareKeys) {
		last := f.known[k]
		if uid, ok := listed[k]; ok && uid == last.UID() {
			continue
		}
		delete(f.known, k)
		if err := f.deliver(Event{Type: Deleted, Object: last, Previous: last, ResourceVersion: list.ResourceVersion}); err != nil {
			return err
		}
	}
	for _, d := range list.Items {
		if err := f.change(d, list.ResourceVersion); err != nil {
			return err
		}
	}
	f.version = list.ResourceVersion
	if f.synced {
		return nil
	}
	f.synced = true
	return f.deliver(Event{Type: Synced, ResourceVersion: f.version})
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// receive takes what came over the stream.
func (f *follower) receive(e streamEvent) error {
	version := e.object.ResourceVersion()
	f.version = version
	switch e.Type {
	case "BOOKMARK":
		return nil
	case string(Deleted):
		last, ok := f.known[keyOf(e.object)]
		if !ok {
			return nil
		}
		delete(f.known, keyOf(e.object))
		return f.deliver(Event{Type: Deleted, Object: e.object, Previous: last, ResourceVersion: version})
	}
	return f.change(e.object, version)
}

// change delivers an object that is there, unless it is known as it is. What
// kind of change it is follows from what was known.
func (f *follower) change(d types.Document, version string) error {
	e := Event{Type: Added, Object: d, ResourceVersion: version}
	last, ok := f.known[keyOf(d)]
	switch {
	case ok && last.UID() != d.UID():
		if err := f.deliver(Event{Type: Deleted, Object: last, Previous: last, ResourceVersion: version}); err != nil {
			return err
		}
	case ok && last.ResourceVersion() == d.ResourceVersion():
		return nil
	case ok:
		e.Type, e.Previous = Modified, last
	}
	f.known[keyOf(d)] = d
	return f.deliver(e)
}

func (f *follower) deliver(e Event) error {
	// Between a list that was asked for and its end there is no version.
	e.Relisted = f.synced && f.version == ""
	if !f.yield(e, nil) {
		return errBreak
	}
	return nil
}
