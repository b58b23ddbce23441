package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// DefaultServer is where a server is looked for if nothing says otherwise.
const DefaultServer = "http://127.0.0.1:8080"

// TargetOptions say where the server is. The zero value means DefaultServer.
type TargetOptions struct {
	// Server is a URL. Without a scheme it is http.
	Server string
	// Token is a bearer token. It takes the place of a kubeconfig's credentials.
	Token string
	// CertificateAuthority is a file of certificates to trust instead of the
	// system's.
	CertificateAuthority string
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// Kubeconfig is a file to take server and credentials from.
	Kubeconfig string
	// Context is a context of that file. Without Kubeconfig it is one of
	// kubectl's usual files. If both are empty, no kubeconfig is read.
	Context string
}

// Target is a server and how to authenticate to it. It may be shared.
type Target struct {
	config    *rest.Config
	base      *url.URL
	context   string // of a kubeconfig
	namespace string
}

// ResolveTarget finds out where the server is. It reads a kubeconfig if one is
// asked for. It connects to nothing, and leaves credential plugins and
// certificate files for when they are needed.
func ResolveTarget(o TargetOptions) (*Target, error) {
	if o.CertificateAuthority != "" && o.InsecureSkipTLSVerify {
		return nil, errors.New("--certificate-authority and --insecure-skip-tls-verify contradict each other: give one of them")
	}
	var t *Target
	var err error
	switch {
	case o.Kubeconfig == "" && o.Context == "":
		t, err = plainTarget(o)
	case o.Server != "":
		return nil, errors.New("--server does not go together with --kubeconfig and --context: a context names its own server; give one of them")
	default:
		t, err = kubeconfigTarget(o)
	}
	if err != nil {
		return nil, err
	}
	if t.base, _, err = rest.DefaultServerUrlFor(t.config); err != nil {
		return nil, fmt.Errorf("server address %q: %w", t.config.Host, err)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	// A proxy function makes client-go build a transport that nobody else
	// shares; without one it may hand out the process-wide default.
	if t.config.Proxy == nil {
		t.config.Proxy = http.ProxyFromEnvironment
	}
	return t, nil
}

func plainTarget(o TargetOptions) (*Target, error) {
	server := o.Server
	if server == "" {
		server = DefaultServer
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return &Target{config: &rest.Config{
		Host:            server,
		BearerToken:     o.Token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: o.CertificateAuthority, Insecure: o.InsecureSkipTLSVerify},
	}}, nil
}

func kubeconfigTarget(o TargetOptions) (*Target, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	where := "the kubeconfig"
	if o.Kubeconfig != "" {
		rules.ExplicitPath = o.Kubeconfig
		where = "kubeconfig " + o.Kubeconfig
	}
	loaded, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", where, err)
	}
	name := o.Context
	if name == "" {
		name = loaded.CurrentContext
	}
	if name == "" {
		return nil, fmt.Errorf("%s has no current context: choose one with --context", where)
	}
	if loaded.Contexts[name] == nil {
		return nil, fmt.Errorf("%s has no context %q", where, name)
	}
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.CertificateAuthority = o.CertificateAuthority
	overrides.ClusterInfo.InsecureSkipTLSVerify = o.InsecureSkipTLSVerify
	cc := clientcmd.NewNonInteractiveClientConfig(*loaded, name, overrides, rules)
	config, err := cc.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s, context %q: %w", where, name, err)
	}
	config.Timeout = 0 // it would cut streams; calls have deadlines of their own
	if o.Token != "" {
		useToken(config, o.Token)
	}
	// The namespace that the context itself names: clientcmd would answer
	// "default" where it names none.
	return &Target{config: config, context: name, namespace: loaded.Contexts[name].Namespace}, nil
}

// useToken replaces whatever else would prove who the caller is, except for a
// client certificate, which the server may ask for besides.
func useToken(c *rest.Config, token string) {
	c.BearerToken, c.BearerTokenFile = token, ""
	c.Username, c.Password = "", ""
	c.ExecProvider, c.AuthProvider = nil, nil
}

// check refuses addresses that can't be used, or not without giving
// credentials away.
func (t *Target) check() error {
	shown := t.base.Redacted()
	switch {
	case t.base.Scheme != "http" && t.base.Scheme != "https":
		return fmt.Errorf("server address %q: the scheme must be http or https", shown)
	case t.base.Hostname() == "":
		return fmt.Errorf("server address %q: it names no host", shown)
	case t.base.User != nil:
		return fmt.Errorf("server address %q: it must not hold credentials; give a token with --token", shown)
	case t.base.RawQuery != "" || t.base.Fragment != "":
		return fmt.Errorf("server address %q: it must end with its path", shown)
	case t.base.Scheme == "http" && !isLoopback(t.base.Hostname()) && t.hasCredentials():
		return fmt.Errorf("credentials are not sent to %s: anybody on the way could read them there; use https", t)
	}
	return nil
}

func (t *Target) hasCredentials() bool {
	c := t.config
	return c.BearerToken != "" || c.BearerTokenFile != "" || c.Username != "" || c.Password != "" ||
		c.ExecProvider != nil || c.AuthProvider != nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// String names the server in messages: its address, and the context that it is
// from. It holds no credentials.
func (t *Target) String() string {
	address := t.base.Scheme + "://" + t.base.Host + strings.TrimSuffix(t.base.Path, "/")
	if t.context != "" {
		return fmt.Sprintf("%s (context %q)", address, t.context)
	}
	return address
}

// Namespace is the namespace that the kubeconfig's context names, empty if
// there is none.
func (t *Target) Namespace() string { return t.namespace }

// httpClient makes a client that only its caller has, transport included.
func (t *Target) httpClient() (*http.Client, error) {
	made, err := rest.HTTPClientFor(rest.CopyConfig(t.config))
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", t, err)
	}
	// A copy, because what client-go returns may be shared, and resty writes
	// into the client that it is given.
	return &http.Client{Transport: made.Transport, CheckRedirect: followSameServer}, nil
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
func (t *Target) next() string {
	if t.context != "" {
		return "is the cluster up? choose another one with --context"
	}
	return "is cmserver running? give another address with --server"
}
