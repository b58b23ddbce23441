package procs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// programs are what was built, once for all tests of a process.
var programs = struct {
	sync.Mutex
	dir   string
	built map[string]string
}{built: map[string]string{}}

// build builds a command of the module in dir, and returns where it is. race adds the race
// detector.
func build(t testing.TB, name, dir, pkg string, race bool) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path := programs.built[name]; path != "" {
		return path
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "cmserver-etcd-")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir = dir
	}
	path := filepath.Join(programs.dir, name)
	args := []string{"build", "-o", path}
	if race {
		args = append(args, "-race")
	}
	command := exec.Command("go", append(args, pkg)...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatal(fmt.Errorf("build %s: %w\n%s", pkg, err, out))
	}
	programs.built[name] = path
	return path
}

// Clean removes what was built.
func Clean() {
	programs.Lock()
	defer programs.Unlock()
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir) // it is in a folder for temporary files
	}
}

// Etcd is etcd of the release that this module's go.mod names.
func Etcd(t testing.TB) string {
	t.Helper()
	return build(t, "etcd", ".", "example.com/cmctl/test/etcd/internal/etcd", false)
}
