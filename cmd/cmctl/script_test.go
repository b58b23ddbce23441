package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/inject"
	"example.com/cmctl/pkg/server/quota"
	"example.com/cmctl/pkg/server/store/local"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/util/rand"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfigVariable names a kubeconfig with another server of the API, on which
// the scripts then run instead of on cmserver. Each works in namespaces of its
// own there, which are deleted at its end.
const kubeconfigVariable = "CMCTL_E2E_KUBECONFIG"

// The test binary is cmctl itself, and the small programs that scripts use as
// editors.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"cmctl":              func() { os.Exit(Main()) },
		pluginName:           func() { os.Exit(Main()) },
		pluginCompletionName: func() { os.Exit(Main()) },
		"subst":              func() { os.Exit(subst(os.Args[1:])) },
		"exits":              func() { os.Exit(9) },
		"nested": func() { // TEXT N: the text that many times
			n, _ := strconv.Atoi(os.Args[2])
			fmt.Println(strings.Repeat(os.Args[1], n))
		},
	})
}

// Each script in testdata/script has a server of its own, or one that is given,
// and two empty namespaces, $NS, in which cmctl works unless told otherwise, and
// $NS2. What only cmserver has (history, known versions, an address that needs
// no credentials) stands behind the condition [cmserver].
func TestScripts(t *testing.T) {
	kubeconfig := os.Getenv(kubeconfigVariable)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			// The race detector lets each process sleep for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/.config")
			var api *api
			var err error
			if kubeconfig != "" {
				env.Setenv("CMCTL_KUBECONFIG", kubeconfig)
				api, err = given(kubeconfig)
			} else {
				api, err = own(env)
			}
			if err != nil {
				return err
			}
			for _, name := range []string{"NS", "NS2"} {
				ns, err := api.makeNamespace()
				if err != nil {
					return err
				}
				env.Setenv(name, ns)
				env.Defer(func() { api.deleteNamespace(ns) })
			}
			env.Setenv("CMCTL_NAMESPACE", env.Getenv("NS"))
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition == "cmserver" {
				return kubeconfig == "", nil
			}
			return false, fmt.Errorf("unknown condition [%s]", condition)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode":  exitcode,
			"awaits":    awaits,
			"injecting": injecting,
			"bounding":  bounding,
			"dying":     dying,
		},
	})
}

// api is a server to run scripts on.
type api struct {
	url    string
	client *http.Client
}

// own is a new cmserver. Its address is in $CMCTL_SERVER.
func own(env *testscript.Env) (*api, error) {
	url, stop, err := serve()
	if err != nil {
		return nil, err
	}
	env.Defer(stop)
	env.Setenv("CMCTL_SERVER", url)
	return &api{url: url, client: http.DefaultClient}, nil
}

// serve starts a server with an empty store in this process.
func serve() (url string, stop func(), err error) { return serveWith(func(*server.Options) {}) }

// serveWith starts one whose options are changed.
func serveWith(change func(*server.Options)) (url string, stop func(), err error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: 1, Logger: quiet})
	if err != nil {
		return "", nil, err
	}
	o := server.Options{Store: st, Logger: quiet, Version: apiversion.Info{GitVersion: "v1.37.0+test"}}
	change(&o)
	h := httptest.NewServer(server.New(o).Handler())
	return h.URL, func() {
		h.CloseClientConnections() // a watch of a script that failed would be waited for
		h.Close()
		st.Close()
	}, nil
}

// given is the server of a kubeconfig's current context.
func given(kubeconfig string) (*api, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfigVariable, err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfigVariable, err)
	}
	return &api{url: strings.TrimSuffix(config.Host, "/"), client: client}, nil
}

func (a *api) makeNamespace() (string, error) {
	name := "cmctl-test-" + rand.String(8)
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]string{"name": name}})
	if err != nil {
		return "", err
	}
	return name, a.do(http.MethodPost, "/api/v1/namespaces", body)
}

// deleteNamespace leaves nothing behind on a server that goes on.
func (a *api) deleteNamespace(name string) {
	if err := a.do(http.MethodDelete, "/api/v1/namespaces/"+name, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (a *api) do(method, path string, body []byte) error {
	req, err := http.NewRequest(method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return nil
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

// injecting FAULTS goes on with a new server, empty, that misbehaves so.
func injecting(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: injecting FAULTS")
	}
	faults, err := inject.Parse(args[0])
	ts.Check(err)
	goOnWith(ts, func(o *server.Options) { o.Inject = faults })
}

// goOnWith goes on with a new server, empty, whose options are changed.
func goOnWith(ts *testscript.TestScript, change func(*server.Options)) {
	url, stop, err := serveWith(change)
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv("CMCTL_SERVER", url)
}

// bounding N goes on with a new server, empty, whose namespaces hold N objects at most.
func bounding(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: bounding N")
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	rules, err := quota.Load("", quota.Defaults{Objects: n, Bytes: quota.None})
	ts.Check(err)
	goOnWith(ts, func(o *server.Options) { o.Quotas = rules.For })
}

// awaits FILE TEXT waits until a file that a command in the background writes has
// that text, with \n for line feeds. The limit is for scripts that fail.
func awaits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: awaits FILE TEXT")
	}
	var text []byte
	want := strings.ReplaceAll(args[1], `\n`, "\n")
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		text, _ = os.ReadFile(ts.MkAbs(args[0])) // that it isn't there yet is no fault
		if strings.Contains(string(text), want) {
			return
		}
	}
	ts.Fatalf("%s does not come to have %q:\n%s", args[0], args[1], text)
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
