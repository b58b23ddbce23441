package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// surroundings are what a command finds: variables, files, and whether kubectl
// calls it. The zero value has none of them.
type surroundings struct {
	env        map[string]string
	file       string // cmctl's settings
	kubeconfig string // in ~/.kube/config
	plugin     bool
}

// enter makes the surroundings and returns the home folder.
func (s surroundings) enter(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "CMCTL_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home+"/.config")
	t.Setenv("KUBECONFIG", home+"/.kube/config") // client-go finds out about the home only once
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, value := range s.env {
		t.Setenv(name, value)
	}
	for name, text := range map[string]string{".config/cmctl/config.yaml": s.file, ".kube/config": s.kubeconfig} {
		if text == "" {
			continue
		}
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// meant is the server and the namespace that a command line goes to, or why to
// none.
func (s surroundings) meant(t *testing.T, args ...string) string {
	t.Helper()
	s.enter(t)
	var errs bytes.Buffer
	f := newFactory(streams{Err: &errs, asPlugin: s.plugin}, nil)
	root := newRoot(f)
	if err := root.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	err := f.load()
	var d *destination
	if err == nil {
		d, err = f.target()
	}
	if err != nil {
		if code := exitCode(err); code != exitUsage {
			t.Errorf("%v: exit code %d", err, code)
		}
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%s in %s", d, f.workNamespace(d))
}

// kubeconfigOf is a kubeconfig whose contexts lead to servers of their names.
func kubeconfigOf(names ...string) string {
	text := "apiVersion: v1\nkind: Config\ncurrent-context: " + names[0] + "\nusers: [{name: u, user: {token: kube-token}}]\n"
	var clusters, contexts strings.Builder
	for _, n := range names {
		fmt.Fprintf(&clusters, "- {name: %s, cluster: {server: 'https://%s.kube'}}\n", n, n)
		fmt.Fprintf(&contexts, "- {name: %s, context: {cluster: %s, user: u, namespace: ns-of-%s}}\n", n, n, n)
	}
	return text + "clusters:\n" + clusters.String() + "contexts:\n" + contexts.String()
}

// Where a command goes, by each source alone and by every two of them. A source
// is a flag, a variable or a line of the settings file.
func TestTheOrderOfTargets(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"f", "v", "s"} {
		if err := os.WriteFile(dir+"/"+name, []byte(kubeconfigOf(name+"-current", name+"-other", "own-of-none")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const contexts = "\ncontexts:\n- {name: fc, server: 'https://fc', namespace: ns-fc}\n- {name: vc, server: 'https://vc'}\n- {name: sc, server: 'https://sc'}\n"
	type source struct {
		rank, kind string
		alone      string // where it leads
		flags      []string
		env        [2]string
		line       string
	}
	none := "error: --in-cluster: this is no pod of a cluster: "
	sources := []source{
		{rank: "flag", kind: "server", alone: "https://f", flags: []string{"--server=https://f"}},
		{rank: "flag", kind: "kubeconfig", alone: "https://f-current.kube", flags: []string{"--kubeconfig=" + dir + "/f"}},
		{rank: "flag", kind: "context", alone: "https://fc", flags: []string{"--context=fc"}},
		{rank: "flag", kind: "in-cluster", alone: none, flags: []string{"--in-cluster"}},
		{rank: "variable", kind: "server", alone: "https://v", env: [2]string{"CMCTL_SERVER", "https://v"}},
		{rank: "variable", kind: "kubeconfig", alone: "https://v-current.kube", env: [2]string{"CMCTL_KUBECONFIG", dir + "/v"}},
		{rank: "variable", kind: "context", alone: "https://vc", env: [2]string{"CMCTL_CONTEXT", "vc"}},
		{rank: "variable", kind: "in-cluster", alone: none, env: [2]string{"CMCTL_IN_CLUSTER", "true"}},
		{rank: "file", kind: "server", alone: "https://s", line: "server: https://s"},
		{rank: "file", kind: "kubeconfig", alone: "https://s-current.kube", line: "kubeconfig: " + dir + "/s"},
		{rank: "file", kind: "context", alone: "https://sc", line: "current-context: sc"},
		{rank: "file", kind: "in-cluster", alone: none, line: "in-cluster: true"},
	}
	goes := func(t *testing.T, want string, given ...source) {
		t.Helper()
		s := surroundings{env: map[string]string{}, file: contexts, kubeconfig: kubeconfigOf("never")}
		var flags []string
		for _, g := range given {
			flags = append(flags, g.flags...)
			s.file = g.line + "\n" + s.file
			if g.env[0] != "" {
				s.env[g.env[0]] = g.env[1]
			}
		}
		if got := s.meant(t, flags...); !strings.HasPrefix(got+" ", want+" ") && !(strings.HasPrefix(want, "error") && strings.HasPrefix(got, want)) {
			t.Errorf("it goes to %s, want %s", got, want)
		}
	}
	t.Run("nothing given", func(t *testing.T) { goes(t, "http://127.0.0.1:8080 in default") })
	for i, a := range sources {
		t.Run(a.rank+" "+a.kind, func(t *testing.T) { goes(t, a.alone, a) })
		for _, b := range sources[i+1:] {
			t.Run(a.rank+" "+a.kind+" and "+b.rank+" "+b.kind, func(t *testing.T) {
				want := a.alone // a is the closer one
				if a.rank == b.rank {
					switch {
					case a.kind == "kubeconfig" && b.kind == "context": // that context of that kubeconfig
						want = "error: kubeconfig " + dir
					case a.kind == "server" && b.kind == "context" && a.rank == "variable":
					default:
						want = "error: "
					}
				}
				goes(t, want, a, b)
			})
		}
	}
}

func TestContexts(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte(kubeconfigOf("far", "lab")), 0o600); err != nil {
		t.Fatal(err)
	}
	usual := surroundings{
		file: `
namespace: of-the-file
contexts:
- {name: lab, server: 'http://127.0.0.1:9001', namespace: team-a}
- {name: bare, server: 'http://127.0.0.1:9002'}
- {name: both, server: 'http://127.0.0.1:9003'}
- {name: kept, kubeconfig: ` + other + `, context: far}
- {name: moved, kubeconfig: ` + other + `, namespace: elsewhere}
- {name: broken, kubeconfig: /no/such/file}
`,
		kubeconfig: kubeconfigOf("prod", "both"),
	}
	with := func(env ...string) surroundings {
		s := usual
		s.env = map[string]string{}
		for i := 0; i < len(env); i += 2 {
			s.env[env[i]] = env[i+1]
		}
		return s
	}
	plugin := with("CMCTL_SERVER", "http://x", "CMCTL_CONTEXT", "lab", "CMCTL_KUBECONFIG", other, "CMCTL_NAMESPACE", "y", "CMCTL_IN_CLUSTER", "true")
	plugin.plugin = true
	for name, c := range map[string]struct {
		in   surroundings
		args string
		want string
	}{
		"one of cmctl's own":               {usual, "--context=lab", `http://127.0.0.1:9001 (context "lab") in team-a`},
		"by a variable":                    {with("CMCTL_CONTEXT", "lab"), "", `http://127.0.0.1:9001 (context "lab") in team-a`},
		"without a namespace":              {usual, "--context=bare", `http://127.0.0.1:9002 (context "bare") in of-the-file`},
		"one of the kubeconfig":            {usual, "--context=prod", `https://prod.kube (context "prod") in of-the-file`},
		"one of the kubeconfig, by a var":  {with("CMCTL_CONTEXT", "prod"), "", `https://prod.kube (context "prod") in of-the-file`},
		"its namespace is the last resort": {surroundings{kubeconfig: kubeconfigOf("prod")}, "--context=prod", `https://prod.kube (context "prod") in ns-of-prod`},
		"one of another kubeconfig":        {with("CMCTL_KUBECONFIG", other), "--context=far", `https://far.kube (context "far") in of-the-file`},
		"the kubeconfig decides with it":   {usual, "--context=lab --kubeconfig=" + other, `https://lab.kube (context "lab") in of-the-file`},
		"-n comes first":                   {with("CMCTL_NAMESPACE", "v"), "--context=lab -n f", `http://127.0.0.1:9001 (context "lab") in f`},
		"then the variable":                {with("CMCTL_NAMESPACE", "v"), "--context=lab", `http://127.0.0.1:9001 (context "lab") in v`},
		"a name in both":                   {usual, "--context=both", "error: there are two contexts \"both\""},
		"a name in both, by a variable":    {with("CMCTL_CONTEXT", "both"), "", "error: there are two contexts \"both\""},
		"a name in none":                   {usual, "--context=nope", "error: no context \"nope\" among cmctl's own ("},
		"one that is a kubeconfig's":       {usual, "--context=kept", `https://far.kube (context "kept") in ns-of-far`},
		"its namespace comes first":        {usual, "--context=moved", `https://far.kube (context "moved") in elsewhere`},
		"one of a kubeconfig that is gone": {usual, "--context=broken", "error: "},
		"an empty name":                    {usual, "--context=", "error: --context is given, and is empty"},
		"an empty server":                  {usual, "--server=", "error: --server is given, and is empty"},
		"no context at all":                {usual, "", "http://127.0.0.1:8080 in of-the-file"},
		"not in a pod":                     {usual, "--in-cluster=false", "http://127.0.0.1:8080 in of-the-file"},

		"kubectl's plugin":                      {plugin, "", `https://prod.kube (context "prod") in ns-of-prod`},
		"kubectl's plugin, by name":             {plugin, "--context=both", `https://both.kube (context "both") in ns-of-both`},
		"kubectl's plugin has no context of us": {plugin, "--context=lab", "error: the kubeconfig"},
		"kubectl's plugin with a namespace":     {plugin, "-n f", `https://prod.kube (context "prod") in f`},
		"kubectl's plugin with a server":        {plugin, "--server=http://127.0.0.1:1", "http://127.0.0.1:1 in default"},
		"kubectl's plugin without a kubeconfig": {surroundings{plugin: true}, "", "error: the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.in.meant(t, strings.Fields(c.args)...); got != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTheCurrentContextIsOneOfOurs(t *testing.T) {
	s := surroundings{file: "current-context: prod\n", kubeconfig: kubeconfigOf("prod")}
	if got := s.meant(t); !strings.Contains(got, "use-context") {
		t.Errorf("a kubeconfig's context is current: %s", got)
	}
	s = surroundings{file: "current-context: lab\ncontexts: [{name: lab, server: 'http://127.0.0.1:9001'}]\n", kubeconfig: kubeconfigOf("lab")}
	if got := s.meant(t); got != `http://127.0.0.1:9001 (context "lab") in default` {
		t.Errorf("the kubeconfig was looked at: %s", got)
	}
}

// spy is a server that notes the credentials that it is sent. It has a second
// address, with TLS, without which client-go sends no kubeconfig's token.
func spy(t *testing.T) (url, secure string, seen func() string) {
	t.Helper()
	last := ""
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r.Header.Get("Authorization") + r.Header.Get("Impersonate-User") + strings.Join(r.Header["Impersonate-Group"], "+")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"gitVersion":"v1.0.0"}`)
	})
	plain, tls := httptest.NewServer(h), httptest.NewTLSServer(h)
	t.Cleanup(plain.Close)
	t.Cleanup(tls.Close)
	return plain.URL, tls.URL, func() string { defer func() { last = "" }(); return last }
}

// A token goes to the server that it was given for: from where the server was
// named, or from closer to the person.
func TestCredentialsStayWithTheirServer(t *testing.T) {
	url, secure, seen := spy(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("from-a-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	kube := strings.Replace(kubeconfigOf("kube"), "server: 'https://kube.kube'", "insecure-skip-tls-verify: true, server: '"+secure+"'", 1)
	contexts := "contexts:\n- {name: lab, server: '" + url + "', token: lab-token}\n- {name: open, server: '" + url + "'}\n" +
		"- {name: filed, server: '" + url + "', token-file: " + tokenFile + "}\n- {name: as, server: '" + url + "', as: ann}\n"
	for name, c := range map[string]struct {
		env  string
		file string
		args string
		want string
	}{
		"flag to flag":                             {"", "", "--server=" + url + " --token=t", "Bearer t"},
		"flag to variable":                         {"CMCTL_SERVER=" + url, "", "--token=t", "Bearer t"},
		"variable to flag":                         {"CMCTL_TOKEN=t", "", "--server=" + url, ""},
		"variable to variable":                     {"CMCTL_TOKEN=t CMCTL_SERVER=" + url, "", "", "Bearer t"},
		"variable to file":                         {"CMCTL_TOKEN=t", "server: " + url + "\n", "", "Bearer t"},
		"file to flag":                             {"", "token: t\n", "--server=" + url, ""},
		"file to variable":                         {"CMCTL_SERVER=" + url, "token: t\n", "", ""},
		"file to file":                             {"", "token: t\nserver: " + url + "\n", "", "Bearer t"},
		"file to kubeconfig of a flag":             {"", "token: t\n", "--context=kube", "Bearer kube-token"},
		"flag to kubeconfig":                       {"", "", "--context=kube --token=t", "Bearer t"},
		"token file to flag":                       {"CMCTL_TOKEN_FILE=" + tokenFile, "", "--server=" + url, ""},
		"token file by a flag":                     {"", "", "--server=" + url + " --token-file=" + tokenFile, "Bearer from-a-file"},
		"token file before a variable's token":     {"CMCTL_TOKEN=t CMCTL_SERVER=" + url, "", "--token-file=" + tokenFile, "Bearer from-a-file"},
		"a flag's token before a variable's file":  {"CMCTL_TOKEN_FILE=" + tokenFile + " CMCTL_SERVER=" + url, "", "--token=t", "Bearer t"},
		"a context's own":                          {"", contexts, "--context=lab", "Bearer lab-token"},
		"a context's own file":                     {"", contexts, "--context=filed", "Bearer from-a-file"},
		"a context's own, and a variable's":        {"CMCTL_TOKEN=t", contexts, "--context=lab", "Bearer lab-token"},
		"a context's own, and a flag's":            {"", contexts, "--context=lab --token=t", "Bearer t"},
		"a context's own file, and a flag's":       {"", contexts, "--context=filed --token=t", "Bearer t"},
		"another context's":                        {"", contexts, "--context=open", ""},
		"of no context, in the file":               {"", "token: t\n" + contexts, "--context=open", ""},
		"of no context, to the current one":        {"", "token: t\ncurrent-context: open\n" + contexts, "", ""},
		"a variable's, to the current context":     {"CMCTL_TOKEN=t", "current-context: open\n" + contexts, "", "Bearer t"},
		"the current context's, to another server": {"", "current-context: lab\n" + contexts, "--server=" + url, ""},
		"the current context's, to a variable's":   {"CMCTL_SERVER=" + url, "current-context: lab\n" + contexts, "", ""},
		"whom to act as":                           {"", "", "--server=" + url + " --as=ann --as-group=x --as-group=y", "annx+y"},
		"whom to act as, by a context":             {"", contexts, "--context=as", "ann"},
		"whom to act as, by a flag":                {"", contexts, "--context=as --as=bob", "bob"},
		"whom to act as, by no variable":           {"CMCTL_AS=ann", "", "--server=" + url, ""},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{}
			for _, pair := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
			surroundings{env: env, file: c.file, kubeconfig: kube}.enter(t)
			var out, errs bytes.Buffer
			args := append([]string{"version"}, strings.Fields(c.args)...)
			if code := run(t.Context(), args, streams{Out: &out, Err: &errs}, nil); code != 0 {
				t.Fatalf("exit code %d: %s", code, &errs)
			}
			if got := seen(); got != c.want {
				t.Errorf("the server was sent %q, want %q", got, c.want)
			}
		})
	}
}

// What is set for cmctl is not sent to where kubectl goes.
func TestThePluginTakesNoVariablesAlong(t *testing.T) {
	_, secure, seen := spy(t)
	kube := strings.Replace(kubeconfigOf("kube"), "server: 'https://kube.kube'", "insecure-skip-tls-verify: true, server: '"+secure+"'", 1)
	surroundings{env: map[string]string{"CMCTL_TOKEN": "t"}, file: "token: u\n", kubeconfig: kube}.enter(t)
	for args, want := range map[string]string{"version": "Bearer kube-token", "version --token=f": "Bearer f"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), streams{Out: &out, Err: &errs, asPlugin: true}, nil); code != 0 {
			t.Fatalf("exit code %d: %s", code, &errs)
		}
		if got := seen(); got != want {
			t.Errorf("%s: the server was sent %q, want %q", args, got, want)
		}
	}
}

// The second server of a command that has two is that of a context alone.
func TestConnectTo(t *testing.T) {
	url, secure, seen := spy(t)
	surroundings{
		env:        map[string]string{"CMCTL_TOKEN": "t"},
		file:       "contexts:\n- {name: lab, server: '" + url + "', namespace: team-a}\n",
		kubeconfig: strings.Replace(kubeconfigOf("kube"), "server: 'https://kube.kube'", "insecure-skip-tls-verify: true, server: '"+secure+"'", 1),
	}.enter(t)
	for _, c := range []struct{ context, namespace, sent, where string }{
		{"lab", "team-a", "ann", " --context=lab --namespace=team-a"},
		{"kube", "ns-of-kube", "Bearer kube-tokenann", " --context=kube --namespace=ns-of-kube"},
	} {
		var errs bytes.Buffer
		f := newFactory(streams{Err: &errs}, nil)
		if err := newRoot(f).ParseFlags([]string{"--server=" + url, "-n", "x", "--as=ann"}); err != nil {
			t.Fatal(err)
		}
		if err := f.load(); err != nil {
			t.Fatal(err)
		}
		conn, err := f.connectTo("copy", c.context)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ServerVersion(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := seen(); got != c.sent || conn.namespace != c.namespace || conn.where != c.where {
			t.Errorf("%s: sent %q, namespace %q, where %q", c.context, got, conn.namespace, conn.where)
		}
	}
}

func TestHintsRepeatWhatChoseTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		in   surroundings
		args []string
		want string
	}{
		"nothing":          {surroundings{}, nil, ""},
		"flags":            {surroundings{}, []string{"--server=http://127.0.0.1:1", "-n", "a"}, " --server=http://127.0.0.1:1 --namespace=a"},
		"no token":         {surroundings{}, []string{"--token=secret"}, ""},
		"for a shell":      {surroundings{kubeconfig: kubeconfigOf("a")}, []string{"--context=a", "--as=a b"}, " --context=a --as='a b'"},
		"kubectl's plugin": {surroundings{kubeconfig: kubeconfigOf("a"), plugin: true}, nil, " --context=a --namespace=ns-of-a"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.enter(t)
			f := newFactory(streams{asPlugin: c.in.plugin}, nil)
			if err := newRoot(f).ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			if err := f.load(); err != nil {
				t.Fatal(err)
			}
			conn, err := f.connect("get")
			if err != nil {
				t.Fatal(err)
			}
			if conn.where != c.want {
				t.Errorf("got %q, want %q", conn.where, c.want)
			}
		})
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for text, says := range map[string]string{
		"max-attempts: 0":              "at least 1",
		"request-timeout: 5":           "such as 30s",
		"namespace: A/B":               "can't be a namespace",
		"in-cluster: maybe":            "true or false",
		"insecure-skip-tls-verify: 2":  "true or false",
		"server: {a: b}":               "list or a mapping",
		"context: lab":                 "current-context",
		"sever: http://x":              "unknown setting",
		"server: ftp://x":              "http or https",
		"server: http://u:p@127.0.0.1": "--token",
	} {
		t.Run(text, func(t *testing.T) {
			if got := (surroundings{file: text + "\n"}).meant(t); !strings.Contains(got, says) {
				t.Errorf("got %s, want %q", got, says)
			}
		})
	}
}

func TestCalledAs(t *testing.T) {
	for _, c := range []struct {
		argv   string
		args   string
		plugin bool
	}{
		{"/usr/bin/cmctl get a", "get a", false},
		{"/usr/bin/kubectl-cm get a", "get a", true},
		{"kubectl-cm.exe get a", "get a", true},
		{"kubectl_complete-cm get a", "__complete get a", true},
		{"./kubectl-cmx get", "get", false},
	} {
		if args, plugin := calledAs(strings.Fields(c.argv)); strings.Join(args, " ") != c.args || plugin != c.plugin {
			t.Errorf("%s: %v, %v", c.argv, args, plugin)
		}
	}
	if args, plugin := calledAs(nil); args != nil || plugin {
		t.Error("no arguments at all")
	}
}

func TestVerbosity(t *testing.T) {
	for args, want := range map[string]string{
		"get -v":                "get -v",
		"get -v 6":              "get -v=6",
		"get -v6":               "get -v=6",
		"get -v=6":              "get -v=6",
		"get --v=6":             "get --v=6",
		"get --v 6":             "get -v=6",
		"get --verbose 10 a":    "get -v=10 a",
		"-v 8 get a":            "-v=8 get a",
		"get -v a":              "get -v a",
		"get -v 123":            "get -v 123",
		"get a -- -v 6":         "get a -- -v 6",
		"get -l -v 6":           "get -l -v 6",
		"get --selector -v 6":   "get --selector -v 6",
		"get --selector=x -v 6": "get --selector=x -v=6",
		"get -A -v 6":           "get -A -v=6",
		"nope -v 6":             "nope -v=6",
	} {
		root := newRoot(newFactory(streams{}, nil))
		if got := strings.Join(spellVerbosity(root, strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
