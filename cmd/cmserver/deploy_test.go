package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// The manifest is of fields that Kubernetes knows, each once, and its parts find each
// other.
func TestTheManifestForKubernetes(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	text, err := os.ReadFile("../../docs/deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment *appsv1.Deployment
	var service *corev1.Service
	var budget *policyv1.PodDisruptionBudget
	documents := kyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer documents.Close()
	for {
		document := make([]byte, len(text))
		n, err := documents.Read(document)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(document[:n], nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document[:n])
		}
		switch o := object.(type) {
		case *appsv1.Deployment:
			deployment = o
		case *corev1.Service:
			service = o
		case *policyv1.PodDisruptionBudget:
			budget = o
		}
	}
	pod := deployment.Spec.Template
	labels := pod.Labels
	for what, selector := range map[string]map[string]string{
		"the Deployment": deployment.Spec.Selector.MatchLabels, "the Service": service.Spec.Selector,
		"the PodDisruptionBudget": budget.Spec.Selector.MatchLabels,
	} {
		if len(selector) == 0 || selector["app.kubernetes.io/name"] != labels["app.kubernetes.io/name"] {
			t.Errorf("%s selects %v, the pods have %v", what, selector, labels)
		}
	}
	container := pod.Spec.Containers[0]
	c := startedWith(t, container.Args)
	if grace := *pod.Spec.TerminationGracePeriodSeconds; float64(grace) < c.ShutdownTimeout.Seconds()+float64(container.Lifecycle.PreStop.Sleep.Seconds) {
		t.Errorf("the pod has %d s to stop, and needs more", grace)
	}
	for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe, container.StartupProbe} {
		if probe.HTTPGet.Port.StrVal != container.Ports[0].Name || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("a probe asks %+v", probe.HTTPGet)
		}
	}
}

// startedWith reads the arguments as the program does. The settings file is not there.
func startedWith(t *testing.T, args []string) config {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
	c, err := load(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	if c.site.kind != onEtcd {
		t.Errorf("%v keep data in %s", args, c.site)
	}
	return c
}

// Each cmserver of the compose file has all members of etcd, and each member the other two.
func TestTheComposeFile(t *testing.T) {
	text, err := os.ReadFile("../../docs/deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Entrypoint  []string
			Environment map[string]string
			Volumes     []string
			Ports       []string
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	servers := 0
	for name, s := range file.Services {
		if len(s.Entrypoint) > 0 {
			servers++
			c := startedWith(t, s.Entrypoint[1:])
			for _, endpoint := range c.site.endpoints {
				host, _, _ := strings.Cut(endpoint, ":")
				if _, ok := file.Services[host]; !ok {
					t.Errorf("%s is to reach %s, which there is not", name, endpoint)
				}
			}
			continue
		}
		if s.Environment["ETCD_NAME"] != name || !strings.Contains(s.Environment["ETCD_INITIAL_CLUSTER"], name+"="+s.Environment["ETCD_INITIAL_ADVERTISE_PEER_URLS"]) ||
			!slices.Contains(s.Volumes, name+":"+s.Environment["ETCD_DATA_DIR"]) {
			t.Errorf("%s is %+v", name, s)
		}
	}
	if servers != 3 || len(file.Services) != 6 {
		t.Errorf("there are %d cmservers of %d services", servers, len(file.Services))
	}
}
