package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

const followerRules = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: follower, namespace: team-a}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [flags], verbs: [list, watch]}
- {apiGroups: [""], resources: [configmaps/history], resourceNames: [flags], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: follower, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: follower}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: robot}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: writer}]
`

// Whoever may list and watch one name can wait for it and follow it, and nothing else.
func TestOneNameCanBeFollowed(t *testing.T) {
	s := startWithRules(t, followerRules)
	admin := s.made("admin.kubeconfig")
	as := func(who string, args ...string) ran { return s.run("cmctl", admin, append(args, "--as", who)...) }
	s.says(s.run("cmctl", admin, "create", "flags", "-n", "team-a", "--from-literal=mode=blue"), 0)
	s.says(as("robot", "wait", "flags", "--for=key=mode=blue", "-n", "team-a"), 0, "condition met")
	s.says(as("robot", "get", "flags", "-w", "--timeout=1s", "-n", "team-a"), 0, "ADDED")
	s.says(as("robot", "wait", "other", "--for=create", "-n", "team-a"), 6, `forbidden: User "robot" cannot list`)
	s.says(as("robot", "get", "flags", "-n", "team-a"), 6, `configmaps "flags" in namespace "team-a" on `, `: forbidden: User "robot" cannot get`)

	s.says(as("robot", "auth", "can-i", "get", "flags", "--subresource=history", "-n", "team-a"), 0, "yes")
	s.says(as("robot", "auth", "can-i", "get", "flags", "-n", "team-a"), 1, "no")
	s.says(as("robot", "auth", "can-i", "--list", "-n", "team-a"), 0, "configmaps/history   get", "configmaps           list,watch")
}

// Whoever may not make a namespace reads so, and whom to ask.
func TestANamespaceThatTheUserMayNotMake(t *testing.T) {
	s := startWithRules(t, followerRules)
	r := s.run("cmctl", s.made("admin.kubeconfig"), "create", "flags", "-n", "none", "--from-literal=mode=blue", "--as", "writer")
	s.says(r, 4, `namespaces "none" not found`, "you may not make it: ask somebody who may create namespaces")
}

// A client certificate that is not valid any more is named as the reason.
func TestAnExpiredClientCertificateIsTheReason(t *testing.T) {
	s := startAsMade(t, []string{"--client-lifetime=1s"})
	admin := s.made("admin.kubeconfig")
	s.eventually("the certificate is expired", func() bool { return s.run("cmctl", admin, "get").code != 0 })
	s.says(s.run("cmctl", admin, "get"), 6, "does not accept the credentials", "the client certificate has expired at "+time.Now().UTC().Format("2006"), "cmserver init --renew --dir FOLDER")
}

func startWithRules(t *testing.T, rules string) *secured {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return startAsMade(t, nil, "--rbac-dir", dir)
}
