package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-resty/resty/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// How large an answer may be, in bytes.
const (
	objectLimit = 8 << 20
	listLimit   = 64 << 20
)

// call is one request and what there is to say about it.
type call struct {
	method    string
	path      []string // segments below the server's address, not escaped
	query     url.Values
	body      []byte
	mediaType string // of the body; empty means JSON
	id        retry.WriteID
	accept    string // media types to be answered in; empty means JSON
	asks      bool   // a POST that changes nothing
	object    string // what it is about, for messages
	limit     int64
}

// writes tells whether carrying the call out twice could do harm.
func (k call) writes() bool { return k.method != http.MethodGet && !k.asks }

// answer is a response with a code of success.
type answer struct {
	code int
	body []byte
	from *peer
}

// do sends the request and returns the answer of a success: a read as often as the
// options allow, a write once.
func (c *Client) do(ctx context.Context, k call) (answer, error) {
	if k.writes() || c.options.Reads == nil {
		return c.once(ctx, k)
	}
	return retry.Repeat(ctx, k.object, func(ctx context.Context) (answer, error) { return c.once(ctx, k) }, *c.options.Reads)
}

// once makes the call one time: of several servers, by the first that has an answer.
func (c *Client) once(ctx context.Context, k call) (answer, error) {
	callCtx, cancel := c.withTimeout(ctx)
	defer cancel()
	until, _ := callCtx.Deadline()
	return inTurn(c, callCtx, until, k, func(t turn) (answer, error) { return c.take(ctx, callCtx, t, k) })
}

// take sends the request to the server whose turn it is. Every outcome but a success
// is an error made in errors.go.
func (c *Client) take(ctx, callCtx context.Context, t turn, k call) (answer, error) {
	began := time.Now()
	e, resp, err := c.send(ctx, callCtx, t, k)
	if err == nil {
		e.body, err = readBody(resp, k.limit)
	}
	c.trace(e, time.Since(began), err)
	c.warn(e.header)
	if err != nil {
		return answer{}, c.brokenExchange(e, err)
	}
	if !e.success() {
		return answer{}, c.refusal(e)
	}
	return answer{code: e.code, body: e.body, from: e.peer}, nil
}

// send sends the request and returns the head of the answer. The body is left
// to the caller to read and to close, if there is no error.
func (c *Client) send(ctx, callCtx context.Context, t turn, k call) (exchange, *http.Response, error) {
	e := exchange{call: k, turn: t, address: c.address(t.peer.endpoint, k), ctx: ctx, callCtx: callCtx}
	turnCtx, watch := t.begin(callCtx)
	// A request that was given a connection may have been written to it. Whether
	// it was can't be told for sure: on cancellation net/http does not always
	// wait for the goroutine that writes.
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(turnCtx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			connected.Store(true)
			if k.writes() {
				watch.stop() // what was sent to one server is not for another
			}
		},
	})
	resp, err := c.request(traced, t.peer, k).Execute(k.method, e.address)
	e.connected, e.late = connected.Load(), watch.stop()
	if resp == nil || resp.RawResponse == nil {
		return e, nil, err
	}
	e.code, e.header = resp.RawResponse.StatusCode, resp.RawResponse.Header
	return e, resp.RawResponse, err
}

// request prepares a call for resty, which leaves the body of the answer to
// readBody: resty's own reading would take half a kilobyte at a time.
func (c *Client) request(ctx context.Context, p *peer, k call) *resty.Request {
	req := p.resty.R().SetContext(ctx).SetDoNotParseResponse(true)
	if k.body != nil {
		req.SetHeader("Content-Type", cmp.Or(k.mediaType, types.MediaJSON)).SetBody(k.body)
	}
	if k.accept != "" {
		req.SetHeader("Accept", k.accept)
	}
	if k.id != "" {
		req.SetHeader(types.WriteIDHeader, string(k.id))
	}
	return req
}

// errTooLarge says that an answer has more bytes than its call allows.
var errTooLarge = errors.New("the answer is too large")

// readBody reads and closes the body of an answer.
func readBody(r *http.Response, limit int64) ([]byte, error) {
	defer r.Body.Close()
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(r.Body, limit+1))
	if int64(body.Len()) > limit {
		return nil, errTooLarge
	}
	return body.Bytes(), err
}

// exchange is what is known of a call that was made.
type exchange struct {
	call
	turn
	address   string
	ctx       context.Context // the caller's
	callCtx   context.Context // with the call's own deadline
	connected bool
	late      bool // the turn was over before it had what it was for
	code      int  // 0 if no answer began
	header    http.Header
	body      []byte
}

// success tells whether the code of the answer is one.
func (e exchange) success() bool { return e.code >= 200 && e.code < 300 }

func (c *Client) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.options.RequestTimeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.RequestTimeout)
}

// address is the URL of a call to a server. Each segment is escaped, so that no name can
// lead to another path.
func (c *Client) address(of *endpoint, k call) string {
	u := strings.Builder{}
	u.WriteString(of.base.Scheme + "://" + of.base.Host)
	u.WriteString(strings.TrimSuffix(of.base.EscapedPath(), "/"))
	for _, segment := range k.path {
		u.WriteString("/" + url.PathEscape(segment))
	}
	query := url.Values{}
	for key, values := range k.query {
		query[key] = values
	}
	if k.writes() && c.options.FieldManager != "" {
		query.Set("fieldManager", c.options.FieldManager)
	}
	if k.writes() && c.options.DryRun {
		query.Set("dryRun", metav1.DryRunAll)
	}
	if len(query) > 0 {
		u.WriteString("?" + query.Encode())
	}
	return u.String()
}

func (c *Client) warn(header http.Header) {
	if c.options.Warn == nil {
		return
	}
	// What does not parse is no warning that a person could read.
	warnings, _ := utilnet.ParseWarningHeaders(header.Values("Warning"))
	for _, w := range warnings {
		c.options.Warn(w.Text)
	}
}
