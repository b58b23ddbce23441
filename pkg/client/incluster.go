package client

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
)

// pod is what a cluster gives to a program that runs in it.
type pod struct {
	config    func() (*rest.Config, error)
	namespace string // a file
}

// thisPod is the pod that the program runs in, if it runs in one.
var thisPod = pod{
	config:    rest.InClusterConfig,
	namespace: "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
}

// inClusterTarget is the cluster that the program runs in.
func inClusterTarget(c Credentials, p pod) (*Target, error) {
	config, err := p.config()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("--in-cluster: this is no pod of a cluster: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--in-cluster: read the service account: %w", err)
	}
	namespace, err := os.ReadFile(p.namespace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--in-cluster: read the pod's namespace: %w", err)
	}
	c.apply(config)
	return &Target{endpoints: []*endpoint{{config: config}}, name: "in-cluster", namespace: strings.TrimSpace(string(namespace))}, nil
}
