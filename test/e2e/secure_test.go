package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// freeAddress is one of this machine on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startAsMade runs a server with what init makes, as it is.
func startAsMade(t *testing.T, initArgs []string, args ...string) *secured {
	t.Helper()
	s := &secured{t: t, dir: filepath.Join(t.TempDir(), "secure")}
	mustCmserver(t, append([]string{"init", "--dir", s.dir, "--listen", freeAddress(t)}, initArgs...)...)
	s.server = launch(t, append([]string{"--config", s.made("config.yaml")}, args...)...)
	return s
}

// What init makes serves kubectl and cmctl, with each kind of credentials, in all that
// they do.
func TestWhatInitMakesIsOfUse(t *testing.T) {
	needKubectl(t)
	for name, flags := range map[string][]string{"certificate": nil, "token": {"--token"}} {
		t.Run(name, func(t *testing.T) {
			s := startAsMade(t, flags)
			admin := s.made("admin.kubeconfig")
			s.says(s.run("kubectl", admin, "auth", "whoami"), 0, "admin", "system:masters")
			s.says(s.run("kubectl", admin, "auth", "can-i", "*", "*"), 0, "yes")
			s.says(s.run("kubectl", admin, "create", "configmap", "flags", "--from-literal=mode=blue"), 0)
			watch := s.follow("kubectl", admin, "get", "configmaps", "--watch")
			watch.sees("flags")
			s.says(s.run("cmctl", admin, "set", "flags", "mode=green"), 0)
			s.says(s.run("kubectl", admin, "patch", "configmap", "flags", "-p", `{"data":{"more":"1"}}`), 0)
			s.says(s.run("cmctl", admin, "get", "flags", "--key", "mode"), 0, "green")
			s.says(s.run("cmctl", admin, "create", "second", "--from-literal=a=b"), 0)
			watch.sees("second")
			s.says(s.run("cmctl", admin, "blame", "flags"), 0, "admin")
			s.says(s.run("kubectl", admin, "delete", "configmap", "second"), 0)
		})
	}
}

