package procs

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Server is a cmserver on an etcd cluster, always at the same address.
type Server struct {
	*Process
	t    testing.TB
	URL  string
	log  string
	args []string
}

// repository is where the other module is, as tests of this one see it.
const repository = "../.."

// NewServer makes a cmserver that is not started yet.
func NewServer(t testing.TB, endpoints []string, prefix string, args ...string) *Server {
	t.Helper()
	port := FreePort(t)
	s := &Server{t: t, URL: fmt.Sprintf("http://127.0.0.1:%d", port), log: filepath.Join(t.TempDir(), "cmserver.log")}
	s.args = append([]string{
		fmt.Sprintf("--listen=127.0.0.1:%d", port), "--store=etcd://" + strings.Join(endpoints, ",") + prefix,
		"--max-inflight-per-user=1000", "--log-format=json",
	}, args...)
	t.Cleanup(func() {
		if t.Failed() && s.Process != nil {
			t.Logf("cmserver at %s said last:\n%s", s.URL, s.Said(2500))
		}
	})
	return s
}

// Start starts it, and returns without waiting.
func (s *Server) Start() {
	s.t.Helper()
	_, measured := s.t.(*testing.B) // as users have it, and else with the race detector
	program := build(s.t, fmt.Sprint("cmserver-", measured), repository, "./cmd/cmserver", !measured)
	s.Process = start(s.t, "cmserver", s.log, program, s.args...)
}

// Ready tells whether it takes writes.
func (s *Server) Ready() bool {
	quick := http.Client{Timeout: 2 * time.Second}
	r, err := quick.Get(s.URL + "/readyz")
	if err != nil {
		return false
	}
	defer r.Body.Close() // it is not read
	return r.StatusCode == http.StatusOK
}

// Await waits until it takes writes.
func (s *Server) Await() {
	s.t.Helper()
	Eventually(s.t, s.URL+" is ready", time.Minute, s.Ready)
}
