package types

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Status is what the server answers when it has no object to give back.
type Status = metav1.Status

// StatusError is a Status as an error: every refusal is one.
type StatusError = apierrors.StatusError

// failure is the one place that fills in a Status of a refusal.
func failure(code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) *StatusError {
	return &StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  message,
		Reason:   reason,
		Details:  details,
		Code:     int32(code),
	}}
}

// about are the details of a refusal that concerns one object.
func (r *Resource) about(name string) *metav1.StatusDetails {
	return &metav1.StatusDetails{Name: name, Kind: r.Plural}
}

// generic are the details of a refusal that concerns no object. Kubernetes
// sends them empty, not absent.
func generic() *metav1.StatusDetails { return &metav1.StatusDetails{} }

// Deleted is the Status of a deletion that was done.
func (r *Resource) Deleted(name string, uid types.UID) *Status {
	details := r.about(name)
	details.UID = uid
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details:  details,
	}
}

// NotFound says that there is no such object.
func (r *Resource) NotFound(name string) *StatusError {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s %q not found", r.Plural, name), r.about(name))
}

// VersionNotFound says that the object never had this version.
func (r *Resource) VersionNotFound(name, version string) *StatusError {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s %q has no resourceVersion %s; its history lists the versions that it has", r.Plural, name, version),
		r.about(name))
}

// VersionDeleted says that this version is the deletion of the object.
func (r *Resource) VersionDeleted(name, version string) *StatusError {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("%s %q was deleted in resourceVersion %s; read the version before it in its history", r.Plural, name, version),
		r.about(name))
}

// AlreadyExists refuses to create what is there.
func (r *Resource) AlreadyExists(name string) *StatusError {
	return failure(http.StatusConflict, metav1.StatusReasonAlreadyExists,
		fmt.Sprintf("%s %q already exists", r.Plural, name), r.about(name))
}

// BeingDeleted refuses to create what is there, but about to go.
func (r *Resource) BeingDeleted(name string) *StatusError {
	return failure(http.StatusConflict, metav1.StatusReasonAlreadyExists,
		fmt.Sprintf("object is being deleted: %s %q already exists", r.Plural, name), r.about(name))
}

// WithGenerateName is the refusal to create what is there, to who gave a
// generateName as well: Kubernetes asks to try again, even if a name came with it.
func WithGenerateName(taken *StatusError) *StatusError {
	taken.ErrStatus.Message += ", the server was not able to generate a unique name for the object"
	taken.ErrStatus.Details.RetryAfterSeconds = 1
	return taken
}

// conflict words a Conflict on what (a resource or a kind) as Kubernetes does.
func conflict(what, name, message string) *StatusError {
	return failure(http.StatusConflict, metav1.StatusReasonConflict,
		fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", what, name, message),
		&metav1.StatusDetails{Name: name, Kind: what})
}

// VersionConflict refuses a write that was made from an older version.
func (r *Resource) VersionConflict(name, sent, current string) *StatusError {
	return conflict(r.Plural, name,
		fmt.Sprintf("the object has been modified; sent resourceVersion %s, current %s", sent, current))
}

// Modified is VersionConflict in Kubernetes' own words, which name no version.
func (r *Resource) Modified(name string) *StatusError {
	return conflict(r.Plural, name, "the object has been modified; please apply your changes to the latest version and try again")
}

// UIDMismatch refuses a write that was made from another object of that name.
func (r *Resource) UIDMismatch(name string, sent, current types.UID) *StatusError {
	return conflict(r.Plural, name, fmt.Sprintf(
		"UID is immutable; sent %s, current %s: the object was deleted and recreated since it was read", sent, current))
}

// preconditioned is what Kubernetes calls the resource in a failed precondition.
func (r *Resource) preconditioned() string {
	if r.Namespaced {
		return r.Kind
	}
	return r.Plural
}

// UIDPrecondition refuses a deletion whose precondition names another uid.
func (r *Resource) UIDPrecondition(name string, sent, current types.UID) *StatusError {
	return conflict(r.preconditioned(), name, fmt.Sprintf("the UID in the precondition (%s) does not match the UID in record (%s). "+
		"The object might have been deleted and then recreated", sent, current))
}

// VersionPrecondition refuses a deletion whose precondition names another
// version.
func (r *Resource) VersionPrecondition(name, sent, current string) *StatusError {
	return conflict(r.preconditioned(), name, fmt.Sprintf(
		"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
			"The object might have been modified", sent, current))
}

// Readable refuses a deletion that is meant for an object which can't be read.
func (r *Resource) Readable(name string) *StatusError {
	return conflict(r.Plural, name, "unsafe deletion is not allowed because the object can be read")
}