// follow runs a program that goes on until the test ends.
func (s *secured) follow(program, kubeconfig string, args ...string) *following {
	s.t.Helper()
	if program == "cmctl" {
		program = filepath.Join(binaries, program)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	out := &lockedBuffer{}
	cmd := exec.CommandContext(ctx, program, append(args, "--kubeconfig", kubeconfig)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = bareEnvironment(s.t), out, out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	return &following{s, out}
}

type following struct {
	s   *secured
	out *lockedBuffer
}

func (f *following) sees(what string) {
	f.s.t.Helper()
	f.s.eventually("the watch sees "+what, func() bool { return strings.Contains(f.out.String(), what) })
}

// rules are those of the tests: of viewer everywhere, of editor in team-a, of one
// for a single ConfigMap there. nobody has none.
const rules = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: viewers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: viewer}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editors, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: flags, namespace: team-a}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [flags], verbs: [get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: flags, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: flags}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: one}]
`

// ruled is a server with the rules, and the tokens of those whom they speak of.
type ruled struct {
	*secured
	admin  string            // kubeconfig
	tokens map[string]string // by user
}

func startRuled(t *testing.T, args ...string) *ruled {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &ruled{tokens: map[string]string{}}
	file := filepath.Join(t.TempDir(), "tokens.csv")
	for _, who := range []string{"viewer", "editor", "one", "nobody"} {
		cmd, stderr := cmserver(t, "token", who, "--add-to", file)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		r.tokens[who] = strings.TrimSpace(string(out))
	}
	r.secured = startAsMade(t, nil, append([]string{"--token-auth-file", file, "--rbac-dir", dir}, args...)...)
	r.secured.tokens = file
	r.admin = r.made("admin.kubeconfig")
	for _, object := range [][]string{{"team-a", "flags"}, {"team-a", "other"}, {"team-b", "flags"}} {
		r.says(r.run("cmctl", r.admin, "create", object[1], "-n", object[0], "--from-literal=mode=blue"), 0)
	}
	return r
}

func (r *ruled) of(who string) string { return r.kubeconfig("token: " + r.tokens[who]) }

// code is that of the answer to a user's request, over TLS.
func (r *ruled) code(who, method, path, contentType, body string) int {
	r.t.Helper()
	ca, err := os.ReadFile(r.made("ca.crt"))
	if err != nil {
		r.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel() // which ends a watch
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.tokens[who])
	req.Header.Set("Content-Type", contentType)
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// What kubectl auth can-i says is what a request is then answered, for every verb.
func TestCanIAgreesWithWhatIsAllowed(t *testing.T) {
	needKubectl(t)
	r := startRuled(t)
	const dry = "?dryRun=All"
	type question struct{ verb, namespace, name string }
	ask := func(who string, q question) int {
		collection := "/api/v1/namespaces/" + q.namespace + "/configmaps"
		object := collection + "/" + q.name
		body := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"mode":"red"}}`, q.name)
		if q.verb == "update" {
			body = `{"metadata":{"name":"` + q.name + `","resourceVersion":"1"}}`
		}
		pinned := "fieldSelector=metadata.name=" + q.name
		if q.name == "" {
			pinned = ""
		}
		switch q.verb {
		case "get":
			return r.code(who, "GET", object, "", "")
		case "list":
			return r.code(who, "GET", collection+"?"+pinned, "", "")
		case "watch":
			return r.code(who, "GET", collection+"?watch=true&"+pinned, "", "")
		case "create":
			return r.code(who, "POST", collection+dry, "application/json", `{"metadata":{"generateName":"x"}}`)
		case "update":
			return r.code(who, "PUT", object+dry, "application/json", body)
		case "patch":
			return r.code(who, "PATCH", object+dry, "application/merge-patch+json", body)
		case "delete":
			return r.code(who, "DELETE", object+dry, "", "")
		}
		return r.code(who, "DELETE", collection+dry, "", "")
	}
	var questions []question
	for _, verb := range []string{"get", "list", "watch", "update", "patch", "delete"} {
		questions = append(questions, question{verb, "team-a", "flags"}, question{verb, "team-a", "other"}, question{verb, "team-b", "flags"})
	}
	for _, verb := range []string{"list", "watch", "create", "deletecollection"} {
		questions = append(questions, question{verb, "team-a", ""}, question{verb, "team-b", ""})
	}
	allowed := map[string]int{}
	for who := range r.tokens {
		kubeconfig := r.of(who)
		for _, q := range questions {
			object := "configmaps"
			if q.name != "" {
				object += "/" + q.name
			}
			said := r.run("kubectl", kubeconfig, "auth", "can-i", q.verb, object, "-n", q.namespace)
			code := ask(who, q)
			if (said.code == 0) != (code != 403) || code == 401 || code >= 500 {
				t.Errorf("%s, %v: can-i says %q, the request is answered %d", who, q, said.out, code)
			}
			if code != 403 {
				allowed[who]++
			}
		}
		own, as := r.run("kubectl", kubeconfig, "auth", "can-i", "--list", "-n", "team-a"), r.run("kubectl", r.admin, "auth", "can-i", "--list", "-n", "team-a", "--as", who, "--as-group", "system:authenticated")
		if own.code != 0 || lines(own.out) != lines(as.out) {
			t.Errorf("%s may do %s, and with --as %s%s", who, own.out, as.out, as.errors)
		}
	}
	want := map[string]int{"viewer": 3*3 + 2*2, "editor": 6*2 + 4, "one": 2}
	if fmt.Sprint(allowed) != fmt.Sprint(want) {
		t.Errorf("so many requests are allowed: %v, not %v", allowed, want)
	}
	r.says(r.run("kubectl", r.of("editor"), "get", "configmaps", "-n", "team-a", "--as", "viewer"), 1, "Forbidden")
	r.says(r.run("cmctl", r.of("editor"), "get", "-n", "team-a", "--as", "viewer"), 6, `User "editor" cannot impersonate resource "users"`)
	r.says(r.run("cmctl", r.admin, "set", "flags", "mode=x", "-n", "team-b", "--as", "viewer"), 6, `User "viewer" cannot update`)
}

