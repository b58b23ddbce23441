package client

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is what was read from one file that was named, or from kubectl's
// usual ones.
type kubeconfig struct {
	*api.Config
	rules *clientcmd.ClientConfigLoadingRules
	where string // for messages
}

// readKubeconfig reads the file, or, if path is empty, kubectl's usual ones.
// Those may all be missing; a file that is named may not.
func readKubeconfig(path string) (*kubeconfig, error) {
	k := &kubeconfig{rules: clientcmd.NewDefaultClientConfigLoadingRules()}
	k.rules.WarnIfAllMissing = false // it would go to the log
	if path != "" {
		k.rules.ExplicitPath = path
		k.where = "kubeconfig " + path
	} else {
		k.where = "the kubeconfig (" + cmp.Or(os.Getenv(clientcmd.RecommendedConfigPathEnvVar), clientcmd.RecommendedHomeFile) + ")"
	}
	var err error
	if k.Config, err = k.rules.Load(); err != nil {
		return nil, fmt.Errorf("read %s: %w", k.where, err)
	}
	return k, nil
}

func kubeconfigTarget(o TargetOptions) (*Target, error) {
	k, err := readKubeconfig(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return k.target(o.Context, o.Credentials)
}

// kubectlTarget is the server that kubectl would go to.
func kubectlTarget(o TargetOptions) (*Target, error) {
	k, err := readKubeconfig("")
	if err != nil {
		return nil, err
	}
	if len(k.Contexts) == 0 && len(k.Clusters) == 0 {
		switch t, err := inClusterTarget(o.Credentials, thisPod); {
		case err == nil:
			return t, nil
		case !errors.Is(err, rest.ErrNotInCluster):
			return nil, err
		}
		return nil, fmt.Errorf("%s names no server; give one with --kubeconfig or --server", k.where)
	}
	return k.target("", o.Credentials)
}

// target is that of a context, the current one if name is empty.
func (k *kubeconfig) target(name string, c Credentials) (*Target, error) {
	if name = cmp.Or(name, k.CurrentContext); name == "" {
		return nil, fmt.Errorf("%s has no current context: choose one of them with --context: %s", k.where, k.names())
	}
	if k.Contexts[name] == nil {
		return nil, fmt.Errorf("%s has no context %q; it has: %s", k.where, name, k.names())
	}
	if err := k.dangles(name, c); err != nil {
		return nil, err
	}
	if user := k.AuthInfos[k.Contexts[name].AuthInfo]; user != nil && c.Token+c.TokenFile != "" {
		// A token replaces whatever else would prove who the caller is, except for
		// a client certificate, which the server may ask for besides. What is
		// replaced is not even read: it may be gone.
		user.Token, user.TokenFile = c.Token, c.TokenFile
		user.Username, user.Password = "", ""
		user.Exec, user.AuthProvider = nil, nil
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*k.Config, name, nil, k.rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s, context %q: %w", k.where, name, err)
	}
	config.Timeout = 0 // it would cut streams; calls have deadlines of their own
	c.apply(config)
	// The namespace that the context itself names: clientcmd would answer
	// "default" where it names none.
	return &Target{endpoints: []*endpoint{{config: config}}, context: name, namespace: k.Contexts[name].Namespace}, nil
}

// dangles refuses a context that names a cluster or a user that isn't there: the
// library would look elsewhere for the one, and go on as nobody without the other.
func (k *kubeconfig) dangles(name string, c Credentials) error {
	context := k.Contexts[name]
	missing := func(what, named string, there []string) error {
		return fmt.Errorf("%s, context %q: its %s %q is not there; there are: %s", k.where, name, what, named, cmp.Or(strings.Join(there, ", "), "none"))
	}
	if k.Clusters[context.Cluster] == nil {
		return missing("cluster", context.Cluster, slices.Sorted(maps.Keys(k.Clusters)))
	}
	if k.AuthInfos[context.AuthInfo] == nil && context.AuthInfo != "" && c.Token+c.TokenFile+c.ClientCertificate == "" {
		return missing("user", context.AuthInfo, slices.Sorted(maps.Keys(k.AuthInfos)))
	}
	return nil
}

func (k *kubeconfig) names() string {
	if len(k.Contexts) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(k.Contexts)), ", ")
}

// KubeContext is a context of a kubeconfig.
type KubeContext struct {
	Name      string
	Server    string // its address, empty if the context names no cluster that is there
	Namespace string
	File      string // where the context stands
	Current   bool   // kubectl would use it
}

// KubeContexts lists the contexts of a kubeconfig by name. If path is empty it
// is kubectl's usual files, of which none need be there.
func KubeContexts(path string) ([]KubeContext, error) {
	k, err := readKubeconfig(path)
	if err != nil {
		return nil, err
	}
	list := make([]KubeContext, 0, len(k.Contexts))
	for _, name := range slices.Sorted(maps.Keys(k.Contexts)) {
		c := k.Contexts[name]
		found := KubeContext{Name: name, Namespace: c.Namespace, File: c.LocationOfOrigin, Current: name == k.CurrentContext}
		if cluster := k.Clusters[c.Cluster]; cluster != nil {
			found.Server = cluster.Server
		}
		list = append(list, found)
	}
	return list, nil
}
