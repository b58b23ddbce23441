package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// UnexpectedError is an answer that is not the API's: a proxy's page, a body
// that was cut off, a redirect that is not followed. It says nothing about the
// object, so it is neither NotFound nor Conflict nor AlreadyExists. Only a 429
// and a 503 unwrap to a *StatusError, with which the loops of package retry
// wait for as long as the answer asks.
type UnexpectedError struct {
	Method  string
	URL     string
	Code    int
	Snippet string // how the body begins

	server string
	object string
	why    string
	next   string
	cause  error // a *StatusError or errTooLarge
}

func (e *UnexpectedError) Error() string {
	return fmt.Sprintf("%s gave no usable answer about %s: %d %s%s; %s",
		e.server, e.object, e.Code, http.StatusText(e.Code), e.why, e.next)
}

// Unwrap is the request to come back later, if the code makes one.
func (e *UnexpectedError) Unwrap() error { return e.cause }

// refusal turns an answer that is no success into an error.
func (c *Client) refusal(e exchange) error {
	if e.code >= 300 && e.code < 400 {
		return c.redirected(e)
	}
	status, ok := parseStatus(e.body)
	switch {
	case !ok:
		return c.unexpected(e, ", with "+describeBody(e.body))
	case !fits(status, e.code):
		return c.unexpected(e, fmt.Sprintf(", with a Status that contradicts it (reason %s, code %d)", status.Reason, status.Code))
	case status.Reason == metav1.StatusReasonNotFound && status.Details != nil && status.Details.Name == "":
		// The API's way to say that it does not know the path. A server without
		// ConfigMaps must not pass for one where this object is free to create.
		return c.unexpected(e, ", because it serves no such resource at this address")
	}
	status.Code = int32(e.code)
	fillRetryAfter(status, e.header, time.Now())
	err := c.statusError(e, &apierrors.StatusError{ErrStatus: *status})
	if e.code == http.StatusServiceUnavailable && Lasts(err) {
		return &retry.RefusedError{Err: err}
	}
	return err
}

// NeedsRestart tells whether the server says of a failure that it is so until the
// server is restarted.
func NeedsRestart(err error) bool { return apierrors.HasStatusCause(err, types.CauseRestartNeeded) }

// Lasts tells whether the server says of a failure that waiting is in vain: until it is
// restarted, or damaged data is brought back from a backup.
func Lasts(err error) bool {
	return NeedsRestart(err) || apierrors.HasStatusCause(err, types.CauseDamaged)
}

// statusError adds what to do to the one refusal that says too little.
func (c *Client) statusError(e exchange, err *apierrors.StatusError) error {
	if e.code != http.StatusUnauthorized {
		return err
	}
	if why := e.peer.certificateTrouble(time.Now()); why != "" {
		return fmt.Errorf("%s does not accept the credentials for %s: %w; %s", e.peer, e.object, err, why)
	}
	return fmt.Errorf("%s does not accept the credentials for %s: %w; give others with --token-file or --token, with a client certificate, or with --kubeconfig and --context",
		e.peer, e.object, err)
}

// parseStatus reads a failure; ok is false if the body is anything else.
func parseStatus(body []byte) (s *metav1.Status, ok bool) {
	s = &metav1.Status{}
	err := json.Unmarshal(body, s)
	return s, err == nil && s.Kind == "Status" && s.Status != metav1.StatusSuccess
}

// fits tells whether a Status belongs to the code that it came with. Reasons on
// which callers act must not be taken from, say, a gateway's 502.
func fits(s *metav1.Status, code int) bool {
	if s.Code != 0 && int(s.Code) != code {
		return false
	}
	switch s.Reason {
	case metav1.StatusReasonNotFound:
		return code == http.StatusNotFound
	case metav1.StatusReasonConflict, metav1.StatusReasonAlreadyExists:
		return code == http.StatusConflict
	}
	return true
}

// wantsHTTPS is what Go's servers answer to plain HTTP where TLS is spoken.
const wantsHTTPS = "Client sent an HTTP request to an HTTPS server."

