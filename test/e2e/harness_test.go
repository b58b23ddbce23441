package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/cmctl/pkg/client"
)

// binaries is the folder with the programs under test.
var binaries string

// counterRole makes the test binary increment a counter and end: it is the
// program on pkg/client that TestProcessesCountExactly runs many times.
const counterRole = "E2E_COUNTER_SERVER"

func TestMain(m *testing.M) {
	if server := os.Getenv(counterRole); server != "" {
		os.Exit(count(server, os.Getenv("E2E_COUNTER_ROUNDS")))
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cmctl-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries = dir
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "../../cmd/cmctl", "../../cmd/cmserver")...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the programs:", err)
		return 1
	}
	return m.Run()
}

// server is a running cmserver process.
type server struct {
	url  string
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan struct{} // closed when the process has ended
}

// listening finds the server's address in either form of the log.
var listening = regexp.MustCompile(`\burl"?[=:]"?([^\s"]+)`)

// startServer runs cmserver on the data directory and returns when it serves.
func startServer(t *testing.T, dataDir string, args ...string) *server {
	t.Helper()
	return launch(t, append([]string{"--listen", "127.0.0.1:0", "--data-dir", dataDir}, args...)...)
}

// launch runs cmserver with these settings alone, and returns when it serves.
func launch(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{
		cmd:  exec.Command(filepath.Join(binaries, "cmserver"), args...),
		log:  &lockedBuffer{},
		done: make(chan struct{}),
	}
	s.cmd.Env = bareEnvironment(t)
	pipe, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := make(chan string, 1)
	go func() {
		defer close(s.done)
		lines := bufio.NewScanner(io.TeeReader(pipe, s.log))
		for lines.Scan() {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				select {
				case url <- found[1]:
				default:
				}
			}
		}
		s.cmd.Wait()
	}()
	t.Cleanup(s.kill)
	select {
	case s.url = <-url:
	case <-s.done:
		t.Fatalf("cmserver ended before it served:\n%s", s.log)
	case <-time.After(60 * time.Second):
		t.Fatalf("cmserver does not serve:\n%s", s.log)
	}
	return s
}

// kill ends the process at once, as kill -9 does.
func (s *server) kill() {
	s.cmd.Process.Signal(syscall.SIGKILL)
	<-s.done
}

// stop ends it in order and returns its exit code.
func (s *server) stop() int {
	s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.done
	return s.cmd.ProcessState.ExitCode()
}

// connect is a client of the server.
func connect(t testing.TB, url string) *client.Client {
	t.Helper()
	c, err := newClient(url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newClient(url string) (*client.Client, error) {
	target, err := client.ResolveTarget(client.TargetOptions{Server: url})
	if err != nil {
		return nil, err
	}
	return client.New(target, client.Options{FieldManager: "e2e", RequestTimeout: 20 * time.Second})
}

// outcome is how a cmctl process ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// cmctl runs the command line against the server. env are NAME=value pairs.
func cmctl(t testing.TB, url string, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "cmctl"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(append(bareEnvironment(t), "CMCTL_SERVER="+url), env...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("cmctl %v: %v", args, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// mustCmctl fails the test if the command does.
func mustCmctl(t testing.TB, url string, args ...string) string {
	t.Helper()
	o := cmctl(t, url, nil, args...)
	if o.code != 0 {
		t.Fatalf("cmctl %v ended with %d:\n%s", args, o.code, o.stderr)
	}
	return o.stdout
}

// bareEnvironment keeps the person's own settings out of the tests.
func bareEnvironment(t testing.TB) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "GORACE=halt_on_error=1 atexit_sleep_ms=0"}
}

// script writes an executable shell script, such as a scripted editor.
func script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// lockedBuffer collects a process's log while a test reads it.
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
