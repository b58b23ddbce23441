package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store/local"
	"github.com/rogpeppe/go-internal/testscript"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// The test binary is cmctl itself, and the small programs that scripts use as
// editors.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"cmctl": func() { os.Exit(Main()) },
		"subst": func() { os.Exit(subst(os.Args[1:])) },
		"exits": func() { os.Exit(9) },
	})
}

// Each script in testdata/script runs against a server of its own, whose address
// is in $CMCTL_SERVER.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			url, stop, err := serve()
			if err != nil {
				return err
			}
			env.Defer(stop)
			env.Setenv("CMCTL_SERVER", url)
			// The race detector lets each process sleep for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.config")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitcode,
		},
	})
}

// serve starts a server with an empty store in this process.
func serve() (url string, stop func(), err error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: 1, Logger: quiet})
	if err != nil {
		return "", nil, err
	}
	h := httptest.NewServer(server.New(server.Options{Store: st, Logger: quiet, Version: apiversion.Info{GitVersion: "v1.37.0+test"}}).Handler())
	return h.URL, func() { h.Close(); st.Close() }, nil
}

// exitcode CODE COMMAND... runs the command and demands that code; what it
// prints is there for stdout and stderr.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		if code = strings.TrimPrefix(err.Error(), "exit status "); code == err.Error() {
			ts.Fatalf("%v: %v", args[1:], err)
		}
	}
	if code != args[0] {
		ts.Fatalf("%v ended with %s, want %s", args[1:], code, args[0])
	}
}

// subst OLD NEW FILE replaces text in a file; with \n for line feeds. It is the
// scripted editor.
func subst(args []string) int {
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: subst OLD NEW FILE")
		return 2
	}
	text, err := os.ReadFile(args[2])
	if err == nil {
		unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
		before, after := unescape.Replace(args[0]), unescape.Replace(args[1])
		if !strings.Contains(string(text), before) {
			fmt.Fprintf(os.Stderr, "subst: no %q in %s:\n%s", before, args[2], text)
			return 1
		}
		err = os.WriteFile(args[2], []byte(strings.Replace(string(text), before, after, 1)), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "subst:", err)
		return 1
	}
	return 0
}
