package audit

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Entry is what is logged of one request. It belongs to the goroutine that serves
// it. All methods may be called on nil.
type Entry struct {
	recorder *Recorder
	rule     rule
	event    auditv1.Event
	parts    int
	panicked bool
	ended    bool // its last event is written, or was to be left out
}

// Outcome is what became of an object.
type Outcome string

// The values of Outcome.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Deleted   Outcome = "deleted"
	Unchanged Outcome = "unchanged" // a write that changes nothing keeps the version
	DryRun    Outcome = "dry-run"   // nothing was to be stored
	Unknown   Outcome = "unknown"   // it may be stored, or not
)

// Change is what a commit did to an object.
type Change struct {
	Resource, Namespace, Name, UID string
	// Previous is the version that the commit took the place of; empty: there was no
	// object.
	Previous string
	// Version is the one that it made, also of a deletion; empty: none, or it is not
	// known.
	Version string
	Outcome Outcome
}

// path is where the API has the object.
func (c Change) path() string {
	path := "/api/v1/"
	if c.Namespace != "" && c.Resource != "namespaces" {
		path += "namespaces/" + c.Namespace + "/"
	}
	return path + c.Resource + "/" + c.Name
}

// annotate adds what a change was.
func (c Change) annotate(all map[string]string) map[string]string {
	previous := c.Previous
	if previous == "" {
		previous = "none"
	}
	all = with(with(all, AnnotationOutcome, string(c.Outcome)), AnnotationPrevious, previous)
	if c.Version != "" {
		all[AnnotationVersion] = c.Version
	}
	return all
}

