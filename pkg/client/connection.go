package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/retry"
)

// ConnectionError says that no answer came, or none that ended. It is inside a
// retry.UnsentError, a retry.UnreadError or a retry.LostError.
type ConnectionError struct {
	Server string // as Target names it
	Object string // what the request was about
	Sent   bool   // the request may have reached the server
	Write  bool   // the request would change the object
	Cause  string // in words for a person
	Next   string // what to do
	Err    error  // the cause itself
}

func (e *ConnectionError) Error() string {
	switch {
	case !e.Sent && errors.Is(e.Err, context.Canceled):
		return fmt.Sprintf("interrupted before the request about %s was sent to %s", e.Object, e.Server)
	case !e.Sent:
		return fmt.Sprintf("cannot reach %s: %s; %s", e.Server, e.Cause, e.Next)
	case e.Write:
		return fmt.Sprintf("%s did not answer the write to %s: %s; it may have been carried out or not, so look at it before writing again",
			e.Server, e.Object, e.Cause)
	}
	return fmt.Sprintf("%s did not answer about %s: %s; %s", e.Server, e.Object, e.Cause, e.Next)
}

func (e *ConnectionError) Unwrap() error { return e.Err }

// IsUnreachable tells whether an error means that no server answered: there was
// no connection, it broke, it took too long, or what came is a code from 500 up
// without the API's Status. A call that its own caller cancelled is none of
// those.
func IsUnreachable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	var unexpected *UnexpectedError
	if errors.As(err, &unexpected) && unexpected.Code >= http.StatusInternalServerError {
		return true
	}
	return errors.As(err, new(*ConnectionError))
}

// brokenExchange turns the failure to get a whole answer into an error.
func (c *Client) brokenExchange(e exchange, err error) error {
	var plugin *pluginError
	switch {
	case errors.As(err, &plugin) && !errors.Is(e.ctx.Err(), context.Canceled):
		return c.noCredentials(e, plugin)
	case errors.Is(err, errTooLarge) && e.success():
		return c.tooLarge(e)
	case e.code == http.StatusConflict && e.writes() && beginsAsStatus(e.body):
		return conflictByCode(e)
	case e.code != 0 && !e.success():
		// The code alone refuses the request, and the reason is lost.
		return c.unexpected(e, ", with a body that could not be read to its end")
	}
	why := c.cause(e, err)
	broken := &ConnectionError{
		Server: e.peer.String(), Object: e.object, Sent: e.connected, Write: e.writes(),
		Cause: why.text, Next: why.next, Err: why.err,
	}
	if !e.connected {
		return &retry.UnsentError{Err: broken}
	}
	return e.unanswered(broken)
}

// unanswered marks the error of a call that may have been carried out and has no answer
// that tells.
func (k call) unanswered(err error) error {
	if k.writes() {
		return &retry.LostError{Err: err}
	}
	return &retry.UnreadError{Err: err}
}

// beginsAsStatus tells whether the part of a body that arrived may be that of a
// Status, and not a proxy's page.
func beginsAsStatus(part []byte) bool {
	text := bytes.TrimSpace(part)
	return len(text) == 0 || text[0] == '{'
}

// conflictByCode is the refusal of a write of which only the code arrived. For a
// create that code says that the name is taken, for all else that the object is
// at another version. Whoever acts on either reads the object first.
func conflictByCode(e exchange) error {
	reason := metav1.StatusReasonConflict
	if e.method == http.MethodPost {
		reason = metav1.StatusReasonAlreadyExists
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(e.code), Reason: reason,
		Message: fmt.Sprintf("the write to %s was refused: %d %s, with a body that could not be read to its end",
			e.object, e.code, http.StatusText(e.code)),
	}}
}

// cause is why a request failed, in words.
type cause struct {
	text string
	next string
	err  error
}

// cause looks for the reason that a person can act on. What the caller's
// context has to say comes first: net/http reports its end in many disguises.
func (c *Client) cause(e exchange, err error) cause {
	next := e.peer.next()
	if e.connected {
		next = "try again"
	}
	switch {
	case errors.Is(e.ctx.Err(), context.Canceled):
		return cause{"interrupted", "try again", context.Canceled}
	case e.ctx.Err() != nil:
		return cause{"no answer before the deadline", next, e.ctx.Err()}
	case e.callCtx.Err() != nil:
		after := c.options.RequestTimeout
		return cause{timeoutError{after}.Error(), next + "; --request-timeout sets how long to wait", timeoutError{after}}
	case e.late:
		over := lateError{timeoutError{e.within}}
		return cause{over.Error(), next, over}
	}
	return e.peer.failedConnection(err, next)
}

// timeoutError is the end of a call's own time. It is not the caller's
// DeadlineExceeded: the caller may well go on.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// Timeout makes it recognizable as package net's timeouts are.
func (e timeoutError) Timeout() bool { return true }

// Temporary completes net.Error.
func (e timeoutError) Temporary() bool { return true }

var _ net.Error = timeoutError{}

// lateError is the end of a turn: the call goes on with another server.
type lateError struct{ timeoutError }

func (e *endpoint) failedConnection(err error, next string) cause {
	var (
		operation   *net.OpError
		lookup      *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		errno       syscall.Errno
		text        string
	)
	switch {
	case errors.As(err, &certificate):
		text = "its certificate is not trusted: " + plain(certificate.Err)
		next = "if it is the right server, name the authority to trust with --certificate-authority"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		text = "it does not speak https"
		next = "give its address with http:// if that is what it speaks"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		text = fmt.Sprintf("there is no host named %q", lookup.Name)
	case errors.As(err, &lookup):
		text = fmt.Sprintf("the host name %q could not be looked up: %s", lookup.Name, lookup.Err)
	case e.socket != "" && errors.Is(err, fs.ErrPermission):
		text = "this user may not connect to the socket"
		next = "ask whoever runs the server; its --listen-mode and the socket's group say who may"
	case errors.As(err, &errno):
		text = errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		text = "the connection was closed"
	case errors.As(err, &operation) && operation.Timeout():
		text = "no answer in time"
	default:
		text = plain(err)
	}
	if errors.As(err, &operation) && operation.Op == "proxyconnect" {
		text = "the proxy: " + text
		next = e.nextForProxy()
	}
	return cause{text, next, err}
}

// plain is an error's text without what only a programmer reads.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	for _, prefix := range []string{"net/http: ", "http: ", "http2: ", "tls: ", "x509: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
