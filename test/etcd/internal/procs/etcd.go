package procs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Cluster is an etcd cluster of real processes.
type Cluster struct {
	t       testing.TB
	Program string
	Members []*Member
}

// Member is one process of it.
type Member struct {
	*Process
	Name, Endpoint, peer, dir string
	args                      []string
	cluster                   *Cluster
}

// Etcd34 is Debian's etcd, or why there is none.
func Etcd34() (string, error) { return exec.LookPath("etcd") }

// StartEtcd starts a cluster of n members, and waits until it answers.
func StartEtcd(t testing.TB, program string, n int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, Program: program}
	var initial []string
	dir := t.TempDir()
	for i := range n {
		name := fmt.Sprintf("etcd%d", i+1)
		m := &Member{
			Name: name, cluster: c, dir: filepath.Join(dir, name),
			Endpoint: fmt.Sprintf("127.0.0.1:%d", FreePort(t)), peer: fmt.Sprintf("127.0.0.1:%d", FreePort(t)),
		}
		initial = append(initial, fmt.Sprintf("%s=http://%s", name, m.peer))
		c.Members = append(c.Members, m)
	}
	for _, m := range c.Members {
		m.args = append([]string{
			"--name", m.Name, "--data-dir", m.dir, "--initial-cluster", strings.Join(initial, ","), "--initial-cluster-state", "new",
			"--listen-client-urls", "http://" + m.Endpoint, "--advertise-client-urls", "http://" + m.Endpoint,
			"--listen-peer-urls", "http://" + m.peer, "--initial-advertise-peer-urls", "http://" + m.peer,
			"--heartbeat-interval", "100", "--election-timeout", "1000", "--logger", "zap", "--log-outputs", "stderr",
		}, args...)
		m.Start()
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range c.Members {
				t.Logf("%s said last:\n%s", m.Name, m.Said(1500))
			}
		}
	})
	c.Await()
	return c
}

// Start starts a member that has not been started, or was killed.
func (m *Member) Start() {
	m.cluster.t.Helper()
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		m.cluster.t.Fatal(err)
	}
	m.Process = start(m.cluster.t, m.Name, m.dir+".log", m.cluster.Program, m.args...)
}

// Endpoints are the addresses of all members.
func (c *Cluster) Endpoints() []string {
	var all []string
	for _, m := range c.Members {
		all = append(all, m.Endpoint)
	}
	return all
}

// Client is a client of the given members, of all without any.
func (c *Cluster) Client(endpoints ...string) *clientv3.Client {
	c.t.Helper()
	if len(endpoints) == 0 {
		endpoints = c.Endpoints()
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// Await waits until the cluster answers what needs its leader.
func (c *Cluster) Await() {
	c.t.Helper()
	client := c.Client()
	Eventually(c.t, "etcd answers", time.Minute, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := client.Get(ctx, "nothing")
		return err == nil
	})
}

// Leader is the member that leads.
func (c *Cluster) Leader() *Member {
	c.t.Helper()
	var leader *Member
	Eventually(c.t, "etcd has a leader", time.Minute, func() bool {
		for _, m := range c.Members {
			if m.Ended() {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			status, err := c.Client(m.Endpoint).Status(ctx, m.Endpoint)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}
