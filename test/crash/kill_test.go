package crash

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs builds both programs, once, and without the race detector: the tests here
// want many crashes, or little memory.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "cmctl-crash-"); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir+"/", "../../cmd/cmserver", "../../cmd/cmctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	built = dir
	return dir, nil
})

// built is where programs put them; TestMain removes it.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// process is a running cmserver.
type process struct {
	url   string
	cmd   *exec.Cmd
	log   bytes.Buffer  // may be read when ended is closed
	ended chan struct{} // closed when the process has ended
}

// serve runs cmserver, or a command line that ends in it, and returns when it
// serves, or has ended.
func serve(t *testing.T, dataDir string, before ...string) *process {
	t.Helper()
	line := append(before, program(t, "cmserver"), "--listen", "127.0.0.1:0", "--data-dir", dataDir)
	p := &process{cmd: exec.Command(line[0], line[1:]...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "GOTRACEBACK=none")
	pipe, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	url := make(chan string, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(io.TeeReader(pipe, &p.log))
		for lines.Scan() {
			if _, after, ok := strings.Cut(lines.Text(), "msg=listening url="); ok {
				url <- strings.Fields(after)[0]
			}
		}
		_, _ = io.Copy(&p.log, pipe) // a line too long for the scanner
		_ = p.cmd.Wait()
	}()
	select {
	case p.url = <-url:
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("cmserver neither serves nor ends")
	}
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-p.ended
}

// killed is a cmserver process that is killed, some of whose writers are cmctl.
type killed struct {
	dir string
	p   *process
}

func (w *killed) start(t *testing.T) (string, error) {
	w.p = serve(t, w.dir)
	if w.p.url == "" {
		return "", fmt.Errorf("cmserver did not start:\n%s", w.p.log.String())
	}
	return w.p.url, nil
}

func (w *killed) crash(*testing.T, *ledger, *rand.Rand) { w.p.kill() }
func (w *killed) away(*testing.T)                       {}

// helpers set keys of their own through cmctl.
func (w *killed) helpers(ctx context.Context, t *testing.T, l *ledger, url string, round int) func() {
	cmctl, home := program(t, "cmctl"), t.TempDir()
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				a := write{key: fmt.Sprintf("cli-%d", i), verb: "PUT", token: fmt.Sprintf("r%d-cli%d-%d", round, i, n)}
				cmd := exec.CommandContext(ctx, cmctl, "-s", url, "-n", "crash", "--max-attempts", "2", "--request-timeout", "5s",
					"set", a.key, "token="+a.token, "--create", "-o", "jsonpath={.metadata.resourceVersion}")
				cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG=", "XDG_CONFIG_HOME=")
				out, _ := cmd.Output() // the code says it
				switch code := cmd.ProcessState.ExitCode(); {
				case code == 0:
					a.version = number(strings.TrimSpace(string(out)))
					l.acknowledge(a)
				case code >= 2 && code <= 6:
					l.refuse(a)
				default:
					l.leaveOpen(a)
				}
			}
		})
	}
	return all.Wait
}

// cmserver is killed under load again and again: what it acknowledged, over HTTP and
// to cmctl, is there, each as the version that was said and made from the version that
// was named; nothing that it refused ever is, and what it left open at most once.
func TestKill(t *testing.T) {
	report(t, run(t, &killed{dir: t.TempDir()}, 15))
}
