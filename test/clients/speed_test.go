package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var cmctlPath = sync.OnceValues(func() (string, error) { return build(filepath.Join("..", ".."), "./cmd/cmctl") })

// manifests is how many objects the benchmark applies.
const manifests = 1000

// How much faster cmctl is than kubectl on the same server, in one run: apply of a
// folder of manifests that aren't there yet, the same folder again with nothing
// to do, and get of one object. The server runs without the race detector's
// burden on either.
//
//	go test -run '^$' -bench Speed -benchtime 1x -timeout 20m .
func BenchmarkSpeedBesideKubectl(b *testing.B) {
	kubectl, err := kubectlPath()
	must(b, err)
	cmctl, err := cmctlPath()
	must(b, err)
	plain, err := buildAs("cmserver-without-race", filepath.Join("..", ".."), "./cmd/cmserver")
	must(b, err)
	race := cmserver
	cmserver = plain
	defer func() { cmserver = race }()
	for range b.N {
		s := startServer(b)
		config, err := s.kubeconfig(b.TempDir())
		must(b, err)
		old := session{b, kubectl, []string{"--kubeconfig", config, "--cache-dir", b.TempDir()}}
		ours := session{b, cmctl, []string{"--server", s.url}}
		folder := writeManifests(b)
		for _, step := range []struct {
			what      string
			old, ours []string
			times     int
		}{
			{what: "apply-new", old: []string{"apply", "-n", "kubectl", "-f", folder}, ours: []string{"apply", "-n", "cmctl", "-f", folder}, times: 1},
			{what: "apply-again", old: []string{"apply", "-n", "kubectl", "-f", folder}, ours: []string{"apply", "-n", "cmctl", "-f", folder}, times: 1},
			{what: "get", old: []string{"get", "configmap", "cm-7", "-n", "kubectl", "-o", "yaml"}, ours: []string{"get", "cm-7", "-n", "cmctl", "-o", "yaml"}, times: 20},
		} {
			slow, fast := old.run(step.times, step.old...), ours.run(step.times, step.ours...)
			b.ReportMetric(slow.Seconds()*1000/float64(step.times), step.what+"-kubectl-ms")
			b.ReportMetric(fast.Seconds()*1000/float64(step.times), step.what+"-cmctl-ms")
			b.ReportMetric(slow.Seconds()/fast.Seconds(), step.what+"-times-faster")
		}
	}
}

// session runs one program on one server.
type session struct {
	b       *testing.B
	program string
	flags   []string
}

// run is how long so many runs one after the other take.
func (s session) run(times int, args ...string) time.Duration {
	began := time.Now()
	for range times {
		cmd := exec.Command(s.program, append(args, s.flags...)...)
		cmd.Env = bareEnvironment(s.b)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.b.Fatalf("%v: %v\n%s", cmd.Args, err, last(string(out), 2000))
		}
	}
	return time.Since(began)
}

func last(text string, n int) string { return text[max(0, len(text)-n):] }

// writeManifests makes a folder of small ConfigMaps, a file each.
func writeManifests(b *testing.B) string {
	folder := b.TempDir()
	for i := range manifests {
		text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm-%d\n  labels: {app: bench}\ndata:\n  index: %q\n  conf: |\n%s",
			i, fmt.Sprint(i), strings.Repeat("    key = value\n", 20))
		must(b, os.WriteFile(filepath.Join(folder, fmt.Sprintf("cm-%04d.yaml", i)), []byte(text), 0o600))
	}
	return folder
}
