package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// helm runs Helm's command line with its records in ConfigMaps.
type helm struct {
	t    testing.TB
	path string
	env  []string
}

func newHelm(t testing.TB, serverURL string) helm {
	t.Helper()
	path, err := helmPath()
	must(t, err)
	config, err := writeKubeconfig(t.TempDir(), &clientcmdapi.Cluster{Server: serverURL})
	must(t, err)
	return helm{t: t, path: path, env: append(bareEnvironment(t), "HELM_DRIVER=configmap", "KUBECONFIG="+config, "HELM_NAMESPACE=shop")}
}

// outcome is how a run of Helm ended.
type outcome struct {
	code           int
	stdout, stderr string
}

func (h helm) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*patience)
	h.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, h.path, args...)
	cmd.Env = h.env
	return cmd
}

func (h helm) run(args ...string) outcome {
	h.t.Helper()
	cmd := h.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		h.t.Errorf("helm %v: %v", args, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// ok demands success without a warning, and returns what was printed.
func (h helm) ok(args ...string) string {
	h.t.Helper()
	o := h.run(args...)
	if o.code != 0 || strings.Contains(strings.ToLower(o.stderr), "warn") {
		h.t.Fatalf("helm %v ended with %d:\n%s%s", args, o.code, o.stdout, o.stderr)
	}
	return o.stdout
}

const chart = "testdata/chart"

// states are the statuses in the release's history, oldest first.
func (h helm) states(release string) []string {
	h.t.Helper()
	var history []struct {
		Revision int
		Status   string
	}
	if err := json.Unmarshal([]byte(h.ok("history", release, "-o", "json")), &history); err != nil {
		h.t.Fatal(err)
	}
	var states []string
	for _, r := range history {
		states = append(states, fmt.Sprintf("%d %s", r.Revision, r.Status))
	}
	return states
}

func (h helm) mustHaveStates(release string, want ...string) {
	h.t.Helper()
	if got := h.states(release); !slices.Equal(got, want) {
		h.t.Errorf("the history is %v, want %v", got, want)
	}
}

// mustHaveRecords checks what Helm's driver sees: one ConfigMap for each
// revision, whose labels say what the history says, as "1 deployed".
func mustHaveRecords(t *testing.T, client kubernetes.Interface, want ...string) {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	must(t, err)
	var got []string
	for _, c := range list.Items {
		if name := "sh.helm.release.v1." + c.Labels["name"] + ".v" + c.Labels["version"]; c.Name != name || c.Data["release"] == "" {
			t.Errorf("record %s has the labels %v and %d bytes", c.Name, c.Labels, len(c.Data["release"]))
		}
		got = append(got, c.Labels["version"]+" "+c.Labels["status"])
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("the records are %v, want %v", got, want)
	}
}

func mustHaveMode(t *testing.T, client kubernetes.Interface, want string) {
	t.Helper()
	c, err := client.CoreV1().ConfigMaps("shop").Get(t.Context(), "web-flags", read)
	must(t, err)
	if c.Data["mode"] != want {
		t.Errorf("mode is %q, want %q", c.Data["mode"], want)
	}
}

func helmServer(t *testing.T) *server {
	t.Helper()
	return startServer(t, "--in-memory", "--unconditional-put=helm")
}

// The life of a release.
func TestHelmRelease(t *testing.T) {
	t.Parallel()
	s := helmServer(t)
	h, client := newHelm(t, s.url), clientset(t, s.config())

	h.ok("install", "web", chart, "--create-namespace", "--wait")
	mustHaveMode(t, client, "blue")
	mustHaveRecords(t, client, "1 deployed")
	if list := h.ok("list", "--short"); list != "web\n" {
		t.Errorf("the releases are %q", list)
	}
	if o := h.run("install", "web", chart); o.code == 0 || !strings.Contains(o.stderr, "cannot reuse a name that is still in use") {
		t.Errorf("installing it again ended with %d: %s", o.code, o.stderr)
	}

	h.ok("upgrade", "web", chart, "--set=mode=green,extra=true", "--wait")
	mustHaveMode(t, client, "green")
	mustHaveRecords(t, client, "1 superseded", "2 deployed")
	if values := h.ok("get", "values", "web", "-o", "json"); !strings.Contains(values, `"mode":"green"`) {
		t.Errorf("the values are %s", values)
	}
	if manifest := h.ok("get", "manifest", "web"); !strings.Contains(manifest, "name: web-extra") {
		t.Errorf("the manifest is %s", manifest)
	}

	// Unchanged values, and a trial, change nothing but the history.
	h.ok("upgrade", "web", chart, "--reuse-values")
	h.ok("upgrade", "web", chart, "--set=mode=never", "--dry-run=server")
	mustHaveMode(t, client, "green")
	h.mustHaveStates("web", "1 superseded", "2 superseded", "3 deployed")

	h.ok("rollback", "web", "1", "--wait")
	mustHaveMode(t, client, "blue")
	mustHaveRecords(t, client, "1 superseded", "2 superseded", "3 superseded", "4 deployed")
	if _, err := client.CoreV1().ConfigMaps("shop").Get(t.Context(), "web-extra", read); !apierrors.IsNotFound(err) {
		t.Errorf("what the rolled back release added is still there: %v", err)
	}
	if status := h.ok("status", "web"); !strings.Contains(status, "STATUS: deployed") || !strings.Contains(status, "REVISION: 4") {
		t.Errorf("the status is %s", status)
	}

	h.ok("uninstall", "web", "--wait")
	list, err := client.CoreV1().ConfigMaps("shop").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 0 {
		t.Errorf("%d ConfigMaps are left", len(list.Items))
	}
	if o := h.run("status", "web"); o.code == 0 || !strings.Contains(o.stderr, "release: not found") {
		t.Errorf("the status of an uninstalled release: %d %s", o.code, o.stderr)
	}
}

// Releases that were made without server-side apply, as Helm 3 makes them, can be
// carried on with it.
func TestHelmReleaseByClientSideApply(t *testing.T) {
	t.Parallel()
	s := helmServer(t)
	h, client := newHelm(t, s.url), clientset(t, s.config())
	h.ok("install", "web", chart, "--create-namespace", "--server-side=false")
	h.ok("upgrade", "web", chart, "--set=mode=green", "--server-side=false")
	h.ok("upgrade", "web", chart, "--set=mode=red", "--server-side=true", "--force-conflicts")
	mustHaveMode(t, client, "red")
	mustHaveRecords(t, client, "1 superseded", "2 superseded", "3 deployed")
}

// Without the setting, the writes that Helm makes without a version are refused.
// The server says what to set, Helm shows it, and the release stays pending.
func TestHelmNeedsUnconditionalPut(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h, client := newHelm(t, s.url), clientset(t, s.config())
	o := h.run("install", "web", chart, "--create-namespace")
	if !strings.Contains(o.stderr, "update requires metadata.resourceVersion") || !strings.Contains(o.stderr, "--unconditional-put") {
		t.Errorf("helm install ended with %d: %s", o.code, o.stderr)
	}
	mustHaveRecords(t, client, "1 pending-install")
}

// One of two upgrades at once makes the next revision; the other, which read the
// same last one, is told that it is there.
func TestHelmUpgradesAtOnce(t *testing.T) {
	t.Parallel()
	s := helmServer(t)
	h, client := newHelm(t, s.url), clientset(t, s.config())
	h.ok("install", "web", chart, "--create-namespace")

	gate := holdRequests(t, s.url, createsRecord)
	late := make(chan outcome, 1) // one send: how the held upgrade ended
	go func() { late <- newHelm(t, gate.url).run("upgrade", "web", chart, "--set=mode=red") }()
	gate.await(t)
	h.ok("upgrade", "web", chart, "--set=mode=green")
	gate.open()
	if o := <-late; o.code == 0 || !strings.Contains(o.stderr, "already exists") {
		t.Errorf("the late upgrade ended with %d: %s", o.code, o.stderr)
	}
	mustHaveMode(t, client, "green")
	mustHaveRecords(t, client, "1 superseded", "2 deployed")
}

// Many upgrades at once: as many revisions as successes, one of them deployed.
func TestHelmManyUpgradesAtOnce(t *testing.T) {
	t.Parallel()
	s := helmServer(t)
	h, client := newHelm(t, s.url), clientset(t, s.config())
	h.ok("install", "web", chart, "--create-namespace")
	outcomes := make([]outcome, 4)
	var group sync.WaitGroup
	for i := range outcomes {
		group.Go(func() { outcomes[i] = h.run("upgrade", "web", chart, fmt.Sprintf("--set=mode=m%d", i)) })
	}
	group.Wait()
	revisions := 1
	for _, o := range outcomes {
		if o.code == 0 {
			revisions++
		} else if !strings.Contains(o.stderr, "in progress") && !strings.Contains(o.stderr, "already exists") {
			t.Errorf("an upgrade ended with %d: %s", o.code, o.stderr)
		}
	}
	want := []string{fmt.Sprintf("%d deployed", revisions)}
	for r := 1; r < revisions; r++ {
		want = append(want, fmt.Sprintf("%d superseded", r))
	}
	mustHaveRecords(t, client, want...)
}

// An upgrade that is killed when all is written but the end of its record leaves
// the release pending, which Helm sees and a rollback repairs.
func TestHelmUpgradeKilledHalfWay(t *testing.T) {
	t.Parallel()
	s := helmServer(t)
	h, client := newHelm(t, s.url), clientset(t, s.config())
	h.ok("install", "web", chart, "--create-namespace")

	gate := holdRequests(t, s.url, updatesRecord)
	victim := newHelm(t, gate.url).command("upgrade", "web", chart, "--set=mode=red")
	must(t, victim.Start())
	gate.await(t)
	must(t, victim.Process.Kill())
	victim.Wait()
	mustHaveMode(t, client, "red")
	mustHaveRecords(t, client, "1 deployed", "2 pending-upgrade")

	if o := h.run("upgrade", "web", chart); o.code == 0 || !strings.Contains(o.stderr, "another operation (install/upgrade/rollback) is in progress") {
		t.Errorf("an upgrade of the pending release ended with %d: %s", o.code, o.stderr)
	}
	h.ok("rollback", "web", "1")
	mustHaveMode(t, client, "blue")
	h.ok("upgrade", "web", chart, "--set=mode=green")
	mustHaveMode(t, client, "green")
	if states := h.states("web"); states[len(states)-1] != "4 deployed" || strings.Count(strings.Join(states, ","), " deployed") != 1 {
		t.Errorf("the history is %v", states)
	}
}

// createsRecord tells the POST that begins an upgrade. The chart's own objects are
// applied, with PATCH.
func createsRecord(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps")
}

// updatesRecord tells the PUTs that end one.
func updatesRecord(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/sh.helm.release.v1.")
}

// gate is a proxy in front of the server that holds some requests back.
type gate struct {
	url    string
	held   chan struct{} // closed when the first request is held
	opened chan struct{} // closed to let all go
	open   func()
}

func holdRequests(t *testing.T, target string, hold func(*http.Request) bool) *gate {
	t.Helper()
	u, err := url.Parse(target)
	must(t, err)
	g := &gate{held: make(chan struct{}), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	first := sync.OnceFunc(func() { close(g.held) })
	proxy := &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ErrorLog: log.New(io.Discard, "", 0), // clients are killed here
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold(r) {
			first()
			select {
			case <-g.opened:
			case <-r.Context().Done(): // the client is gone, so its request goes no further
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { g.open(); h.Close() })
	g.url = h.URL
	return g
}

func (g *gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.held:
	case <-time.After(patience):
		t.Fatal("the request to hold back never came")
	}
}
