package etcd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/test/etcd/internal/procs"
)

// repository is the root of the other module.
const repository = "../.."

// passes runs tests of another package, and tells what they said if they fail.
func passes(t *testing.T, dir string, environment []string, args ...string) {
	t.Helper()
	command := exec.Command("go", append([]string{"test", "-count=1", "-timeout=15m"}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out[max(0, len(out)-8000):])
	}
	t.Logf("%s", strings.TrimSpace(string(out[max(0, len(out)-500):])))
}

// On etcd a server answers what a real kube-apiserver was recorded to answer.
func TestConformance(t *testing.T) {
	for _, kind := range kinds(t) {
		t.Run(kind.name, func(t *testing.T) {
			cluster := procs.StartEtcd(t, kind.program, 1)
			s := procs.NewServer(t, cluster.Endpoints(), "/cmserver", "--unconditional-put=always")
			s.Start()
			s.Await()
			passes(t, repository, nil, "-run=TestTheServerAnswersAsRecorded", "./test/conformance", "-conformance.server="+s.URL)
		})
	}
}

// The clients that people use work with a server on etcd as with one on a disk.
func TestClients(t *testing.T) {
	for _, kind := range kinds(t)[1:] { // one release: it takes minutes
		cluster := procs.StartEtcd(t, kind.program, 1)
		passes(t, filepath.Join(repository, "test", "clients"), []string{"CLIENTS_ETCD=" + cluster.Members[0].Endpoint}, ".")
	}
}
