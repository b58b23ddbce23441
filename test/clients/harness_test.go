package clients

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// patience is how long a test waits for what must come. Nothing waits as long
// unless it fails.
const patience = time.Minute

// binaries is the folder of the programs that the tests run; cmserver is the path
// of the one under test.
var binaries, cmserver string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cmctl-clients-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries = dir
	if cmserver, err = build(filepath.Join("..", ".."), "./cmd/cmserver", "-race"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// The command lines of others are built when the first test asks for them.
var (
	kubectlPath = sync.OnceValues(func() (string, error) { return build(".", "./kubectl", kubectlRelease) })
	helmPath    = sync.OnceValues(func() (string, error) { return build(".", "helm.sh/helm/v4/cmd/helm") })
)

// kubectlRelease makes the linker tell kubectl its version, as for a release:
// without one, kubectl compares itself with no server.
const kubectlRelease = "-ldflags=-X=k8s.io/component-base/version.gitVersion=v1.37.2"

// build builds a program in a module's folder and returns its path.
func build(dir, program string, flags ...string) (string, error) {
	return buildAs(filepath.Base(program), dir, program, flags...)
}

func buildAs(name, dir, program string, flags ...string) (string, error) {
	path := filepath.Join(binaries, name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), program)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	return path, nil
}

// server is a cmserver, one process after the other on the same address.
type server struct {
	t       testing.TB
	url     string // stays the same over restarts
	process *process
}

// startServer runs cmserver on a free port, with its data in memory unless args
// say otherwise, and returns when it serves. It ends with the test.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--in-memory"}
	}
	p, url, err := serve(t, "127.0.0.1:0", args)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, url: url, process: p}
	t.Cleanup(func() { s.process.kill() })
	return s
}

// restart kills the process, as kill -9 does, and starts another on the same
// address.
func (s *server) restart(args ...string) {
	s.t.Helper()
	s.process.kill()
	address := strings.TrimPrefix(s.url, "http://")
	// The port may be lent to an outgoing connection for a moment.
	eventually(s.t, "cmserver serves again", func() error {
		p, _, err := serve(s.t, address, args)
		if err == nil {
			s.process = p
		}
		return err
	})
}

// process is one run of cmserver.
type process struct {
	cmd  *exec.Cmd
	log  lockedBuffer
	done chan struct{} // closed when the process has ended
}

// onEtcd puts the data on the etcd at the address CLIENTS_ETCD, if there is one: what is in
// memory, or in a directory, has a prefix of its own there.
func onEtcd(args []string) []string {
	endpoint := os.Getenv("CLIENTS_ETCD")
	if endpoint == "" {
		return args
	}
	changed := slices.Clone(args)
	for i, arg := range changed {
		if arg == "--in-memory" {
			changed[i] = fmt.Sprintf("--store=etcd://%s/memory/%d-%d", endpoint, os.Getpid(), served.Add(1))
		} else if dir, ok := strings.CutPrefix(arg, "--data-dir="); ok {
			changed[i] = "--store=etcd://" + endpoint + dir
		}
	}
	return changed
}

// served counts the servers.
var served atomic.Int64

func serve(t testing.TB, address string, args []string) (*process, string, error) {
	p := &process{
		cmd:  exec.Command(cmserver, append([]string{"--listen", address}, onEtcd(args)...)...),
		done: make(chan struct{}),
	}
	p.cmd.Env = bareEnvironment(t)
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, "", err
	}
	url := make(chan string, 1) // one send: the first line with a URL
	go func() {
		defer close(p.done)
		serving := false
		for lines := bufio.NewScanner(io.TeeReader(pipe, &p.log)); lines.Scan(); {
			if _, after, ok := strings.Cut(lines.Text(), "url="); ok && !serving {
				serving = true
				url <- strings.Fields(after)[0]
			}
		}
		p.cmd.Wait()
	}()
	select {
	case u := <-url:
		return p, u, nil
	case <-p.done:
		return nil, "", fmt.Errorf("cmserver ended before it served:\n%s", &p.log)
	case <-time.After(patience):
		p.kill()
		return nil, "", fmt.Errorf("cmserver does not serve:\n%s", &p.log)
	}
}

// kill ends the process at once; one that has ended already stays so.
func (p *process) kill() {
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// config is how client-go reaches the server, without its limit of five
// requests a second.
func (s *server) config() *rest.Config { return &rest.Config{Host: s.url, QPS: -1} }

// kubeconfig writes a file for clients that read one, and returns its path.
func (s *server) kubeconfig(dir string) (string, error) {
	return writeKubeconfig(dir, &clientcmdapi.Cluster{Server: s.url})
}

func writeKubeconfig(dir string, cluster *clientcmdapi.Cluster) (string, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters["cmserver"] = cluster
	c.AuthInfos["nobody"] = &clientcmdapi.AuthInfo{}
	c.Contexts["cmserver"] = &clientcmdapi.Context{Cluster: "cmserver", AuthInfo: "nobody"}
	c.CurrentContext = "cmserver"
	path := filepath.Join(dir, "kubeconfig")
	return path, clientcmd.WriteToFile(*c, path)
}

// eventually repeats check until it returns nil, and fails the test with the
// last error if that takes too long.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for: %s\nlast seen: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// nextEvent waits for a watch's next event.
func nextEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return e
	case <-time.After(patience):
		t.Fatal("no event")
	}
	return watch.Event{}
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bareEnvironment keeps the person's own settings out of the tests.
func bareEnvironment(t testing.TB) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
		"GORACE=atexit_sleep_ms=0"}
}

// lockedBuffer collects a process's output while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
