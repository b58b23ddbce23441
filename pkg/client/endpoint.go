package client

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// endpoint is one server of a target and how to get there. It may be shared.
type endpoint struct {
	config   *rest.Config
	base     *url.URL
	name     string // the target's
	ownProxy bool   // the kubeconfig names the proxy
	socket   string // path of a unix socket, empty if it is none
}

// complete fills in what follows from the config, and refuses an address that can't
// be used.
func (e *endpoint) complete() (err error) {
	if e.base, _, err = rest.DefaultServerUrlFor(e.config); err != nil {
		return fmt.Errorf("server address %q: %w", e.config.Host, err)
	}
	if err := e.check(); err != nil {
		return err
	}
	// A proxy function makes client-go build a transport that nobody else
	// shares; without one it may hand out the process-wide default.
	if e.ownProxy = e.config.Proxy != nil; !e.ownProxy {
		e.config.Proxy = http.ProxyFromEnvironment
	}
	return nil
}

// check refuses addresses that can't be used, or not without giving
// credentials away.
func (e *endpoint) check() error {
	shown := e.base.Redacted()
	switch {
	case e.base.Scheme != "http" && e.base.Scheme != "https":
		return fmt.Errorf("server address %q: the scheme must be http or https, or unix:///PATH for a socket", shown)
	case e.base.Hostname() == "":
		return fmt.Errorf("server address %q: it names no host", shown)
	case e.base.User != nil:
		return fmt.Errorf("server address %q: it must not hold credentials; give a token with --token", shown)
	case e.base.RawQuery != "" || e.base.Fragment != "":
		return fmt.Errorf("server address %q: it must end with its path", shown)
	case e.base.Scheme == "http" && !isLoopback(e.base.Hostname()) && e.hasCredentials():
		return fmt.Errorf("credentials are not sent to %s: anybody on the way could read them there; use https", e)
	}
	return nil
}

func (e *endpoint) hasCredentials() bool {
	c := e.config
	return c.BearerToken != "" || c.BearerTokenFile != "" || c.Username != "" || c.Password != "" ||
		c.ExecProvider != nil || c.AuthProvider != nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// String names the server in messages: its address, and the context or the pod
// that it is from. It holds no credentials.
func (e *endpoint) String() string { return called(e.address(), e.name) }

// called is an address in messages, with what else it is called.
func called(address, name string) string {
	if name == "" {
		return address
	}
	return address + " (" + name + ")"
}

// address is the server's, without a path's last slash and without
// credentials.
func (e *endpoint) address() string {
	if e.socket != "" {
		return socketScheme + e.socket
	}
	return e.base.Scheme + "://" + e.base.Host + strings.TrimSuffix(e.base.Path, "/")
}

// httpClient makes a client that only its caller has, transport included.
func (e *endpoint) httpClient(o Options) (*http.Client, error) {
	config := rest.CopyConfig(e.config)
	if o.Trace != nil && o.TraceDetail >= TraceHeaders {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &headerTrace{next: next, tell: o.Trace} })
	}
	around := boundPlugin(config)
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", e, err)
	}
	// A copy, because what client-go returns may be shared, and resty writes
	// into the client that it is given.
	return &http.Client{Transport: around(made.Transport), CheckRedirect: followSameServer}, nil
}

// maxRedirects is how often a read goes where it is sent.
const maxRedirects = 5

// followSameServer lets a read follow redirects on the server that it was sent
// to. A write is sent nowhere else, and neither are credentials: client-go's
// transport would add them to a request for any host.
func followSameServer(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || len(via) > maxRedirects ||
		req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// next is what a person can do when this server can't be reached.
func (e *endpoint) next() string {
	if e.name != "" {
		return "is the cluster up? choose another one with --context"
	}
	return "is cmserver running? give another address with --server"
}

// nextForProxy is what a person can do when the proxy in between can't be
// reached.
func (e *endpoint) nextForProxy() string {
	if e.ownProxy {
		return "check the proxy-url of the cluster in the kubeconfig"
	}
	return "check HTTPS_PROXY and NO_PROXY in the environment"
}
