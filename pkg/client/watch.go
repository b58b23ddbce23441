package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// DefaultIdleLimit is how long a watch may be silent. Servers send a bookmark
// about once a minute, so that more than that is a connection that died
// without a word.
const DefaultIdleLimit = 75 * time.Second

// WatchOptions choose what Watch follows, and how patiently. The zero value
// follows the whole collection for as long as the context lasts.
type WatchOptions struct {
	// ListOptions choose the objects, in the list and in the watch alike.
	ListOptions
	// Name chooses the one object of that name; FieldSelector must be empty then.
	Name string
	// IdleLimit is after how much silence the connection counts as dead and a
	// new one is made. 0 means DefaultIdleLimit.
	IdleLimit time.Duration
	// GiveUpAfter is for how long the server may be out of reach before the
	// watch ends with a GaveUpError. 0 means that it never does.
	GiveUpAfter time.Duration
	// Patient lets the first list be tried again too. Without it a server that
	// can't be reached at the start is an error at once.
	Patient bool
	// Backoff gives the delays between attempts. Its zero value means up to
	// 200 ms at first and up to 10 s at last.
	Backoff retry.Backoff
	// Observe is told when the watch is broken, works again, or had to list
	// anew. It is called from the goroutine that ranges over the watch.
	Observe func(WatchNotice)
}

// EventType says what happened to an object of the collection that is followed.
type EventType string

// The types of events.
const (
	// Added is an object that is there from the start, was created, or came to
	// match the selectors.
	Added EventType = "ADDED"
	// Modified is a new version of an object that was there.
	Modified EventType = "MODIFIED"
	// Deleted is an object that is gone from the collection: it was deleted, or
	// no longer matches the selectors. ConfigMaps.Left tells these apart.
	Deleted EventType = "DELETED"
	// Synced comes once, after all that was there at the start. It has no object.
	Synced EventType = "SYNCED"
)

// Event is one change. Its documents are shared with the watch: clone them
// before changing them.
type Event struct {
	Type EventType
	// Object is the object after the change; of a deletion, what it was last.
	Object types.Document
	// Previous is the object before the change, nil if there was none.
	Previous types.Document
	// ResourceVersion is the version of the collection up to which all was
	// delivered, this event included.
	ResourceVersion string
	// Relisted marks a change that was found by listing anew. What happened
	// between Previous and Object is not known then.
	Relisted bool
}

// WatchNoticeKind says what a notice is about.
type WatchNoticeKind int

// The kinds of notices.
const (
	// WatchBroken: the server is out of reach; the watch goes on after Wait.
	WatchBroken WatchNoticeKind = iota
	// WatchResumed: it can be reached again.
	WatchResumed
	// WatchRelisting: the changes since the last version can't be had one by
	// one, so that a new list is held against what is known.
	WatchRelisting
)

// WatchNotice tells an observer how a watch fares.
type WatchNotice struct {
	Kind WatchNoticeKind
	Err  error         // why; nil for WatchResumed
	Wait time.Duration // of WatchBroken
}

// GaveUpError ends a watch whose server was out of reach for too long.
type GaveUpError struct {
	Attempts int           // since the last event
	Elapsed  time.Duration // since the server was last heard
	Err      error         // of the last attempt
}

func (e *GaveUpError) Error() string {
	return fmt.Sprintf("gave up after %d attempts in %s: %v", e.Attempts, e.Elapsed.Round(time.Second), e.Err)
}

func (e *GaveUpError) Unwrap() error { return e.Err }

// Watch follows the ConfigMaps of the namespace, or of all namespaces:
//
//	for event, err := range c.ConfigMaps("team-a").Watch(ctx, client.WatchOptions{}) {
//		if err != nil {
//			return err // the last one
//		}
//		…
//	}
//
// First comes an Added for each object that is there, then a Synced, then each
// change, in order, once. A watch survives broken connections, silent ones,
// restarts of the server, and the loss of the server's history: it goes on from
// the last version that it delivered, or, where that can't be, lists anew and
// delivers the difference to what it delivered before. Versions are only
// compared for equality.
//
// The sequence ends when the caller breaks off; with the context's error when
// that ends; with the server's refusal, such as Forbidden; or with a
// GaveUpError. All is done in the caller's goroutine: while the caller is busy
// with an event, nothing is read. Each range over the sequence is a watch of
// its own.
func (m *ConfigMaps) Watch(ctx context.Context, o WatchOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := newFollower(m, o, yield)
		if err := f.run(ctx); err != nil {
			yield(Event{}, err)
		}
	}
}

// Left tells of an object that a watch with selectors reported as Deleted
// whether it only left the selection: it is still there, under the same uid.
func (m *ConfigMaps) Left(ctx context.Context, gone types.Document) (bool, error) {
	now, err := m.client.ConfigMaps(gone.Namespace()).Get(ctx, gone.Name())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && now.UID() == gone.UID(), err
}

// withDefaults fills in what the zero value means.
func (o WatchOptions) withDefaults() WatchOptions {
	if o.IdleLimit <= 0 {
		o.IdleLimit = DefaultIdleLimit
	}
	if o.Backoff.Base <= 0 {
		o.Backoff.Base = 200 * time.Millisecond
	}
	if o.Backoff.Max <= 0 {
		o.Backoff.Max = 10 * time.Second
	}
	if o.Observe == nil {
		o.Observe = func(WatchNotice) {}
	}
	if o.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", o.Name).String()
	}
	return o
}