// Forbidden refuses what may not be done with this object, whoever asks.
func (r *Resource) Forbidden(name, why string) *StatusError {
	return failure(http.StatusForbidden, metav1.StatusReasonForbidden,
		fmt.Sprintf("%s %q is forbidden: %s", r.Plural, name, why), r.about(name))
}

// Unauthorized refuses credentials. It does not say what is wrong with them.
func Unauthorized() *StatusError {
	return failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized", nil)
}

// AccessForbidden refuses a user what the rules of access don't allow. It says the
// same whether the object is there or not. Without a resource it is about a path.
func AccessForbidden(resource schema.GroupResource, name, why string) *StatusError {
	message := "forbidden: " + why
	switch {
	case resource.Empty():
	case name == "":
		message = fmt.Sprintf("%s is %s", resource, message)
	default:
		message = fmt.Sprintf("%s %q is %s", resource, name, message)
	}
	return failure(http.StatusForbidden, metav1.StatusReasonForbidden, message,
		&metav1.StatusDetails{Name: name, Group: resource.Group, Kind: resource.Resource})
}

// NamespaceTerminating refuses to create an object in a namespace that is being
// deleted.
func (r *Resource) NamespaceTerminating(name, namespace string) *StatusError {
	err := r.Forbidden(name, fmt.Sprintf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field:   "metadata.namespace",
	}}
	return err
}

// CauseNotYours is the type of the cause by which a client knows that a namespace is not
// there, and that who sent the request may not make it.
const CauseNotYours metav1.CauseType = "NamespaceNotYoursToCreate"

// NamespaceNotYours refuses to create an object in a namespace that is not there, of
// somebody who may not make it.
func NamespaceNotYours(namespace string) *StatusError {
	err := Namespaces.NotFound(namespace)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    CauseNotYours,
		Message: "the user may not create namespaces",
		Field:   "metadata.namespace",
	}}
	return err
}

// BadRequest refuses a request that can't be understood.
func BadRequest(message string) *StatusError {
	return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, message, nil)
}

// CreateSetsVersion refuses to create an object with a version: the server
// alone assigns them.
func CreateSetsVersion() *StatusError { return BadRequest("create cannot set resourceVersion") }

// UpdateNeedsVersion refuses an update that does not say which version it was
// made from.
func UpdateNeedsVersion() *StatusError { return BadRequest("update requires metadata.resourceVersion") }

// NameMismatch refuses a body that names another object than the URL.
func NameMismatch() *StatusError { return BadRequest("metadata.name does not match the URL") }

// NamespaceMismatch refuses a body that names another namespace than the URL.
func NamespaceMismatch() *StatusError {
	return BadRequest("the namespace of the provided object does not match the namespace sent on the request")
}

// BadVersion refuses a version that this server can't have given; path is
// where it was found.
func BadVersion(path, version string) *StatusError {
	return BadRequest(fmt.Sprintf("%s: Invalid value: %q: not a version of this server; take one that it gave, unmodified", path, version))
}

// StrictDecoding refuses a body with unknown or duplicate fields, where the
// client asked for it with fieldValidation=Strict.
func StrictDecoding(kind string, problems []string) *StatusError {
	// What YAML repeats is one problem with lines of its own.
	rest := slices.IndexFunc(problems, func(p string) bool { return !repeatedKey.MatchString(p) })
	if rest < 0 {
		rest = len(problems)
	}
	told := problems[rest:]
	if rest > 0 {
		told = append([]string{unmarshalErrors + strings.Join(problems[:rest], "\n  ")}, told...)
	}
	return BadRequest(unhandled(kind, APIVersion, kind, "strict decoding error: "+strings.Join(told, ", ")))
}

// Invalid refuses an object that breaks the rules of Validate.
func (r *Resource) Invalid(name string, errs field.ErrorList) *StatusError {
	return invalid(schema.GroupKind{Kind: r.Kind}, name, errs)
}

// InvalidOptions refuses request parameters, as the options type of
// meta.k8s.io that they stand for.
func InvalidOptions(kind string, errs field.ErrorList) *StatusError {
	return invalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// InvalidReview refuses a question about access that can't be answered.
func InvalidReview(group, kind string, errs field.ErrorList) *StatusError {
	return invalid(schema.GroupKind{Group: group, Kind: kind}, "", errs)
}

func invalid(kind schema.GroupKind, name string, errs field.ErrorList) *StatusError {
	told := named(errs)
	err := apierrors.NewInvalid(kind, name, errs[:told])
	if more := len(errs) - told; more > 0 {
		err.ErrStatus.Message += fmt.Sprintf(" and %d more", more)
	}
	err.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return err
}

// MethodNotAllowed refuses a verb that the path does not have. detail may add
// what to do instead.
func MethodNotAllowed(detail string) *StatusError {
	message := "the server does not allow this method on the requested resource"
	if detail != "" {
		message += ": " + detail
	}
	return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, message, generic())
}

