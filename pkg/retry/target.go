package retry

import (
	"context"
	"time"
)

// Version says which state of which object a copy is. Both parts are opaque:
// they are compared for equality and passed back, nothing else.
type Version struct {
	UID             string
	ResourceVersion string
}

// Target is one named object on a server, with copies of type T.
//
// Errors are apimachinery's API errors where the server answered, inside a
// RefusedError where another attempt would be in vain; a LostError where a write's
// answer did not arrive, an UnreadError where a read's did not, and an UnsentError
// where the request never left. Anything else ends the loop.
type Target[T any] interface {
	// Object names the object for messages: `configmaps "flags" in namespace "team-a"`.
	Object() string
	// Version reads the version that a copy carries.
	Version(obj T) Version
	// Get reads the object.
	Get(ctx context.Context) (T, error)
	// Put replaces the object if it is still at the version that obj carries.
	Put(ctx context.Context, obj T, id WriteID) (T, error)
	// Check asks the server whether it would take obj as a write made from
	// version at. Nothing is stored, whatever the answer.
	Check(ctx context.Context, obj T, at Version) error
	// Find looks the write up in the object's history, among the versions
	// after since; an empty since stands for the whole history.
	Find(ctx context.Context, id WriteID, since string) (Finding, error)
}

// WriteID is a random name for one logical write. It stays the same when the
// write is sent again, so that the server's history can prove what became of it.
type WriteID string

// Finding is what the history tells about a write.
type Finding int

const (
	// NoHistory: the server keeps none, or not far enough back.
	NoHistory Finding = iota
	// Landed: the write is in the history, a deletion included.
	Landed
	// Absent: the history reaches back to the version that the write was made
	// from, and the write is not in it.
	Absent
)

// Edit makes the next version from a fresh copy. It must not change the copy,
// must keep its version, and returns ErrUnchanged when there is nothing to do.
// It may be called many times; any other error ends the loop and is returned.
type Edit[T any] func(ctx context.Context, fresh T) (T, error)

// Options bound and observe a loop. The zero value is ready to use.
type Options struct {
	// MaxAttempts caps the writes sent, and apart from them the delays taken
	// while no answer is lost.
	// 0 means 5.
	MaxAttempts int
	// MaxElapsed ends the loop before a delay that would exceed it, and before a
	// write that would come after it; 0 means that only the context ends it.
	MaxElapsed time.Duration
	// MaxSettling is how long to go on finding out what became of a write whose
	// answer was lost, from the loss on. Neither MaxAttempts nor MaxElapsed ends
	// that, the context does. 0 means a minute.
	MaxSettling time.Duration
	Backoff     Backoff
	// Computed says that the edit's result depends on what it reads, as a
	// counter's does. Making it twice would be wrong, so a lost answer that no
	// history can settle ends the loop with an OutcomeUnknownError. An edit to
	// fixed values is merged again instead.
	Computed bool
	// Want is a condition that the caller sets on the object, for Update,
	// UpdateFrom, Upsert and Read. With a ResourceVersion, only that version is
	// written on: the server refuses any other, and its Conflict ends the loop.
	// With a UID, only that object is, whatever its version: another one is a
	// ReplacedError. Nothing is created under a condition.
	Want Version
	// WriteID names the write; empty means a random one.
	WriteID WriteID
	// Observe is called at each step, from the loop's goroutine. Nil is fine.
	Observe func(Event)
}

// Step is a kind of Event.
type Step string

// The steps of a loop.
const (
	Refused Step = "refused" // a Conflict: Sent is not the current version
	Reread  Step = "reread"  // a fresh copy was read; Current is its version
	Waiting Step = "waiting" // the server asked to wait, or could not be reached
	Lost    Step = "lost"    // a write's answer was lost
	Resend  Step = "resend"  // the version is still Sent: the same body goes out again
	Settled Step = "settled" // a lost write turned out to have landed
	Gone    Step = "gone"    // after a lost delete: it is gone, by whose hand is not known
	Done    Step = "done"    // the write landed as version Current
)

// Event is one step of a loop as its observer sees it.
type Event struct {
	Step    Step
	Attempt int           // writes sent so far
	Max     int           // the cap on them
	Sent    string        // version that the last write was made from
	Current string        // version of the copy that the step is about
	Wait    time.Duration // the delay that follows; 0 where the loop gives up instead
	Err     error         // the answer that caused the step
}

// Outcome tells how a loop ended well.
type Outcome string

// The outcomes of a loop.
const (
	Written   Outcome = "written"   // this write landed
	Unchanged Outcome = "unchanged" // there was nothing to write
	Existing  Outcome = "existing"  // CreateOrGet found the object there
)

// Result is the end of a loop that succeeded.
type Result[T any] struct {
	Object   T // the object as the server has it
	Outcome  Outcome
	Attempts int // writes sent
}