// lines is a text with its lines in order, for a server gives rules in any.
func lines(text string) string {
	all := strings.Split(text, "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// Every command that is refused ends with 6 and says in the server's words who may not
// do what, and nothing is changed.
func TestEveryCommandTellsARefusal(t *testing.T) {
	r := startRuled(t)
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "cm.yaml")
	if err := os.WriteFile(filepath.Join(folder, "k"), []byte("v"), 0o600); err != nil {
		t.Fatal(err)
	}
	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: flags}, data: {mode: red}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {mode: red}}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	before := r.run("cmctl", r.admin, "get", "-n", "team-a", "-o", "yaml").out
	for _, c := range []struct{ who, command, says string }{
		{"nobody", "get", "list"}, {"nobody", "get flags", "get"}, {"nobody", "get -w flags", "list"}, {"nobody", "get -A", "list"},
		{"nobody", "create new --from-literal=a=b", "create"}, {"nobody", "edit flags", "get"}, {"nobody", "set flags a=b", "get"},
		{"nobody", "unset flags mode", "get"}, {"nobody", "label flags a=b", "get"}, {"nobody", "annotate flags a=b", "get"},
		{"nobody", "update flags -- cat", "get"}, {"nobody", `patch flags -p {"data":{"a":"b"}}`, "get"}, {"nobody", "copy flags new", "get"},
		{"nobody", "describe flags", "get"}, {"nobody", "export flags", "get"}, {"nobody", "wait flags --for=delete --timeout=9s", "list"},
		{"nobody", "blame flags", "get"}, {"nobody", "sync flags --to " + t.TempDir(), "get"}, {"nobody", "sync flags --from " + folder, "get"},
		{"nobody", "exec flags -- true", "get"}, {"nobody", "apply -f " + file, "get"}, {"nobody", "apply --server-side -f " + file, "get"},
		{"nobody", "diff -f " + file, "get"}, {"nobody", "replace -f " + file, "get"}, {"nobody", "replace --force -f " + file, "get"},
		{"nobody", "delete other", "get"}, {"nobody", "delete --all", "list"}, {"nobody", "delete -l a=b", "list"},
		{"viewer", "create new --from-literal=a=b", "create"}, {"viewer", "set flags a=b", "update"}, {"viewer", "unset flags mode", "update"},
		{"viewer", "label flags a=b", "update"}, {"viewer", "annotate flags a=b", "update"}, {"viewer", `patch flags -p {"data":{"a":"b"}}`, "patch"},
		{"viewer", "copy flags new", "create"}, {"viewer", "replace -f " + file, "update"}, {"viewer", "replace --force -f " + file, "create"},
		{"viewer", "delete other", "delete"}, {"viewer", "delete --all", "delete"}, {"viewer", "update flags -- sed s/blue/red/", "update"},
		{"one", "history flags", "get"}, {"one", "undo flags", "get"}, {"one", "get flags --version 1", "get"}, {"one", "diff flags --from 1", "get"},
	} {
		words := strings.Fields(c.command)
		said := r.raw(append([]string{words[0], "-n", "team-a", "--kubeconfig", r.of(c.who)}, words[1:]...))
		resource := "configmaps"
		if c.who == "one" {
			resource = "configmaps/history"
		}
		want := []string{fmt.Sprintf(`User %q cannot %s resource %q`, c.who, c.says, resource), "hint: "}
		if c.who != "one" {
			want = append(want, "cmctl auth can-i --list --kubeconfig=")
		}
		t.Run(c.who+" "+c.command, func(t *testing.T) {
			(&secured{t: t}).says(said, 6, want...)
		})
	}
	if after := r.run("cmctl", r.admin, "get", "-n", "team-a", "-o", "yaml").out; after != before {
		t.Errorf("something was changed:\n%s\n%s", before, after)
	}
	// Of many, each is told by itself, and what is allowed is done.
	r.says(r.run("cmctl", r.of("one"), "replace", "-n", "team-a", "-f", file), 6, "2 objects: 1 replaced, 1 failed", `"other"`)
}

