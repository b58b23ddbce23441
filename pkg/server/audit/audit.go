// Package audit writes who did what, as events of audit.k8s.io/v1, one a line.
//
// A Recorder begins an Entry for each request, once it is known who sends it. The
// policy says whether and how much of it is logged. What becomes of the request is
// told to the Entry, and the Entry is ended just before the answer goes out: what
// was acknowledged is in the log.
//
//	log, err := audit.Open(audit.Options{Path: "/var/log/cmserver/audit.log"})
//	r := &audit.Recorder{Sink: log, Policy: func() *audit.Policy { return audit.DefaultPolicy(false) }}
//	entry, err := r.Begin(now, id, request, attributes)
//	entry.Refused(status)
//	entry.Answering(now, 409)
package audit

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// The keys of the annotations that tell what a write changed. docs/audit.md says
// what their values are.
const (
	domain = "cmserver.example.com/"

	AnnotationPrevious = domain + "previous-version"
	AnnotationVersion  = domain + "version"
	AnnotationOutcome  = domain + "outcome"
	AnnotationPartOf   = domain + "part-of"
	AnnotationParts    = domain + "parts"
	AnnotationAnswered = domain + "answered"

	annotationDecision  = "authorization.k8s.io/decision"
	annotationReason    = "authorization.k8s.io/reason"
	annotationTruncated = "audit.k8s.io/truncated"
)

// SystemUser is the user of what the server writes by itself.
const SystemUser = "system:cmserver"

// Sink takes the lines. Log is one.
type Sink interface {
	// WriteLine returns once the line is handed to the operating system, or why it
	// was not. It may be called by any number of goroutines.
	WriteLine(line []byte) error
	// MaxLine is how long a line may be, in bytes; 0: as long as any.
	MaxLine() int
}

// Recorder makes the events. It may be used by any number of goroutines.
type Recorder struct {
	// Sink takes the events.
	Sink Sink
	// Policy is what holds for a request that begins now.
	Policy func() *Policy
	// Strict refuses requests whose beginning can't be logged.
	Strict bool
}

// Begin begins the entry of a request with what is known before anything is done
// for it. An error says that it must be refused, for it can't be logged. The methods
// of an Entry that is nil, for what is not to be logged, do nothing.
func (r *Recorder) Begin(now time.Time, id string, req *http.Request, a *authorizer.AttributesRecord) (*Entry, error) {
	e := r.Late(now, id, req, a)
	if e == nil {
		return nil, nil
	}
	if err := e.write(auditv1.StageRequestReceived, now); err != nil && r.Strict {
		return e, err
	}
	return e, nil
}

// Late is Begin for a request that is refused already, such as for its credentials.
// As in Kubernetes its entry has no stage RequestReceived.
func (r *Recorder) Late(now time.Time, id string, req *http.Request, a *authorizer.AttributesRecord) *Entry {
	e := r.begin(now, id, a)
	if e == nil {
		return nil
	}
	e.event.RequestURI = cut(safeURI(req.URL), maxURI)
	e.event.UserAgent = cut(req.UserAgent(), maxUserAgent)
	if host, _, err := net.SplitHostPort(req.RemoteAddr); err == nil {
		e.event.SourceIPs = []string{host}
	}
	return e
}

// Own logs a change that the server makes by itself.
func (r *Recorder) Own(now time.Time, id, verb string, c Change) {
	a := &authorizer.AttributesRecord{User: &user.DefaultInfo{Name: SystemUser}, Verb: verb, APIVersion: "v1",
		Namespace: c.Namespace, Name: c.Name, Resource: c.Resource, ResourceRequest: true}
	if e := r.begin(now, id, a); e != nil {
		e.event.RequestURI = c.path()
		e.event.ResponseStatus = &metav1.Status{}
		e.Changed(c)
		_ = e.write(auditv1.StageResponseComplete, now) // a failure is the log's to tell
	}
}

func (r *Recorder) begin(now time.Time, id string, a *authorizer.AttributesRecord) *Entry {
	if r == nil {
		return nil
	}
	e := &Entry{recorder: r, rule: r.Policy().ruleFor(a)}
	if e.rule.level == auditv1.LevelNone {
		return nil
	}
	e.event = auditv1.Event{
		TypeMeta:                 metav1.TypeMeta{Kind: "Event", APIVersion: auditv1.SchemeGroupVersion.String()},
		Level:                    e.rule.level,
		AuditID:                  types.UID(id),
		Verb:                     CutMethod(a.Verb),
		RequestReceivedTimestamp: metav1.NewMicroTime(now.UTC()),
	}
	if a.User != nil {
		e.event.User = userInfo(a.User)
	}
	if a.ResourceRequest {
		e.event.ObjectRef = &auditv1.ObjectReference{
			Resource: cut(a.Resource, maxName), Subresource: cut(a.Subresource, maxName), Namespace: cut(a.Namespace, maxName),
			Name: cut(a.Name, maxName), APIGroup: cut(a.APIGroup, maxName), APIVersion: cut(a.APIVersion, maxName),
		}
	}
	return e
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// encode writes an event as a line, without its end. What is too long loses its
// bodies.
func encode(e auditv1.Event, maxLine int) ([]byte, error) {
	line, err := json.Marshal(e)
	if err == nil && (maxLine == 0 || len(line) < maxLine) {
		return line, nil
	}
	e.RequestObject, e.ResponseObject = nil, nil
	e.Annotations = with(e.Annotations, annotationTruncated, "true")
	return json.Marshal(e)
}
