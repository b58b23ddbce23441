package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Each script in testdata/kubectl is a session of kubectl with a server of its
// own, without a flag that makes up for anything. What kubectl prints is what it
// prints on kube-apiserver.
//
//	kubectl ARG...          must succeed and print nothing on standard error;
//	                        with ! it must fail
//	exitcode N kubectl ...  must end with the code N
//	seen FILE REGEXP        waits until the file, which a program in the background
//	                        writes, has what matches
func TestKubectl(t *testing.T) {
	t.Parallel()
	kubectl, err := kubectlPath()
	must(t, err)
	tools := t.TempDir()
	must(t, os.Symlink(kubectl, filepath.Join(tools, "kubectl")))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/kubectl",
		Setup: func(env *testscript.Env) error {
			s := startServer(env.T().(testing.TB))
			config, err := s.kubeconfig(env.WorkDir)
			env.Setenv("KUBECONFIG", config)
			env.Setenv("HOME", env.WorkDir) // kubectl's cache goes there
			env.Setenv("PATH", tools+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"kubectl":  quietKubectl,
			"exitcode": exitcode,
			"seen":     seen,
		},
	})
}

func quietKubectl(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("kubectl", args...)
	switch stderr := ts.ReadFile("stderr"); {
	case neg && err == nil:
		ts.Fatalf("kubectl %v succeeded", args)
	case !neg && err != nil:
		ts.Fatalf("kubectl %v: %v", args, err)
	case !neg && stderr != "":
		ts.Fatalf("kubectl %v warned:\n%s", args, stderr)
	}
}

func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND [ARG...]")
	}
	code := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("%v ended with %s, want %s", args[1:], code, args[0])
	}
}

func seen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: seen FILE REGEXP")
	}
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(path)
		if want.Match(text) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never had %q; it has (%v):\n%s", args[0], args[1], err, text)
		}
	}
}