// raw runs cmctl with nothing added.
func (s *secured) raw(args []string) ran {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(binaries, "cmctl"), args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = bareEnvironment(s.t), &out, &errs
	_ = cmd.Run() // the code tells
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// resumed finds the kept text that a message names.
var resumed = regexp.MustCompile(`--resume[ =]'?([^\s']+)`)

// Whoever may read and update one ConfigMap can edit it, and a text that is refused
// is kept.
func TestEditByRights(t *testing.T) {
	r := startRuled(t)
	edit := func(who, name string) ran {
		cmd := exec.Command(filepath.Join(binaries, "cmctl"), "edit", name, "-n", "team-a", "--kubeconfig", r.of(who))
		cmd.Env = append(bareEnvironment(t), "CMCTL_EDITOR="+script(t, `sed -i s/blue/purple/ "$1"`))
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // the code tells
		return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
	r.says(edit("one", "flags"), 0, "edited")
	r.says(r.run("cmctl", r.admin, "get", "flags", "-n", "team-a", "--key", "mode"), 0, "purple")
	r.says(edit("one", "other"), 6, `User "one" cannot get`)
	refused := edit("viewer", "other")
	r.says(refused, 6, `User "viewer" cannot update`)
	kept := resumed.FindStringSubmatch(refused.errors)
	if kept == nil || !strings.Contains(read(t, kept[1]), "purple") {
		t.Errorf("the text is not kept: %s", refused.errors)
	}

	var both sync.WaitGroup
	for _, who := range []string{"editor", "one"} {
		both.Go(func() { r.says(r.run("cmctl", r.of(who), "set", "flags", who+"=was-here", "-n", "team-a"), 0) })
	}
	both.Wait()
	r.says(r.run("cmctl", r.admin, "get", "flags", "-n", "team-a", "-o", "yaml"), 0, "editor: was-here", "one: was-here")
	r.says(r.run("cmctl", r.admin, "history", "flags", "-n", "team-a"), 0, "  editor\n", "  one\n", "  admin\n")
}

// Each side is told when it speaks plain HTTP to TLS, or the other way round.
func TestTLSAndPlainAreToldApart(t *testing.T) {
	s := startSecured(t)
	plain := startServer(t, filepath.Join(t.TempDir(), "data"))
	s.says(s.raw([]string{"get", "--server", strings.Replace(s.url, "https:", "http:", 1)}), 1, "https://")
	said := s.raw([]string{"get", "--server", strings.Replace(plain.url, "http:", "https:", 1)})
	if said.code == 0 || !strings.Contains(said.errors, "http://") {
		t.Errorf("it ends with %d: %s", said.code, said.errors)
	}
}

// On a socket the kernel tells who writes. Rules need nothing else there.
func TestUsersOfASocket(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("/tmp", "cm-socket-") // short, and others may enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := "unix://" + filepath.Join(folder, "s")
	named := &secured{t: t}

	t.Run("open, and the history has names", func(t *testing.T) {
		s := launch(t, "--in-memory", "--listen", socket)
		named.says(named.raw([]string{"create", "flags", "--from-literal=a=b", "-s", s.url}), 0)
		named.says(named.raw([]string{"set", "flags", "a=c", "-s", s.url, "--as", "joe"}), 0) // means nothing, as before
		named.says(named.raw([]string{"get", "flags", "-s", s.url, "--token", "any"}), 0)
		named.says(named.raw([]string{"history", "flags", "-s", s.url}), 0, "unix:"+me.Username)
		if history := named.raw([]string{"history", "flags", "-s", s.url}); strings.Contains(history.out, "joe") {
			t.Error("whom nobody checked is in the history")
		}
		s.stop()
	})
	t.Run("with rules", func(t *testing.T) {
		dir := t.TempDir()
		other := "unix:123456"
		if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(strings.ReplaceAll(rules, "name: viewer}", fmt.Sprintf("name: %q}", other))), 0o600); err != nil {
			t.Fatal(err)
		}
		s := launch(t, "--in-memory", "--listen", socket, "--listen-mode", "0666", "--rbac-dir", dir)
		named.says(named.raw([]string{"auth", "whoami", "-s", s.url}), 0, "unix:"+me.Username, "system:masters")
		named.says(named.raw([]string{"create", "flags", "--from-literal=a=b", "-s", s.url}), 0)
		if os.Geteuid() != 0 {
			t.Skip("only root can be another user: their rights are not tried")
		}
		as := func(args ...string) ran {
			program := filepath.Join(folder, "cmctl")
			if err := exec.Command("cp", filepath.Join(binaries, "cmctl"), program).Run(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, append(args, "-s", s.url)...)
			cmd.Dir, cmd.Env = "/", []string{"HOME=/nonexistent", "GORACE=atexit_sleep_ms=0"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 123456, Gid: 123456}}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); cmd.ProcessState == nil {
				t.Fatal(err)
			}
			return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
		}
		named.says(as("auth", "whoami"), 0, other)
		named.says(as("get", "flags"), 0)
		named.says(as("set", "flags", "a=c"), 6, fmt.Sprintf("User %q cannot update", other))
	})
}

