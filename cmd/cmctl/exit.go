package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/output"
	"example.com/cmctl/cmd/cmctl/internal/supervise"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Exit codes that scripts rely on.
const (
	exitOK          = 0
	exitFailed      = 1
	exitDiffers     = 1 // of diff alone
	exitUsage       = 2
	exitConflict    = 3 // gave up, or a person must decide
	exitNotFound    = 4
	exitExists      = 5
	exitRefused     = 6 // invalid, forbidden, unauthorized
	exitUnreachable = 7 // unreachable, overloaded, or outcome unknown
	exitInterrupted = 130
)

// usageError is a command line that makes no sense.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// manyError is what went wrong with several objects, one error each.
type manyError []error

func (e manyError) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// oneOrMany is nil, the error, or all of them.
func oneOrMany(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return manyError(errs)
}

// objectError says which object of which server an error is about.
type objectError struct {
	object string
	name   string
	server string
	where  string // the flags that name this server and namespace again
	host   string // those of them that name the server
	err    error
}

// Error adds what the inner text doesn't say already.
func (e *objectError) Error() string {
	text := e.err.Error()
	text = strings.TrimPrefix(text, e.object+": ")
	for _, name := range []string{e.object, "configmaps " + strconv.Quote(e.name), "ConfigMap " + strconv.Quote(e.name), "configmaps"} {
		if rest, ok := strings.CutPrefix(text, name+" "); ok {
			text = strings.TrimPrefix(rest, "is ") // what is left stands behind a colon
		}
	}
	object, server := e.object, ""
	if strings.Contains(text, e.object) {
		object = ""
	}
	if !strings.Contains(text, e.server) {
		server = e.server
	}
	switch {
	case object != "" && server != "":
		return object + " on " + server + ": " + text
	case object != "":
		return object + ": " + text
	case server != "":
		return text + " (server " + server + ")"
	}
	return text
}

func (e *objectError) Unwrap() error { return e.err }

// saidError is a failure that a command printed as its result, as can-i prints
// no. Nothing more is to be said about it.
type saidError struct {
	code int
	err  error
}

func (e *saidError) Error() string { return e.err.Error() }
func (e *saidError) Unwrap() error { return e.err }

// exitCode is the one place that turns an error into an exit code. Several
// objects: a conflict if any is left, else the code of the first failure.
func exitCode(err error) int {
	if errors.Is(err, errInterrupted) {
		return exitInterrupted
	}
	if said := (*saidError)(nil); errors.As(err, &said) {
		return said.code
	}
	if errors.Is(err, errDiffers) {
		return exitDiffers
	}
	if failed := (*diffFailedError)(nil); errors.As(err, &failed) {
		return max(exitCode(failed.err), exitUsage)
	}
	if many := manyError(nil); errors.As(err, &many) {
		code := exitOK
		for _, err := range many {
			switch c := exitCode(err); {
			case c == exitConflict:
				code = c
			case code == exitOK:
				code = c
			}
		}
		return code
	}
	if program := (*supervise.StartError)(nil); errors.As(err, &program) {
		return program.Code()
	}
	var exhausted *retry.ExhaustedError
	// The order counts: an unknown outcome or an exhausted loop holds the last
	// answer, which would say less.
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, new(*usageError)), errors.As(err, new(*targetError)):
		return exitUsage
	case errors.As(err, new(*unfitError)):
		return exitRefused
	case errors.As(err, new(*output.MissingError)):
		return exitNotFound
	case errors.As(err, new(*retry.OutcomeUnknownError)):
		return exitUnreachable
	case errors.As(err, new(*conflictError)), errors.As(err, new(*retry.ReplacedError)):
		return exitConflict
	case client.IsUnreachable(err), errors.As(err, new(*client.GaveUpError)), errors.Is(err, context.DeadlineExceeded):
		return exitUnreachable
	case errors.As(err, &exhausted) && statusCode(exhausted.Last) != exitUnreachable:
		return exitConflict // gave up: others kept writing, making or deleting it
	}
	return statusCode(err)
}

// statusCode is the exit code for an answer of the server.
func statusCode(err error) int {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return exitFailed
	}
	code := status.Status().Code
	switch {
	case apierrors.IsNotFound(err):
		return exitNotFound
	case apierrors.IsAlreadyExists(err):
		return exitExists
	case apierrors.IsConflict(err):
		return exitConflict
	case code == http.StatusTooManyRequests, code >= 500:
		return exitUnreachable
	case code >= 400:
		return exitRefused
	}
	return exitFailed
}

// errInterrupted marks what failed because the person ended it.
var errInterrupted = errors.New("interrupted")

// overError is a context's end in words for a person.
type overError struct{ err error }

func (e *overError) Error() string {
	if errors.Is(e.err, context.Canceled) {
		return "interrupted"
	}
	return "out of time"
}

func (e *overError) Unwrap() error { return e.err }

// endOf is the error of a context that has ended, nil of one that goes on.
func endOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &overError{ctx.Err()}
}

// interruptedError is what failed once the person ended the program.
type interruptedError struct{ err error }

func (e *interruptedError) Error() string {
	inner := e.err
	for about := (*objectError)(nil); errors.As(inner, &about); {
		inner = about.err
	}
	if inner.Error() == errInterrupted.Error() || inner.Error() == context.Canceled.Error() {
		return errInterrupted.Error()
	}
	return "interrupted: " + e.err.Error()
}

func (e *interruptedError) Unwrap() []error { return []error{errInterrupted, e.err} }

