package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// auditPolicy has one rule.
func auditPolicy(rule string) string {
	return "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [" + rule + "]\n"
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheAuditLogFollowsItsPolicy(t *testing.T) {
	dir := t.TempDir()
	path, policy := filepath.Join(dir, "audit.log"), filepath.Join(dir, "policy.yaml")
	rewrite(t, policy, auditPolicy("{level: Metadata, verbs: [create]}"))
	p := launch(t, "--in-memory", "--audit-log-path", path, "--audit-policy-file", policy)
	defer p.end()
	if code, _, err := p.send("POST", collection, `{"metadata":{"name":"a"},"data":{"k":"hunter2"}}`); code != http.StatusCreated || err != nil {
		t.Fatalf("answered %d, %v", code, err)
	}
	if text := textOf(t, path); !strings.Contains(text, `"verb":"create"`) || strings.Contains(text, "hunter2") {
		t.Errorf("told %s", text)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it has mode %s, %v", info.Mode(), err)
	}

	rewrite(t, policy, auditPolicy("{level: Loud}"))
	until(t, "a broken policy is told", func() bool {
		_, body := p.get("/readyz?verbose")
		return strings.Contains(body, "[!]audit-policy: reason withheld")
	})
	if !strings.Contains(p.log.String(), "rules[0].level") {
		t.Errorf("the log does not say what is wrong:\n%s", p.log)
	}
	rewrite(t, policy, auditPolicy("{level: RequestResponse}"))
	until(t, "the new policy is in force", func() bool {
		p.get(collection)
		return strings.Contains(textOf(t, path), `"responseObject"`)
	})
}

func TestTheAuditLogOnStdout(t *testing.T) {
	c, err := load(t, "--in-memory", "--audit-log-path=-")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a, err := c.openAudit(&out, c.logger(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if err := a.log.WriteLine([]byte("{}\n")); err != nil || out.String() != "{}\n" {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

func TestAuditSettingsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	path, broken := filepath.Join(dir, "audit.log"), filepath.Join(dir, "policy.yaml")
	strict := filepath.Join(dir, "strict.yaml")
	rewrite(t, broken, auditPolicy("{level: Metadata, user: [a]}"))
	rewrite(t, strict, auditPolicy("{level: Metadata, omitStages: [RequestReceived]}"))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a policy, and no log":       {[]string{"--audit-policy-file=" + broken}, "add --audit-log-path"},
		"a size, and no log":         {[]string{"--audit-log-maxsize=5"}, "add --audit-log-path"},
		"strict, and no log":         {[]string{"--audit-log-mode=blocking-strict"}, "add --audit-log-path"},
		"a mode that there is not":   {[]string{"--audit-log-path=" + path, "--audit-log-mode=batch"}, "blocking-strict"},
		"an empty path":              {[]string{"--audit-log-path="}, "given and empty"},
		"an empty policy":            {[]string{"--audit-log-path=" + path, "--audit-policy-file="}, "given and empty"},
		"stdout, rotated":            {[]string{"--audit-log-path=-", "--audit-log-maxbackup=3"}, "stdout"},
		"rotated by two":             {[]string{"--audit-log-path=" + path, "--audit-log-maxsize=0", "--audit-log-compress"}, "somebody else"},
		"below nothing":              {[]string{"--audit-log-path=" + path, "--audit-log-maxage=-1"}, "--audit-log-maxage"},
		"a folder that is not there": {[]string{"--audit-log-path=" + filepath.Join(dir, "no", "a.log")}, "make its folder"},
		"a folder as the file":       {[]string{"--audit-log-path=" + dir}, "--audit-log-path"},
		"a policy that is not there": {[]string{"--audit-log-path=" + path, "--audit-policy-file=" + dir + "/none"}, "--audit-policy-file"},
		"a broken policy":            {[]string{"--audit-log-path=" + path, "--audit-policy-file=" + broken}, `unknown field "rules[0].user"`},
		"a policy that is not strict": {[]string{"--audit-log-path=" + path, "--audit-policy-file=" + strict, "--audit-log-mode=blocking-strict"},
			"use the mode blocking"},
	} {
		err := run(t.Context(), append([]string{"--in-memory", "--listen=127.0.0.1:0"}, c.args...), streams{io.Discard, io.Discard})
		if exitCode(err) != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit %d: %v", name, exitCode(err), err)
		}
	}
}