// No token, key or header with credentials is in any log, message or file but those
// that are made for it, and these nobody else may read.
func TestNoSecretLeaks(t *testing.T) {
	needKubectl(t)
	i := startIssuer(t)
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			r := startRuled(t, "--verbose", "--log-format", format,
				"--oidc-issuer-url", i.URL, "--oidc-client-id", "cmserver", "--oidc-ca-file", i.certificate())
			secrets := []string{"wrong-token-wrong-token", i.token(time.Now().Add(-time.Minute)), i.token(time.Now().Add(time.Hour))}
			for _, token := range r.tokens {
				secrets = append(secrets, token)
			}
			said := ""
			note := func(o ran) { said += o.out + o.errors }
			for _, secret := range secrets {
				kubeconfig := r.kubeconfig("token: " + secret)
				note(r.run("cmctl", kubeconfig, "get", "-n", "team-a", "-v=8"))
				note(r.run("cmctl", kubeconfig, "set", "flags", "a=b", "-n", "team-a", "-v=8"))
				note(r.run("kubectl", kubeconfig, "get", "configmaps", "-n", "team-a"))
			}
			note(r.run("cmctl", r.admin, "get", "-A", "-v=8"))
			for _, name := range []string{"ca.key", "server.key", "admin.key"} {
				key, err := os.ReadFile(r.made(name))
				if err != nil {
					t.Fatal(err)
				}
				secrets = append(secrets, strings.Split(string(key), "\n")[1])
			}
			r.stop()
			for what, text := range map[string]string{"the log": r.log.String(), "what clients say": said, "the file of tokens": read(t, r.secured.tokens)} {
				for n, secret := range secrets {
					if strings.Contains(text, secret) {
						t.Errorf("%s has secret %d", what, n)
					}
				}
				if strings.Contains(text, "Bearer ey") {
					t.Errorf("%s has a header with credentials", what)
				}
			}
			if format == "json" {
				for line := range strings.Lines(r.log.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("the log has a line that is no JSON: %s", line)
					}
				}
			}
			onlyMine(t, r.dir)
			onlyMine(t, r.secured.tokens)
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// onlyMine checks that nobody else may read or change what is there.
func onlyMine(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A server with TLS, tokens and rules is small, and there at once.
func TestASecureServerIsSmall(t *testing.T) {
	if raceEnabled {
		t.Log("NOT TRIED: the race detector takes memory of its own")
		return
	}
	r := startRuled(t)
	status := read(t, "/proc/"+strconv.Itoa(r.cmd.Process.Pid)+"/status")
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			t.Logf("resident: %d KiB", kib)
			if err != nil || kib > 64<<10 { // some 40 MiB, and what was read of files
				t.Errorf("it takes %d KiB: %v", kib, err)
			}
		}
	}
}