// UnknownPath says that nothing is served there.
func UnknownPath() *StatusError {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound,
		"the server could not find the requested resource", generic())
}

// NotAcceptable refuses an Accept header that asks for what is not offered.
func NotAcceptable(offered ...string) *StatusError {
	return failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"406: Not Acceptable\n\nAvailable representations: "+strings.Join(offered, ", "), generic())
}

// NotAcceptableForm refuses an Accept header that asks for a transformation,
// such as a table, that is not offered.
func NotAcceptableForm(offered ...string) *StatusError {
	return failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+strings.Join(offered, ", "), nil)
}

// UnsupportedMediaType refuses a body in a format that is not read here.
func UnsupportedMediaType(accepted ...string) *StatusError {
	return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(accepted, ", "), nil)
}

// UnsupportedCharset refuses a body in another encoding than UTF-8, whose
// letters would be taken for others.
func UnsupportedCharset(charset string) *StatusError {
	return failure(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body of the request is in charset %q - only utf-8 is read", charset), nil)
}

// Misread refuses a request whose body has fields that would be dropped and
// change what it does.
func Misread(kind string, problems []string) *StatusError {
	return BadRequest(unhandled(kind, APIVersion, kind,
		"field names count in their exact case, and once each: "+strings.Join(problems, ", ")))
}

// RequestTooLarge refuses a body of more than limit bytes.
func RequestTooLarge(limit int64) *StatusError {
	return failure(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		fmt.Sprintf("Request entity too large: limit is %d", limit), nil)
}

// ObjectTooLarge refuses a write that would make an object of more than limit
// bytes: it could not be sent back whole.
func ObjectTooLarge(size int, limit int64) *StatusError {
	return failure(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		fmt.Sprintf("Request entity too large: the object would take %d bytes, metadata.managedFields included; limit is %d", size, limit), nil)
}

// retryIn are details that ask the client to come back; the server sends them
// as the Retry-After header too.
func retryIn(seconds int) *metav1.StatusDetails {
	return &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
}

// URITooLong refuses a URL, as it was sent, of more than limit bytes.
func URITooLong(limit int) *StatusError {
	return failure(http.StatusRequestURITooLong, "RequestURITooLong",
		fmt.Sprintf("the URL is too long: limit is %d bytes", limit), nil)
}

// TooManyHeaders refuses a request with more than limit header fields.
func TooManyHeaders(limit int) *StatusError {
	return failure(http.StatusRequestHeaderFieldsTooLarge, "RequestHeaderFieldsTooLarge",
		fmt.Sprintf("the request has too many header fields: limit is %d", limit), nil)
}

// TooManyRequests asks to come back later. Nothing was done.
func TooManyRequests(message string, retryAfterSeconds int) *StatusError {
	return failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message, retryIn(retryAfterSeconds))
}

// Unavailable says that the server can't do this for now. Nothing was done.
func Unavailable(message string, retryAfterSeconds int) *StatusError {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, message, retryIn(retryAfterSeconds))
}

// Timeout says that the request took too long.
func Timeout(message string) *StatusError {
	return failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: "+message, generic())
}

// FutureVersion refuses to read at a version that is not reached.
func FutureVersion(sent, current string) *StatusError {
	details := retryIn(1)
	details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
		fmt.Sprintf("Timeout: Too large resource version: %s, current: %s", sent, current), details)
}

// Expired says that what was asked for was there, but is no longer kept.
func Expired(message string) *StatusError {
	return failure(http.StatusGone, metav1.StatusReasonExpired, message, nil)
}

// VersionExpired says that this version of an object is not kept, without a word on
// whether it ever was: a compaction may have given it up, and of what a restore left
// out the server knows nothing. kept are those that are there, newest first.
func (r *Resource) VersionExpired(name, version string, kept []string) *StatusError {
	const most = 10
	told := "kept of it are " + strings.Join(kept[:min(len(kept), most)], ", ")
	if len(kept) == 0 {
		told = "none is kept but its deletion"
	}
	if more := len(kept) - most; more > 0 {
		told += fmt.Sprintf(" and %d older", more)
	}
	return Expired(fmt.Sprintf("%s %q has no resourceVersion %s here: a compaction or a restore may have taken it; %s",
		r.Plural, name, version, told))
}

// Internal is a failure of the server itself. Its cause is for the log and
// never leaves; id, if there is one, lets an operator find it there.
func Internal(id string) *StatusError {
	message := "Internal error occurred: the request could not be completed"
	if id != "" {
		message += "; the server's log has the cause under request " + id
	}
	return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, message, nil)
}