// unexpected makes the error of an answer that is not the API's. Behind a 5xx
// may stand a server that did carry the request out.
func (c *Client) unexpected(e exchange, why string) error {
	u := &UnexpectedError{
		Method: e.method, URL: e.address, Code: e.code, Snippet: snippet(e.body),
		server: e.peer.String(), object: e.object, why: why,
		next: "check the address, and whether a proxy answers in the server's place",
	}
	if e.code == http.StatusBadRequest && bytes.HasPrefix(e.body, []byte(wantsHTTPS)) {
		u.next = "it speaks https: give its address with https://, and its authority with --certificate-authority"
	}
	if e.code == http.StatusTooManyRequests || e.code == http.StatusServiceUnavailable {
		later := apierrors.NewGenericServerResponse(e.code, e.method, types.ConfigMaps.GroupResource(), "", u.Snippet, 0, true)
		fillRetryAfter(&later.ErrStatus, e.header, time.Now())
		u.cause = later
	}
	if e.code >= 500 {
		u.next = "try again later"
		return e.unanswered(u)
	}
	return u
}

func (c *Client) redirected(e exchange) error {
	to := "nowhere"
	if at, err := url.Parse(e.header.Get("Location")); err == nil && at.Path+at.Host != "" {
		// Without user and query, which may hold credentials.
		to = (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}).String()
	}
	err := c.unexpected(e, fmt.Sprintf(", which leads to %s and is not followed", to))
	var u *UnexpectedError
	if errors.As(err, &u) {
		u.next = "if that is the right server, give its address with --server"
	}
	return err
}

// notTheObject is a success whose body is something else. A write that got such
// an answer may have been carried out.
func (c *Client) notTheObject(k call, a answer) error {
	e := exchange{call: k, turn: turn{peer: a.from}, address: c.address(a.from.endpoint, k), code: a.code, body: a.body}
	return c.unusable(e, ", with "+describeBody(a.body))
}

// unusable is a success that can't be read.
func (c *Client) unusable(e exchange, why string) error {
	err := c.unexpected(e, why)
	if e.writes() {
		return &retry.LostError{Err: err}
	}
	return err
}

// tooLarge is a success with more to read than the call allows. It unwraps to
// errTooLarge, with which a list tries smaller pages.
func (c *Client) tooLarge(e exchange) error {
	err := c.unusable(e, fmt.Sprintf(", with a body of more than %d MiB, which is not read", e.limit>>20))
	var u *UnexpectedError
	if errors.As(err, &u) {
		u.cause = errTooLarge
	}
	return err
}

// describeBody tells what came instead of what was expected. The beginning of
// an object is not shown: it may be what the caller keeps in it.
func describeBody(body []byte) string {
	switch text := snippet(body); {
	case len(body) == 0:
		return "an empty body"
	case json.Valid(body):
		return "a body that is neither the object nor a Status"
	case text == "" || text[0] == '{':
		return "a body that is cut off or is not JSON"
	default:
		return fmt.Sprintf("a body that is not the API's: %q", text)
	}
}

// snippet is how a body begins, on one line. JSON is left out.
func snippet(body []byte) string {
	const limit = 120
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), 4*limit)]), "")), " ")
	if strings.HasPrefix(text, "{") {
		return "{"
	}
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}

// fillRetryAfter takes the wish to come back later from the header, if the body
// does not have it.
func fillRetryAfter(s *metav1.Status, header http.Header, now time.Time) {
	seconds := retryAfter(header.Get("Retry-After"), now)
	if seconds == 0 || s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		return
	}
	if s.Details == nil {
		s.Details = &metav1.StatusDetails{}
	}
	s.Details.RetryAfterSeconds = seconds
}

// retryAfter reads the header in both of its forms: seconds, and a date.
func retryAfter(value string, now time.Time) int32 {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return int32(min(max(seconds, 0), math.MaxInt32))
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0
	}
	return int32(min(math.Ceil(at.Sub(now).Seconds()), math.MaxInt32))
}
