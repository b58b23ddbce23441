package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var cmctlPath = sync.OnceValues(func() (string, error) { return build(filepath.Join("..", ".."), "./cmd/cmctl") })

// manifests is how many objects the benchmark applies.
const manifests = 1000

// rounds is how often each step is measured; the median counts.
const rounds = 3

// How many times faster cmctl is than kubectl on the same server, in one run, on the
// wall's clock and in the CPU time of the client: apply of a folder of manifests
// that aren't there yet, of the same folder again, and get of one object. The
// server runs without the race detector's burden, with its data in memory or on
// disk.
//
//	go test -run '^$' -bench Speed -benchtime 1x -timeout 20m .
func BenchmarkSpeedBesideKubectl(b *testing.B) {
	kubectl, err := kubectlPath()
	must(b, err)
	cmctl, err := cmctlPath()
	must(b, err)
	plain, err := buildAs("cmserver-without-race", filepath.Join("..", ".."), "./cmd/cmserver")
	must(b, err)
	withRace := cmserver
	cmserver = plain
	defer func() { cmserver = withRace }()
	folder := writeManifests(b)
	for name, args := range map[string][]string{"in-memory": {"--in-memory"}, "data-dir": {"--data-dir", b.TempDir()}} {
		b.Run(name, func(b *testing.B) {
			s := startServer(b, args...)
			config, err := s.kubeconfig(b.TempDir())
			must(b, err)
			old := session{b, kubectl, []string{"--kubeconfig", config, "--cache-dir", b.TempDir()}}
			ours := session{b, cmctl, []string{"--server", s.url}}
			for b.Loop() {
				r := &race{b: b, old: old, ours: ours}
				for range rounds {
					r.round(folder)
				}
				r.report()
			}
		})
	}
}

// race has two programs take the same steps in turn.
type race struct {
	b         *testing.B
	old, ours session
	steps     []*step
	rounds    int
}

// step is what both did, and how long it took each time.
type step struct {
	what      string
	old, ours []cost
}

// cost is what runs of a program take.
type cost struct{ wall, cpu time.Duration }

// round takes all steps once, each program in a namespace that is new.
func (r *race) round(folder string) {
	r.rounds++
	in := func(who string) string { return fmt.Sprintf("%s-%d-%d", who, r.b.N, r.rounds) }
	r.take("apply-new", 1, in, "apply", "-f", folder)
	r.take("apply-again", 1, in, "apply", "-f", folder)
	r.take("get", 20, in, "get", "configmap", "cm-7", "-o", "yaml")
}

func (r *race) take(what string, times int, in func(who string) string, args ...string) {
	i := slices.IndexFunc(r.steps, func(s *step) bool { return s.what == what })
	if i < 0 {
		i, r.steps = len(r.steps), append(r.steps, &step{what: what})
	}
	s := r.steps[i]
	s.old = append(s.old, r.old.run(times, append(args, "-n", in("kubectl"))...))
	s.ours = append(s.ours, r.ours.run(times, append(args, "-n", in("cmctl"))...))
}

func (r *race) report() {
	for _, s := range r.steps {
		for _, m := range []struct {
			unit string
			of   func(cost) time.Duration
		}{
			{"", func(c cost) time.Duration { return c.wall }},
			{"-cpu", func(c cost) time.Duration { return c.cpu }},
		} {
			slow, fast := median(s.old, m.of), median(s.ours, m.of)
			r.b.ReportMetric(slow.Seconds()*1000, s.what+m.unit+"-kubectl-ms")
			r.b.ReportMetric(fast.Seconds()*1000, s.what+m.unit+"-cmctl-ms")
			r.b.ReportMetric(slow.Seconds()/fast.Seconds(), s.what+m.unit+"-times-faster")
		}
	}
}

func median(costs []cost, of func(cost) time.Duration) time.Duration {
	all := make([]time.Duration, len(costs))
	for i, c := range costs {
		all[i] = of(c)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// session runs one program on one server.
type session struct {
	b       *testing.B
	program string
	flags   []string
}

// run is what one of so many runs takes, one after the other.
func (s session) run(times int, args ...string) cost {
	began := time.Now()
	var cpu time.Duration
	for range times {
		cmd := exec.Command(s.program, slices.Concat(args, s.flags)...)
		cmd.Env = bareEnvironment(s.b)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.b.Fatalf("%v: %v\n%s", cmd.Args, err, last(string(out), 2000))
		}
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	n := time.Duration(times)
	return cost{wall: time.Since(began) / n, cpu: cpu / n}
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