// with sets one value in a map that may be nil.
func with(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// Impersonating notes as whom the user acts.
func (e *Entry) Impersonating(u user.Info) {
	if e != nil {
		info := userInfo(u)
		e.event.ImpersonatedUser = &info
	}
}

// Decided notes what the rules of access say.
func (e *Entry) Decided(allowed bool, reason string) {
	if e == nil {
		return
	}
	decision := "forbid"
	if allowed {
		decision = "allow"
	}
	e.event.Annotations = with(with(e.event.Annotations, annotationDecision, decision), annotationReason, reason)
}

// Object notes which object a body names, where the URL does not.
func (e *Entry) Object(o metav1.Object) {
	if e == nil || e.event.ObjectRef == nil {
		return
	}
	ref := e.event.ObjectRef
	if ref.Name == "" {
		ref.Name = cut(o.GetName(), maxName)
	}
	ref.UID = types.UID(cut(string(o.GetUID()), maxName))
	ref.ResourceVersion = cut(o.GetResourceVersion(), maxName)
}

// WantsRequest and WantsResponse tell whether the bodies are to be logged.
func (e *Entry) WantsRequest() bool {
	return e != nil && e.event.ObjectRef != nil && e.rule.level != auditv1.LevelMetadata
}

// WantsResponse is told with WantsRequest.
func (e *Entry) WantsResponse() bool {
	return e.WantsRequest() && e.rule.level == auditv1.LevelRequestResponse
}

// Request notes what was sent, as JSON. What is none is left out.
func (e *Entry) Request(body []byte) {
	if e.WantsRequest() {
		e.event.RequestObject = e.body(body)
	}
}

// Response notes what is answered, as JSON.
func (e *Entry) Response(body []byte) {
	if e.WantsResponse() {
		e.event.ResponseObject = e.body(body)
	}
}

func (e *Entry) body(text []byte) *runtime.Unknown {
	if len(text) > maxBody {
		e.event.Annotations = with(e.event.Annotations, annotationTruncated, "true")
		return nil
	}
	if e.rule.omitManagedFields {
		text = withoutManagedFields(text)
	}
	if !json.Valid(text) {
		return nil
	}
	return &runtime.Unknown{Raw: slices.Clone(text), ContentType: runtime.ContentTypeJSON}
}

// Changed notes what became of the object that the request is about.
func (e *Entry) Changed(c Change) {
	if e == nil {
		return
	}
	if ref := e.event.ObjectRef; ref != nil {
		ref.Name = c.Name // which may have been generated
		if ref.UID == "" {
			ref.UID = types.UID(c.UID)
		}
	}
	e.event.Annotations = c.annotate(e.event.Annotations)
}

// Part logs at once what the request did to another object than the one that it is
// about: one of a collection, or the namespace that it made.
func (e *Entry) Part(now time.Time, verb string, c Change) {
	if e == nil {
		return
	}
	e.parts++
	part := *e
	part.event.Verb = verb
	part.event.ObjectRef = &auditv1.ObjectReference{Resource: c.Resource, Namespace: c.Namespace, Name: c.Name,
		UID: types.UID(c.UID), APIVersion: "v1"}
	part.event.RequestObject, part.event.ResponseObject = nil, nil
	part.event.ResponseStatus = nil
	part.event.Annotations = c.annotate(maps.Clone(e.event.Annotations))
	part.event.Annotations[AnnotationPartOf] = e.event.Verb
	_ = part.write(auditv1.StageResponseComplete, now) // a failure is the log's to tell
}

// Status notes the Status that is answered.
func (e *Entry) Status(s *metav1.Status) {
	if e == nil {
		return
	}
	noted := metav1.Status{Status: s.Status, Message: cut(s.Message, maxMessage), Reason: s.Reason, Code: s.Code}
	if s.Details != nil {
		details := *s.Details
		details.Name, details.UID = cut(details.Name, maxName), types.UID(cut(string(details.UID), maxName))
		details.Causes = details.Causes[:min(len(details.Causes), maxCauses)]
		noted.Details = &details
	}
	if s.Status == metav1.StatusFailure && quotes(s.Reason) && !e.WantsRequest() {
		noted.Message = withheld
		if noted.Details != nil {
			noted.Details.Causes = nil
		}
	}
	e.event.ResponseStatus = &noted
}

// withheld stands for messages that may quote what was sent.
const withheld = "withheld at level Metadata, for it may quote what was sent"

// quotes tells whether the message of a refusal may hold parts of the body.
func quotes(reason metav1.StatusReason) bool {
	return reason == metav1.StatusReasonBadRequest || reason == metav1.StatusReasonInvalid || reason == metav1.StatusReasonUnknown
}

// Panicked notes that the request ends in a panic, whose cause is in the server's
// log.
func (e *Entry) Panicked() {
	if e != nil {
		e.panicked = true
	}
}

// Answering is called just before an answer goes out, with its code. It ends the
// entry, but for that of a watch, which has begun now.
func (e *Entry) Answering(now time.Time, code int) {
	if e == nil || e.ended {
		return
	}
	e.code(code)
	if e.event.Verb == "watch" && !e.panicked {
		_ = e.write(auditv1.StageResponseStarted, now) // a failure is the log's to tell
		return
	}
	e.end(now)
}

// End ends an entry that is not ended yet: that of a watch, or of a request that
// nobody got an answer to.
func (e *Entry) End(now time.Time) {
	if e == nil || e.ended {
		return
	}
	if e.event.ResponseStatus == nil || e.event.ResponseStatus.Code == 0 {
		e.code(0)
		e.event.Annotations = with(e.event.Annotations, AnnotationAnswered, "false")
	}
	e.end(now)
}

func (e *Entry) end(now time.Time) {
	e.ended = true
	if e.parts > 0 {
		e.event.Annotations = with(e.event.Annotations, AnnotationParts, strconv.Itoa(e.parts))
	}
	stage := auditv1.StageResponseComplete
	if e.panicked {
		stage = auditv1.StagePanic
		e.event.ResponseStatus = &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
			Message: "the server panicked; its log has the cause", Code: http.StatusInternalServerError}
	}
	_ = e.write(stage, now) // a failure is the log's to tell
}

func (e *Entry) code(code int) {
	if e.event.ResponseStatus == nil {
		e.event.ResponseStatus = &metav1.Status{}
	}
	e.event.ResponseStatus.Code = int32(code)
}

// write logs a stage, unless the policy leaves it out.
func (e *Entry) write(stage auditv1.Stage, now time.Time) error {
	if slices.Contains(e.rule.omitStages, stage) {
		return nil
	}
	e.event.Stage, e.event.StageTimestamp = stage, metav1.NewMicroTime(now.UTC())
	line, err := encode(e.event, e.recorder.Sink.MaxLine())
	if err != nil {
		return err
	}
	return e.recorder.Sink.WriteLine(append(line, '\n'))
}