// CauseRestartNeeded is the cause of a refusal that stands until the server is
// restarted. It has no Retry-After: waiting alone is in vain.
const CauseRestartNeeded metav1.CauseType = "RestartNeeded"

// restartNeeded are details with that cause.
func restartNeeded() *metav1.StatusDetails {
	return &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Type: CauseRestartNeeded, Message: "the storage takes no writes until the server is restarted",
	}}}
}

// StoreReadOnly refuses a write while the store takes none. Nothing was
// stored.
func StoreReadOnly() *StatusError {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the server's storage takes no writes until the server is restarted; nothing was stored", restartNeeded())
}

// StoreFailed says that the store failed during this very write: whether it
// was stored is open until the server is restarted.
func StoreFailed() *StatusError {
	return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"Internal error occurred: the storage failed while it wrote; whether this write was stored is open until the server "+
			"is restarted, so read the object again before repeating it", restartNeeded())
}

// CauseDamaged is the type of the cause by which a client knows that what is stored is
// damaged: waiting doesn't help, nor does a restart.
const CauseDamaged metav1.CauseType = "StoredDataDamaged"

// damageHint is for whoever runs the server.
const damageHint = "; once the server is stopped 'cmserver check --data-dir DIR' names all that is damaged, and 'cmserver restore' brings back a backup"

// StoreDamaged says that what was to be read is stored, and damaged. object is its key,
// file the one it is in; either may be empty.
func StoreDamaged(object, file string) *StatusError {
	what, where := "stored data", ""
	if object != "" {
		what = "the stored data of " + object
	}
	if file != "" {
		where = " (file " + file + ")"
	}
	return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		"Internal error occurred: "+what+" is damaged"+where+" and can't be read"+damageHint, causedByDamage())
}

// StoreReadOnlyDamaged refuses a write while the store takes none because of damage.
// Nothing was stored.
func StoreReadOnlyDamaged() *StatusError {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the server's stored data is damaged, so that it takes no more writes; nothing was stored"+damageHint, causedByDamage())
}

// StoreReadOnlyTaken refuses a write while the store takes none because its files were
// taken away. Nothing was stored.
func StoreReadOnlyTaken() *StatusError {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"files of the server's storage were removed or changed while it ran, so that it takes no more writes; nothing was stored; "+
			"make a backup before the server is stopped ('cmserver backup FILE'): it has all that was acknowledged", causedByDamage())
}

func causedByDamage() *metav1.StatusDetails {
	details := generic()
	details.Causes = []metav1.StatusCause{{Type: CauseDamaged, Message: "stored data is damaged"}}
	return details
}

// ReasonInsufficientStorage is the reason of a 507, for which Kubernetes has none.
const ReasonInsufficientStorage metav1.StatusReason = "InsufficientStorage"

// StoreFull refuses a write that the disk has no room for. Nothing was stored. The
// code is one that clients take for final.
func StoreFull() *StatusError {
	return failure(http.StatusInsufficientStorage, ReasonInsufficientStorage,
		"the server's disk is full; nothing was stored; free space on it, and writes go on by themselves; deleted objects give theirs back after --deleted-retention", generic())
}

// ClusterFull refuses a write that the cluster which keeps the data has no room for.
// Nothing was stored.
func ClusterFull() *StatusError {
	return failure(http.StatusInsufficientStorage, ReasonInsufficientStorage,
		"the space quota of the etcd cluster that keeps the data is used up; nothing was stored; whoever runs it compacts it, defragments it and disarms its alarm NOSPACE, and writes go on by themselves", generic())
}

// StoreStalled refuses a write while the disk hangs. Nothing was stored.
func StoreStalled() *StatusError {
	return Unavailable("the server's disk does not finish an earlier write; nothing was stored", 5)
}

// StoreUnreachable refuses a request while the cluster that keeps the data can't be
// reached. Nothing was stored.
func StoreUnreachable() *StatusError {
	return Unavailable("the server can't reach the cluster that keeps its data; nothing was stored", 1)
}

// StoreTooSmall refuses an object that is more than the storage takes in one write,
// though it is not beyond what Kubernetes allows. Nothing was stored.
func StoreTooSmall() *StatusError {
	return failure(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		"the object is too large for the server's storage; nothing was stored; a smaller one fits, and whoever runs the storage can let it take more (etcd: --max-request-bytes)", generic())
}

// StoreTimeout says that a write was not finished in the time that the request had:
// it may still be stored.
func StoreTimeout() *StatusError {
	return Timeout("the storage did not finish the write in time; whether it will be stored is open, " +
		"so read the object again before repeating it")
}
