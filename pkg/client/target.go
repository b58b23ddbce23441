package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// DefaultServer is where a server is looked for if nothing says otherwise.
const DefaultServer = "http://127.0.0.1:8080"

// TargetOptions say where the server is. The zero value means DefaultServer.
// At most one of Server, InCluster and a kubeconfig (Kubeconfig, Context,
// AsKubectl) may be given.
type TargetOptions struct {
	// Server is a URL. Without a scheme it is http. unix:///PATH is a socket on
	// this machine.
	Server string
	// Kubeconfig is a file to take server and credentials from.
	Kubeconfig string
	// Context is a context of that file. Without Kubeconfig it is one of
	// kubectl's usual files, $KUBECONFIG or ~/.kube/config.
	Context string
	// AsKubectl takes what kubectl would: the current context of its usual files;
	// if they are empty, a pod's own service account.
	AsKubectl bool
	// InCluster takes the server and the service account that a pod is given.
	InCluster bool

	// Name is what the caller calls this target. Messages show it.
	Name string
	// Credentials take the place of those that a kubeconfig has.
	Credentials
}

// Credentials are who the caller is and how the server proves who it is. The
// zero value adds nothing.
type Credentials struct {
	// Token is a bearer token. At most one of Token and TokenFile may be given.
	Token string
	// TokenFile is a file with a bearer token, read again as it changes.
	TokenFile string
	// ClientCertificate and ClientKey are PEM files, needed together.
	ClientCertificate, ClientKey string
	// CertificateAuthority is a file of certificates to trust instead of the
	// system's.
	CertificateAuthority string
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// TLSServerName is the name that the server's certificate must be for, if it
	// is not the one in its address.
	TLSServerName string
	// As, AsGroups and AsUID are whom the caller acts as, where the server lets
	// it. AsGroups and AsUID need As.
	As       string
	AsGroups []string
	AsUID    string
}

// Target is a server and how to authenticate to it. It may be shared.
type Target struct {
	config    *rest.Config
	base      *url.URL
	context   string
	name      string // how messages call it beside its address, as in `context "prod"`
	namespace string
	ownProxy  bool   // the kubeconfig names the proxy
	socket    string // path of a unix socket, empty if it is none
}

