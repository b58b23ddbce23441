// Package procs runs etcd and cmserver as real processes, for tests that end them in every
// way. Whatever a test starts is ended with it.
package procs

import (
	"net"
	"testing"
)

// FreePort is the number of a port on loopback that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it was only to be found
	return l.Addr().(*net.TCPAddr).Port
}