// hintedError adds to an error what to do next.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// report prints an error for a person: what was tried, on what, and what to do
// next, which is said once for all that fail alike. command is the one that
// failed, as it is called.
func report(w io.Writer, err error, command string) {
	if errors.As(err, new(*saidError)) || errors.Is(err, errDiffers) {
		return // its output says it
	}
	var hints []string
	for _, err := range allErrors(err) {
		fmt.Fprintf(w, "error: %s\n", err)
		if h := hint(err, command); h != "" && !slices.Contains(hints, h) {
			hints = append(hints, h)
		}
	}
	for _, h := range hints {
		fmt.Fprintf(w, "hint: %s\n", h)
	}
	for _, kept := range keptIn(err) {
		kept.tell(w)
	}
}

// allErrors takes apart what went wrong with several objects.
func allErrors(err error) []error {
	many := manyError(nil)
	if !errors.As(err, &many) {
		return []error{err}
	}
	var all []error
	for _, e := range many {
		all = append(all, allErrors(e)...)
	}
	return all
}

// hint is what to do next, where the error's text doesn't say it.
func hint(err error, command string) string {
	var hinted *hintedError
	var exhausted *retry.ExhaustedError
	var replaced *retry.ReplacedError
	about := &objectError{}
	errors.As(err, &about)
	look := strings.TrimSpace("cmctl get "+about.name) + about.where
	switch {
	case errors.As(err, &hinted):
		return hinted.hint
	case errors.As(err, new(*retry.OutcomeUnknownError)) && client.NeedsRestart(err):
		return fmt.Sprintf("the change may be there or not: once the server has been restarted, look at the object with '%s' before trying again", look)
	case errors.As(err, new(*retry.OutcomeUnknownError)):
		return fmt.Sprintf("the change may be there or not: look at the object with '%s' before trying again", look)
	case errors.As(err, &replaced) && replaced.Wanted:
		return fmt.Sprintf("look at the object that is there with '%s'", look)
	case errors.As(err, &replaced):
		return fmt.Sprintf("look at the new object with '%s', then make your change to it", look)
	case errors.As(err, &exhausted) && apierrors.IsConflict(exhausted.Last):
		return "others keep writing this object; try again, or raise --max-attempts"
	case errors.As(err, &exhausted) && askedToWait(exhausted.Last) > 0:
		return fmt.Sprintf("the server asks to be left alone for %s: try again after that", askedToWait(exhausted.Last))
	case errors.As(err, &exhausted):
		return "try again later, or raise --max-attempts"
	case errors.As(err, new(*usageError)) && (strings.Contains(err.Error(), "--help") || strings.Contains(err.Error(), "cmctl ")):
		return "" // the text says it
	case errors.As(err, new(*usageError)):
		return "see '" + command + " --help'"
	case errors.As(err, new(*frozenError)):
		return "" // the text says it
	case errors.As(err, new(*deletedError)):
		return "" // the kept text is what to go on with
	case errors.As(err, new(*staleError)):
		return fmt.Sprintf("look at what it is now with 'cmctl get %s -o yaml%s', and decide", about.name, about.where)
	case refusedForImmutable(err):
		return fmt.Sprintf("its data can't change, for it is immutable: make a changed copy with 'cmctl edit %[1]s --save-as NEWNAME%[2]s', or delete it and create it again, as 'cmctl replace --force -f FILE%[2]s' does", about.name, about.where)
	case apierrors.HasStatusCause(err, types.CauseNotYours):
		return fmt.Sprintf("the namespace is not there, and you may not make it: ask somebody who may create namespaces; 'cmctl auth whoami%s' tells who you are to this server", about.host)
	case missingNamespace(err) != "":
		return fmt.Sprintf("this server makes no namespaces by itself; make it first, with 'kubectl create namespace %s' for example", missingNamespace(err))
	case apierrors.IsNotFound(err) && isOtherKind(about.name):
		return fmt.Sprintf("cmctl knows ConfigMaps only, and took %q for the name of one", about.name)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("'cmctl get -A%s' lists what there is", about.host)
	case apierrors.IsAlreadyExists(err):
		return "change it with 'cmctl apply' or 'cmctl edit'"
	case apierrors.IsUnauthorized(err):
		return "" // the text says it
	case forbiddenToUser(err):
		return fmt.Sprintf("'cmctl auth whoami%s' tells who you are to this server, 'cmctl auth can-i --list%s' what you may do", about.host, about.where)
	case client.NeedsRestart(err):
		return "waiting is in vain: whoever runs the server must restart it; reads go on meanwhile"
	case client.Lasts(err):
		return "" // the text says it
	case statusCode(err) == exitUnreachable && !strings.Contains(err.Error(), "again later"):
		return whatOf(err)
	}
	return ""
}

// whatOf is what to do about a failure of the server by its code.
func whatOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	switch status.Status().Code {
	case http.StatusInternalServerError:
		return "the fault is the server's, and its log has the cause: trying again helps only once that is dealt with"
	case http.StatusInsufficientStorage:
		return "" // the text says it
	}
	return "try again later: the server can't answer this now"
}

// askedToWait is how long a server wants to be left alone.
func askedToWait(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// refusedForImmutable tells whether the server refused a write for what it changes
// of an object that is immutable. Nothing else forbids these fields.
func refusedForImmutable(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return string(c.Type) == string(field.ErrorTypeForbidden) && slices.Contains([]string{"data", "binaryData", "immutable"}, c.Field)
	})
}

// forbiddenToUser tells whether the server refused a request for who sent it, and
// not for what is going on there, for which it gives a cause.
func forbiddenToUser(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d == nil || len(d.Causes) == 0
}

// missingNamespace is the namespace that the server says is not there, empty if
// it says anything else.
func missingNamespace(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return ""
	}
	if d := status.Status().Details; d != nil && d.Kind == types.Namespaces.Plural {
		return d.Name
	}
	return ""
}
