package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	// this machine. Several with commas in between are replicas of one store, of
	// which each gets the credentials: a call goes to the first, and to the next
	// where that one has no answer, as docs/targets.md tells.
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

// Target is a server and how to authenticate to it, or several that are replicas of
// one store. It may be shared.
type Target struct {
	endpoints []*endpoint // in the order in which they are tried; at least one
	context   string
	name      string // how messages call it beside its address, as in `context "prod"`
	namespace string
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
	for i, e := range t.endpoints {
		e.name = t.name
		o.actAs(e.config)
		if err := e.complete(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(t.endpoints[:i], func(other *endpoint) bool { return other.address() == e.address() }) {
			return nil, fmt.Errorf("server address %q is given twice", e.address())
		}
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

// separator stands between the addresses of several servers.
const separator = ","

// plainTarget is that of addresses. The credentials are for each of them, for each was
// named together with them.
func plainTarget(o TargetOptions) (*Target, error) {
	t := &Target{}
	for address := range strings.SplitSeq(cmp.Or(o.Server, DefaultServer), separator) {
		address = strings.TrimSpace(address)
		if address == "" {
			return nil, errors.New("of the server addresses one is empty; give them with one comma between two")
		}
		e, err := endpointAt(address)
		if err != nil {
			return nil, err
		}
		o.apply(e.config)
		t.endpoints = append(t.endpoints, e)
	}
	return t, nil
}

func endpointAt(address string) (*endpoint, error) {
	if path, ok := strings.CutPrefix(address, socketScheme); ok {
		return socketEndpoint(path)
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return &endpoint{config: &rest.Config{Host: address}}, nil
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

// String names the target in messages: its address, and the context or the pod that
// it is from. It holds no credentials.
func (t *Target) String() string { return called(t.Address(), t.name) }

// Address is the server's, without a path's last slash and without credentials. Those
// of several have commas in between.
func (t *Target) Address() string {
	addresses := make([]string, len(t.endpoints))
	for i, e := range t.endpoints {
		addresses[i] = e.address()
	}
	return strings.Join(addresses, separator)
}

// Is tells whether it leads to the store that a target did of which String said this:
// they have a name in common, or the lack of one, and a server.
func (t *Target) Is(said string) bool {
	addresses, ok := strings.CutSuffix(said, called("", t.name))
	return ok && slices.ContainsFunc(t.endpoints, func(e *endpoint) bool {
		return slices.Contains(strings.Split(addresses, separator), e.address())
	})
}

// Namespace is the namespace that a kubeconfig's context or a pod names, empty
// if there is none.
func (t *Target) Namespace() string { return t.namespace }

// Context is the name that the target has for the caller, or that of a
// kubeconfig's context; empty if it has none.
func (t *Target) Context() string { return t.context }
