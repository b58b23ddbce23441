package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// secured is a server with TLS that asks its clients who they are.
type secured struct {
	*server
	t      *testing.T
	dir    string // what cmserver init made
	tokens string // the file
}

// startSecured starts a server that takes certificates and tokens.
func startSecured(t *testing.T, args ...string) *secured {
	t.Helper()
	s := &secured{t: t, dir: filepath.Join(t.TempDir(), "secure"), tokens: filepath.Join(t.TempDir(), "tokens.csv")}
	mustCmserver(t, "init", "--dir", s.dir)
	if err := os.WriteFile(s.tokens, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.server = startServer(t, filepath.Join(t.TempDir(), "data"), append(args, "--tls-cert-file", s.made("server.crt"),
		"--tls-private-key-file", s.made("server.key"), "--client-ca-file", s.made("ca.crt"), "--token-auth-file", s.tokens)...)
	return s
}

func (s *secured) made(name string) string { return filepath.Join(s.dir, name) }

// token makes a token and waits until the server takes it.
func (s *secured) token(user string, args ...string) string {
	s.t.Helper()
	cmd, stderr := cmserver(s.t, append([]string{"token", user, "--add-to", s.tokens}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%v: %s", err, stderr)
	}
	token := strings.TrimSpace(string(out))
	kubeconfig := s.kubeconfig("token: " + token)
	s.eventually("the token is taken", func() bool { return s.run("cmctl", kubeconfig, "auth", "whoami").code == 0 })
	return token
}

// kubeconfig is one whose user has these credentials.
func (s *secured) kubeconfig(credentials string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: it,
clusters: [{name: it, cluster: {server: %q, certificate-authority: %q}}],
contexts: [{name: it, context: {cluster: it, user: it}}],
users: [{name: it, user: {%s}}]}`, s.url, s.made("ca.crt"), credentials)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// ran is how a program ended.
type ran struct {
	code        int
	out, errors string
}

// run runs kubectl, or cmctl, with a kubeconfig.
func (s *secured) run(program, kubeconfig string, args ...string) ran {
	s.t.Helper()
	if program == "cmctl" {
		program = filepath.Join(binaries, program)
	}
	cmd := exec.Command(program, append(args, "--kubeconfig", kubeconfig)...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = bareEnvironment(s.t), &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (s *secured) eventually(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("it does not come to pass that %s:\n%s", what, s.log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// says checks how a program ended, and what it said.
func (s *secured) says(r ran, code int, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.out+r.errors, part) {
			s.t.Errorf("%q is not in %q", part, r.out+r.errors)
		}
	}
	if r.code != code {
		s.t.Errorf("it ended with %d, not %d: %s", r.code, code, r.errors)
	}
}

// Who writes, by certificate or token, with kubectl or cmctl, is told by the history.
func TestWhoWroteIsTold(t *testing.T) {
	needKubectl(t)
	s := startSecured(t)
	admin := s.kubeconfig(fmt.Sprintf("client-certificate: %q, client-key: %q", s.made("admin.crt"), s.made("admin.key")))
	jane := s.kubeconfig("token: " + s.token("jane", "--group", "devs", "--uid", "u-1"))

	s.says(s.run("kubectl", admin, "auth", "whoami"), 0, "admin", "system:masters", "X509SHA256=")
	s.says(s.run("kubectl", jane, "auth", "whoami"), 0, "jane", "u-1", "[devs system:authenticated]")
	s.says(s.run("cmctl", jane, "auth", "whoami"), 0, "jane", "devs,system:authenticated")

	s.says(s.run("kubectl", admin, "create", "configmap", "flags", "--from-literal=mode=blue"), 0)
	s.says(s.run("cmctl", jane, "set", "flags", "mode=green"), 0)
	history := s.run("cmctl", admin, "history", "flags")
	s.says(history, 0, "USER")
	if lines := strings.Split(history.out, "\n"); len(lines) < 3 || !strings.HasSuffix(lines[1], "jane") || !strings.HasSuffix(lines[2], "admin") {
		t.Errorf("the history is\n%s", history.out)
	}
	s.says(s.run("cmctl", admin, "blame", "flags"), 0, "jane")
}

func TestBadCredentials(t *testing.T) {
	needKubectl(t)
	s, other := startSecured(t), filepath.Join(t.TempDir(), "other")
	mustCmserver(t, "init", "--dir", other)
	certificate := func(crt, key string) string {
		return s.kubeconfig(fmt.Sprintf("client-certificate: %q, client-key: %q", crt, key))
	}
	for name, kubeconfig := range map[string]string{
		"a wrong token":                     s.kubeconfig("token: wrong"),
		"a certificate of another CA":       certificate(filepath.Join(other, "admin.crt"), filepath.Join(other, "admin.key")),
		"the certificate of the server":     certificate(s.made("server.crt"), s.made("server.key")),
		"the other server's, which is none": certificate(filepath.Join(other, "server.crt"), filepath.Join(other, "server.key")),
	} {
		t.Run(name, func(t *testing.T) {
			s.says(s.run("kubectl", kubeconfig, "get", "configmaps"), 1, "You must be logged in to the server")
			s.says(s.run("cmctl", kubeconfig, "get", "flags"), 6, s.url, `context "it"`, "does not accept the credentials", "--token")
			s.says(s.run("cmctl", kubeconfig, "set", "flags", "a=b"), 6, "does not accept the credentials")
			s.says(s.run("cmctl", kubeconfig, "auth", "whoami"), 6, "does not accept the credentials")
		})
	}
	s.says(s.run("cmctl", s.kubeconfig(""), "get", "flags"), 6, "system:anonymous")
}

// A token is refused soon after its line is gone. What its holder watches goes on, as
// with kube-apiserver.
func TestATokenIsRevoked(t *testing.T) {
	s := startSecured(t)
	admin := s.kubeconfig(fmt.Sprintf("client-certificate: %q, client-key: %q", s.made("admin.crt"), s.made("admin.key")))
	jane := s.kubeconfig("token: " + s.token("jane"))
	s.says(s.run("cmctl", jane, "create", "flags", "--from-literal=mode=blue"), 0)

	watch := exec.Command(filepath.Join(binaries, "cmctl"), "get", "-w", "--kubeconfig", jane)
	watch.Env = bareEnvironment(t)
	pipe, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = watch.Process.Kill()
		_ = watch.Wait() // it was killed
	}()
	lines := bufio.NewScanner(pipe)
	seen := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the watch ended before it saw %s", what)
	}
	seen("flags")

	if err := os.WriteFile(s.tokens, []byte("# nobody\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually("the token is refused", func() bool { return s.run("cmctl", jane, "get", "flags").code == 6 })
	s.says(s.run("cmctl", admin, "create", "after", "--from-literal=mode=green"), 0)
	seen("after")
}

func needKubectl(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl")
	}
}
