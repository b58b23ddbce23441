package client

import (
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
	method string
	path   []string // segments below the server's address, not escaped
	query  url.Values
	accept string // media types to be answered in; empty means JSON
	body   []byte
	id     retry.WriteID
	asks   bool   // a POST that changes nothing
	object string // what it is about, for messages
	limit  int64
}

// writes tells whether carrying the call out twice could do harm.
func (k call) writes() bool { return k.method != http.MethodGet && !k.asks }

// answer is a response with a code of success.
type answer struct {
	code int
	body []byte
}

// do sends the request, once, and returns the answer of a success. Every other
// outcome is an error made in errors.go.
func (c *Client) do(ctx context.Context, k call) (answer, error) {
	callCtx, cancel := c.withTimeout(ctx)
	defer cancel()
	// A request that was given a connection may have been written to it. Whether
	// it was can't be told for sure: on cancellation net/http does not always
	// wait for the goroutine that writes.
	var connected atomic.Bool
	callCtx = httptrace.WithClientTrace(callCtx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})

	address := c.address(k)
	began := time.Now()
	resp, err := c.request(callCtx, k).Execute(k.method, address)
	e := exchange{call: k, address: address, ctx: ctx, callCtx: callCtx, connected: connected.Load()}
	if resp != nil && resp.RawResponse != nil {
		e.code, e.header = resp.RawResponse.StatusCode, resp.RawResponse.Header
		if err == nil {
			e.body, err = readBody(resp.RawResponse, k.limit)
		}
	}
	c.trace(e, time.Since(began), err)
	c.warn(e.header)
	if err != nil {
		return answer{}, c.brokenExchange(e, err)
	}
	if e.code < 200 || e.code > 299 {
		return answer{}, c.refusal(e)
	}
	return answer{code: e.code, body: e.body}, nil
}

// request prepares a call for resty, which leaves the body of the answer to
// readBody: resty's own reading would take half a kilobyte at a time.
func (c *Client) request(ctx context.Context, k call) *resty.Request {
	req := c.resty.R().SetContext(ctx).SetDoNotParseResponse(true)
	if k.body != nil {
		req.SetHeader("Content-Type", "application/json").SetBody(k.body)
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
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if int64(len(body)) > limit {
		return nil, errTooLarge
	}
	return body, err
}

// exchange is what is known of a call that was made.
type exchange struct {
	call
	address   string
	ctx       context.Context // the caller's
	callCtx   context.Context // with the call's own deadline
	connected bool
	code      int // 0 if no answer began
	header    http.Header
	body      []byte
}

func (c *Client) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.options.RequestTimeout < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.RequestTimeout)
}

// address is the URL of a call. Each segment is escaped, so that no name can
// lead to another path.
func (c *Client) address(k call) string {
	u := strings.Builder{}
	u.WriteString(c.target.base.Scheme + "://" + c.target.base.Host)
	u.WriteString(strings.TrimSuffix(c.target.base.EscapedPath(), "/"))
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