// ResolveTarget finds out where the server is. It reads a kubeconfig if one is
// asked for. It connects to nothing, and leaves credential plugins and
// certificate files for when they are needed.
func ResolveTarget(o TargetOptions) (*Target, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if o.Name != "" {
		t.context = o.Name
	}
	if t.context != "" {
		t.name = fmt.Sprintf("context %q", t.context)
	}
	o.actAs(t.config)
	if t.base, _, err = rest.DefaultServerUrlFor(t.config); err != nil {
		return nil, fmt.Errorf("server address %q: %w", t.config.Host, err)
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	// A proxy function makes client-go build a transport that nobody else
	// shares; without one it may hand out the process-wide default.
	if t.ownProxy = t.config.Proxy != nil; !t.ownProxy {
		t.config.Proxy = http.ProxyFromEnvironment
	}
	return t, nil
}

// check refuses options that contradict each other.
func (o TargetOptions) check() error {
	kubeconfig := o.Kubeconfig != "" || o.Context != "" || o.AsKubectl
	switch {
	case o.Server != "" && kubeconfig:
		return errors.New("--server does not go together with --kubeconfig and --context: a context names its own server; give one of them")
	case o.InCluster && (o.Server != "" || kubeconfig):
		return errors.New("--in-cluster names a server, and so do --server, --kubeconfig and --context; give one of them")
	case o.CertificateAuthority != "" && o.InsecureSkipTLSVerify:
		return errors.New("--certificate-authority and --insecure-skip-tls-verify contradict each other: give one of them")
	case o.Token != "" && o.TokenFile != "":
		return errors.New("--token and --token-file contradict each other: give one of them")
	case (o.ClientCertificate == "") != (o.ClientKey == ""):
		return errors.New("--client-certificate and --client-key are needed together")
	case o.As == "" && (len(o.AsGroups) > 0 || o.AsUID != ""):
		return errors.New("--as-group and --as-uid need --as")
	}
	return nil
}

func (o TargetOptions) resolve() (*Target, error) {
	switch {
	case o.InCluster:
		return inClusterTarget(o.Credentials, thisPod)
	case o.Kubeconfig != "" || o.Context != "":
		return kubeconfigTarget(o)
	case o.AsKubectl:
		return kubectlTarget(o)
	}
	return plainTarget(o)
}

func plainTarget(o TargetOptions) (*Target, error) {
	server := o.Server
	if server == "" {
		server = DefaultServer
	}
	if path, ok := strings.CutPrefix(server, socketScheme); ok {
		return socketTarget(path, o.Credentials)
	}
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	t := &Target{config: &rest.Config{Host: server}}
	o.apply(t.config)
	return t, nil
}

// apply puts credentials in the place of those that are there.
func (c Credentials) apply(to *rest.Config) {
	if c.CertificateAuthority != "" || c.InsecureSkipTLSVerify {
		to.CAFile, to.CAData, to.Insecure = c.CertificateAuthority, nil, c.InsecureSkipTLSVerify
	}
	if c.TLSServerName != "" {
		to.ServerName = c.TLSServerName
	}
	if c.ClientCertificate != "" {
		to.CertFile, to.CertData, to.KeyFile, to.KeyData = c.ClientCertificate, nil, c.ClientKey, nil
	}
	if c.Token != "" || c.TokenFile != "" {
		to.BearerToken, to.BearerTokenFile = c.Token, c.TokenFile
	}
}

func (c Credentials) actAs(to *rest.Config) {
	if c.As != "" {
		to.Impersonate = rest.ImpersonationConfig{UserName: c.As, Groups: c.AsGroups, UID: c.AsUID}
	}
}

// check refuses addresses that can't be used, or not without giving
// credentials away.
func (t *Target) check() error {
	shown := t.base.Redacted()
	switch {
	case t.base.Scheme != "http" && t.base.Scheme != "https":
		return fmt.Errorf("server address %q: the scheme must be http or https, or unix:///PATH for a socket", shown)
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

// String names the server in messages: its address, and the context or the pod
// that it is from. It holds no credentials.
func (t *Target) String() string {
	address := t.Address()
	if t.name != "" {
		return address + " (" + t.name + ")"
	}
	return address
}

// Address is the server's, without a path's last slash and without
// credentials.
func (t *Target) Address() string {
	if t.socket != "" {
		return socketScheme + t.socket
	}
	return t.base.Scheme + "://" + t.base.Host + strings.TrimSuffix(t.base.Path, "/")
}

// Namespace is the namespace that a kubeconfig's context or a pod names, empty
// if there is none.
func (t *Target) Namespace() string { return t.namespace }

// Context is the name that the target has for the caller, or that of a
// kubeconfig's context; empty if it has none.
func (t *Target) Context() string { return t.context }

// httpClient makes a client that only its caller has, transport included.
func (t *Target) httpClient(o Options) (*http.Client, error) {
	config := rest.CopyConfig(t.config)
	if o.Trace != nil && o.TraceDetail >= TraceHeaders {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &headerTrace{next: next, tell: o.Trace} })
	}
	around := boundPlugin(config)
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", t, err)
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
func (t *Target) next() string {
	if t.name != "" {
		return "is the cluster up? choose another one with --context"
	}
	return "is cmserver running? give another address with --server"
}

// nextForProxy is what a person can do when the proxy in between can't be
// reached.
func (t *Target) nextForProxy() string {
	if t.ownProxy {
		return "check the proxy-url of the cluster in the kubeconfig"
	}
	return "check HTTPS_PROXY and NO_PROXY in the environment"
}
