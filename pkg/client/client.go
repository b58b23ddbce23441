package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-resty/resty/v2"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"

	"example.com/cmctl/pkg/retry"
)

// DefaultRequestTimeout is how long one call may take.
const DefaultRequestTimeout = 30 * time.Second

// Options adjust a Client. The zero value is ready to use.
type Options struct {
	// FieldManager is the name under which writes are recorded, in managedFields
	// and in the history. Empty leaves it to the server.
	FieldManager string
	// RequestTimeout bounds each call, from connecting to the last byte of the
	// answer. 0 means DefaultRequestTimeout, below 0 that only the context ends
	// a call.
	RequestTimeout time.Duration
	// Reads makes reads patient: one that the server asks to make later, or whose
	// answer broke off, is made again within these caps, request by request. Nil
	// makes each read once. An Object and a Watch are not concerned: the loops that
	// work on them have a patience of their own.
	Reads *retry.Options
	// UserAgent is how the program introduces itself; empty means
	// cmctl/<version>.
	UserAgent string
	// DryRun lets the server check each write as if it were real, and store
	// nothing.
	DryRun bool
	// Warn is called with each warning that the server sends along with an
	// answer. It may be called from many goroutines at once.
	Warn func(message string)
	// Moved is called when a target of several servers is left for another one of
	// them. It may be called from many goroutines at once.
	Moved func(Move)
	// Trace is called with a line about each request, or with several lines, as
	// TraceDetail asks: never with credentials or data. It may be called from
	// many goroutines at once.
	Trace       func(lines string)
	TraceDetail Detail
}

// Client speaks to one target. It may be shared by many goroutines, and keeps
// connections open for further calls until CloseIdleConnections.
type Client struct {
	target  *Target
	options Options
	peers   *peers
	only    *peer // the one server to speak to; nil if it is any of them
}

// New makes a client of that server. It connects to nothing yet.
func New(t *Target, o Options) (*Client, error) {
	if t == nil {
		return nil, errors.New("no target: which server is meant is for ResolveTarget to say")
	}
	if o.UserAgent == "" {
		o.UserAgent = defaultUserAgent()
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	servers, err := connectPeers(t, o)
	if err != nil {
		return nil, err
	}
	return &Client{target: t, options: o, peers: servers}, nil
}

// newResty sets up resty to send what it is given, once.
func newResty(hc *http.Client, o Options) *resty.Client {
	r := resty.NewWithClient(hc)
	r.SetRetryCount(0)
	r.SetLogger(silent{})
	r.SetHeader("User-Agent", o.UserAgent)
	r.SetHeader("Accept", "application/json")
	r.SetPreRequestHook(func(_ *resty.Client, req *http.Request) error {
		if req.Method != http.MethodGet {
			// net/http and HTTP/2 can send a body again by themselves only
			// where they know how to get it again.
			req.GetBody = nil
		}
		return nil
	})
	return r
}

func defaultUserAgent() string {
	v := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	return "cmctl/" + v
}

// silent drops what resty would print: everything worth telling is in errors.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

// Target is what this client speaks to.
func (c *Client) Target() *Target { return c.target }

// DryRun is a client of the same server, on the same connections, whose writes
// are checked as if they were real and not stored.
func (c *Client) DryRun() *Client {
	d := *c
	d.options.DryRun = true
	return &d
}

// impatient is the same client for a loop that decides itself about another try.
func (c *Client) impatient() *Client {
	once := *c
	once.options.Reads = nil
	return &once
}

// at is the same client for calls that make sense on one server alone.
func (c *Client) at(p *peer) *Client {
	one := *c
	one.only = p
	return &one
}

// CloseIdleConnections closes the connections that no call is using. The client
// remains usable.
func (c *Client) CloseIdleConnections() {
	for _, p := range c.peers.all {
		utilnet.CloseIdleConnectionsFor(p.http.Transport)
	}
}

// ServerVersion asks the server which release it is.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	k := call{method: http.MethodGet, path: []string{"version"}, object: "the server's version", limit: objectLimit}
	a, err := c.do(ctx, k)
	if err != nil {
		return nil, err
	}
	info := &version.Info{}
	if json.Unmarshal(a.body, info) != nil || info.GitVersion == "" {
		return nil, c.notTheObject(k, a)
	}
	return info, nil
}

// ConfigMaps are those of a namespace. The empty namespace stands for all of
// them and can only be listed.
func (c *Client) ConfigMaps(namespace string) *ConfigMaps {
	return &ConfigMaps{client: c, namespace: namespace}
}
