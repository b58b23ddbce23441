package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/cmctl/pkg/types"
)

// A watch ends by itself within these limits, in seconds: spread out, so that
// those who began together don't all come back together.
const (
	minWatchSeconds = 300
	maxWatchSeconds = 600
)

// stream is the answer to a watch. It belongs to one goroutine.
type stream struct {
	client   *Client
	exchange exchange
	cancel   context.CancelFunc
	body     *idleReader
	decoder  *json.Decoder
}

// streamEvent is an event as it is on the wire.
type streamEvent struct {
	Type   string          `json:"type"` // empty at the end of the stream
	Raw    json.RawMessage `json:"object"`
	object types.Document
}

// openWatch asks for the changes after that version. A refusal is an error made
// in errors.go; 410 is one that apierrors.IsResourceExpired or IsGone knows.
func (m *ConfigMaps) openWatch(ctx context.Context, o ListOptions, version string, idle time.Duration) (*stream, error) {
	k, err := m.collection()
	if err != nil {
		return nil, err
	}
	k.object = "the changes of " + k.object
	k.limit = objectLimit
	k.query = o.selectors()
	k.query.Set("watch", "true")
	k.query.Set("allowWatchBookmarks", "true")
	k.query.Set("resourceVersion", version)
	k.query.Set("timeoutSeconds", strconv.Itoa(minWatchSeconds+rand.IntN(maxWatchSeconds-minWatchSeconds)))
	return m.client.stream(ctx, k, idle)
}

// stream makes a call whose answer has no end to wait for. The time that a call
// may take is that until the head of the answer; after that the stream may be
// silent for as long as idle says.
func (c *Client) stream(ctx context.Context, k call, idle time.Duration) (*stream, error) {
	callCtx, cancel := context.WithCancel(ctx)
	head := c.options.RequestTimeout
	if head < 0 {
		head = idle
	}
	late := time.AfterFunc(head, cancel)
	defer late.Stop()
	s, err := inTurn(c, callCtx, time.Now().Add(head), k, func(t turn) (*stream, error) { return c.openStream(ctx, callCtx, t, k) })
	if err != nil {
		cancel()
		return nil, err
	}
	s.cancel = cancel
	s.body.limit, s.body.cancel = idle, cancel
	return s, nil
}

// openStream is the stream of the server whose turn it is, without its limits.
func (c *Client) openStream(ctx, callCtx context.Context, t turn, k call) (*stream, error) {
	began := time.Now()
	e, resp, err := c.send(ctx, callCtx, t, k)
	if err == nil && !e.success() {
		e.body, err = readBody(resp, k.limit)
	}
	c.trace(e, time.Since(began), err)
	c.warn(e.header)
	if err != nil || !e.success() {
		return nil, c.failed(e, err)
	}
	body := &idleReader{body: resp.Body}
	return &stream{client: c, exchange: e, body: body, decoder: json.NewDecoder(body)}, nil
}

// failed is the error of an exchange that broke or was refused.
func (c *Client) failed(e exchange, err error) error {
	if err != nil {
		return c.brokenExchange(e, err)
	}
	return c.refusal(e)
}

// close gives the connection up. Nothing may be read any more.
func (s *stream) close() {
	s.cancel()
	// What it has to say about a stream that is not wanted any more is nothing.
	_ = s.body.body.Close()
}

// next waits for the next event. At the end of a stream that the server ended
// in good order it returns an event without a type. An ERROR event is returned
// as the error that it tells.
func (s *stream) next() (streamEvent, error) {
	s.body.left = objectLimit
	e := streamEvent{}
	err := s.decoder.Decode(&e)
	switch {
	case errors.Is(err, io.EOF):
		return streamEvent{}, nil
	case err != nil:
		return streamEvent{}, s.broken(err)
	case e.Type == "ERROR":
		status, ok := parseStatus(e.Raw)
		if !ok {
			return streamEvent{}, s.nonsense("an ERROR event without a Status")
		}
		fillRetryAfter(status, http.Header{}, time.Now())
		return streamEvent{}, &apierrors.StatusError{ErrStatus: *status}
	}
	if e.object, err = types.ParseDocument(e.Raw); err != nil || !s.fits(e) {
		return streamEvent{}, s.nonsense(fmt.Sprintf("a %q event that is not about a ConfigMap", e.Type))
	}
	return e, nil
}

// fits tells whether an event has what is relied on.
func (s *stream) fits(e streamEvent) bool {
	if e.object.Kind() != types.Kind || e.object.ResourceVersion() == "" {
		return false
	}
	switch e.Type {
	case "BOOKMARK":
		return true
	case string(Added), string(Modified), string(Deleted):
		return e.object.Name() != "" && e.object.Namespace() != ""
	}
	return false
}

// broken is the end of a stream that is not the server's wish.
func (s *stream) broken(err error) error {
	e := &ConnectionError{
		Server: s.exchange.peer.String(), Object: s.exchange.object, Sent: true,
		Next: "try again", Err: err,
	}
	switch {
	case s.exchange.ctx.Err() != nil:
		return s.exchange.ctx.Err()
	case s.body.expired:
		e.Cause = fmt.Sprintf("nothing came for %s", s.body.limit)
	case errors.As(err, new(*json.SyntaxError)), errors.As(err, new(*json.UnmarshalTypeError)):
		e.Cause = "what came is no event"
	case errors.Is(err, errTooLarge):
		e.Cause = fmt.Sprintf("an event has more than %d MiB", objectLimit>>20)
	default:
		e.Cause = s.exchange.peer.failedConnection(err, "").text
	}
	s.client.peers.failed(s.exchange.peer, e)
	return e
}

// nonsense is the end of a stream with an event that can't be used.
func (s *stream) nonsense(what string) error {
	e := &ConnectionError{
		Server: s.exchange.peer.String(), Object: s.exchange.object, Sent: true,
		Cause: "it sent " + what, Next: "check whether a proxy answers in the server's place",
		Err: errors.New(what),
	}
	s.client.peers.failed(s.exchange.peer, e)
	return e
}

// idleReader reads a body that may be silent for so long, and in which what is
// read for one event has a limit.
type idleReader struct {
	body    io.ReadCloser
	limit   time.Duration
	cancel  context.CancelFunc // ends the request, so that the body ends
	left    int64              // bytes that may be read still
	expired bool
}

func (r *idleReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errTooLarge
	}
	timer := time.AfterFunc(r.limit, r.cancel)
	n, err := r.body.Read(p[:min(int64(len(p)), r.left)])
	r.expired = !timer.Stop() || r.expired
	r.left -= int64(n)
	return n, err
}
