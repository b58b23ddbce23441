package procs

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that a test has started.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string // a file with what it said
	done chan struct{}
	once sync.Once
}

// start runs a program until the end of the test. What it says is shown if the test fails.
func start(t testing.TB, name, log, program string, args ...string) *Process {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{name: name, log: log, done: make(chan struct{}), cmd: exec.Command(program, args...)}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), "HOME="+os.TempDir(), "XDG_CONFIG_HOME=/nonexistent")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // where even the test is killed
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // it may end in any way
		_ = out.Close()
		close(p.done)
	}()
	t.Cleanup(func() { p.Kill() })
	return p
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Pause stops it where it stands, and Resume lets it go on.
func (p *Process) Pause()  { p.Signal(syscall.SIGSTOP) }
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

// Kill ends it by SIGKILL, and waits for its end.
func (p *Process) Kill() {
	p.once.Do(func() { p.Signal(syscall.SIGKILL) })
	<-p.done
}

// Ended tells whether it has ended, by itself or not.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Said is what it said last, at most so many bytes.
func (p *Process) Said(most int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Eventually waits until something holds, and fails the test if it doesn't for a long time.
func Eventually(t testing.TB, what string, within time.Duration, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to pass within %s that %s", within, what)
		}
	}
}
