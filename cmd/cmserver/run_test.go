package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// What blocks in a pipe that nobody writes to goes with the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("example.com/cmctl/cmd/cmserver.letGoReader.func2"))
}

// console collects what the program writes, and tells when it listens.
type console struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
	url chan string  // gets the URL once; nobody closes it
}

var listening = regexp.MustCompile(`msg=listening url=(\S+)`)

func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := listening.FindSubmatch(b); m != nil {
		c.url <- string(m[1])
	}
	return c.buf.Write(b)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}

// program is a cmserver that runs in this process.
type program struct {
	t      *testing.T
	url    string
	client *http.Client
	log    *console
	stop   context.CancelFunc
	ended  chan error
}

// launch runs cmserver on a free port until stop is called.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	return launchTo(t, io.Discard, args...)
}

// launchTo is launch with a stdout.
func launchTo(t *testing.T, out io.Writer, args ...string) *program {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &program{
		t: t, log: &console{url: make(chan string, 1)}, stop: stop, ended: make(chan error, 1),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	go func() {
		p.ended <- run(ctx, append([]string{"--listen", "127.0.0.1:0"}, args...), streams{out: out, err: p.log})
	}()
	select {
	case p.url = <-p.log.url:
	case err := <-p.ended:
		t.Fatalf("cmserver ended: %v\n%s", err, p.log)
	}
	return p
}

// end stops it as a signal would, and waits.
func (p *program) end() {
	p.t.Helper()
	p.stop()
	if err := <-p.ended; err != nil {
		p.t.Errorf("cmserver ended with %v\n%s", err, p.log)
	}
	p.client.CloseIdleConnections()
}

// send does a request and returns the code and the object's version.
func (p *program) send(method, path, body string) (code int, version string, err error) {
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(resp.Body).Decode(&object)
	return resp.StatusCode, object.Metadata.ResourceVersion, err
}

const collection = "/api/v1/namespaces/default/configmaps"

func TestVersionsGoOnAfterARestart(t *testing.T) {
	// Only the test's own folders are looked at.
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := filepath.Join(t.TempDir(), "data")

	// Version 1 are the system's namespaces.
	p := launch(t, "--data-dir", dir)
	if code, version, err := p.send("POST", collection, `{"metadata":{"name":"flags"},"data":{"mode":"blue"}}`); code != 201 || version != "2" {
		t.Fatalf("got %d, version %q, %v", code, version, err)
	}
	p.end()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data directory: %v, %v", info, err)
	}

	p = launch(t, "serve", "--data-dir", dir)
	defer p.end()
	if code, version, err := p.send("GET", collection+"/flags", ""); code != 200 || version != "2" {
		t.Errorf("after the restart: got %d, version %q, %v", code, version, err)
	}
	if code, version, err := p.send("POST", collection, `{"metadata":{"name":"more"}}`); code != 201 || version != "3" {
		t.Errorf("got %d, version %q, %v", code, version, err)
	}
}

// Writers are busy when the server is told to stop: what it acknowledged is
// there afterwards, and it stops without an error.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, "--data-dir", dir)
	const writers = 16
	acknowledged := make([]map[string]string, writers) // name: version
	var wg sync.WaitGroup
	underWay := make(chan struct{}, writers*1000)
	for w := range writers {
		acknowledged[w] = map[string]string{}
		wg.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("w%d-%d", w, n)
				code, version, err := p.send("POST", collection, `{"metadata":{"name":"`+name+`"},"data":{"k":"v"}}`)
				if err != nil || code == http.StatusServiceUnavailable {
					return // the server is gone
				}
				if code != 201 {
					t.Errorf("got %d", code)
					return
				}
				acknowledged[w][name] = version
				underWay <- struct{}{}
			}
		})
	}
	for range 10 * writers {
		<-underWay
	}
	p.end()
	wg.Wait()

	p = launch(t, "--data-dir", dir)
	defer p.end()
	seen := map[string]string{}
	for _, names := range acknowledged {
		for name, version := range names {
			if other, twice := seen[version]; twice {
				t.Errorf("version %s was given to %s and %s", version, other, name)
			}
			seen[version] = name
			if code, got, err := p.send("GET", collection+"/"+name, ""); code != 200 || got != version {
				t.Errorf("%s: got %d, version %q, want %q; %v", name, code, got, version, err)
			}
		}
	}
}

func TestWhatCannotStart(t *testing.T) {
	locked := t.TempDir()
	p := launch(t, "--data-dir", locked)
	defer p.end()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) string {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, c := range []struct {
		name    string
		args    []string
		code    int
		message []string
	}{
		{"locked data directory", []string{"--listen", "127.0.0.1:0", "--data-dir", locked}, 1, []string{locked, "in use by another process", "stop the other cmserver"}},
		{"taken port", []string{"--listen", taken.Addr().String(), "--in-memory"}, 1, []string{taken.Addr().String(), "taken by another program", "--listen"}},
		{"unknown flag", []string{"--nonsense"}, 2, []string{"--nonsense", "--help"}},
		{"unknown command", []string{"nonsense"}, 2, []string{`"nonsense"`, "--help"}},
		{"no port", []string{"--listen", "localhost", "--in-memory"}, 2, []string{"HOST:PORT"}},
		{"every address", []string{"--listen", ":0", "--in-memory"}, 2, []string{"--insecure-listen"}},
		{"another address", []string{"--listen", "192.0.2.1:80", "--in-memory"}, 2, []string{"--insecure-listen"}},
		{"unknown mode", []string{"--in-memory", "--unconditional-put", "sometimes"}, 2, []string{"never, helm, always"}},
		{"unknown log format", []string{"--in-memory", "--log-format", "xml"}, 2, []string{"text, json"}},
		{"two places for data", []string{"--in-memory", "--data-dir", "x"}, 2, []string{"give one of them"}},
		{"no room for writes", []string{"--in-memory", "--max-mutating-requests-inflight", "0"}, 2, []string{"--max-mutating-requests-inflight"}},
		{"unknown fault", []string{"--in-memory", "--inject", "lost=1%,conflct=10%"}, 2, []string{"--inject", `"conflct"`, "conflict"}},
		{"faults that others could meet", []string{"--listen", ":0", "--insecure-listen", "--in-memory", "--inject", "lost=1%"}, 2, []string{"--inject-anywhere"}},
		{"no time for requests", []string{"--in-memory", "--request-timeout", "0s"}, 2, []string{"--request-timeout"}},
		{"missing file", []string{"--in-memory", "--config", file + ".not"}, 2, []string{file + ".not"}},
		{"unknown setting", []string{"--in-memory", "--config", "unknown"}, 2, []string{`unknown setting "data-dri"`, "data-dir"}},
		{"file that is not YAML", []string{"--in-memory", "--config", "broken"}, 2, []string{file}},
		{"duration without a unit", []string{"--in-memory", "--config", "bare"}, 2, []string{"request-timeout", `"5"`, "30s"}},
		{"damaged data", []string{"--listen", "127.0.0.1:0", "--data-dir", damagedData(t)}, 1, []string{"stored data is damaged", "cmserver check", "cmserver restore"}},
		{"setting of the wrong type", []string{"--in-memory", "--config", "wrong"}, 2, []string{"history-limit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, arg := range c.args {
				switch arg {
				case "unknown":
					c.args[i] = write("data-dri: x\n")
				case "bare":
					c.args[i] = write("request-timeout: 5\n")
				case "broken":
					c.args[i] = write("a: [\n")
				case "wrong":
					c.args[i] = write("history-limit: many\n")
				}
			}
			err := run(t.Context(), c.args, streams{out: io.Discard, err: io.Discard})
			if got := exitCode(err); got != c.code {
				t.Fatalf("exit code %d, want %d: %v", got, c.code, err)
			}
			for _, part := range c.message {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// damagedData is a directory of a store whose list of files is gone.
func damagedData(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	launch(t, "--data-dir", dir).end()
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifest in %s: %v", dir, err)
	}
	for _, m := range manifests {
		if err := os.Remove(m); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestVersionCommand(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"version"}, streams{out: &out, err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^cmserver \S+ \(Kubernetes API v1\.37\.0\+cmserver-\S+\)\n$`).MatchString(out.String()) {
		t.Errorf("got %q", out.String())
	}
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{0: nil, 1: errors.New("x"), 2: fmt.Errorf("y: %w", usageError{errors.New("z")}), 7: fmt.Errorf("y: %w", errLostServer)} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}

// A server that misbehaves says so at its start and at its end, with what repeats it.
func TestInjectionIsLoud(t *testing.T) {
	p := launch(t, "--in-memory", "--inject", "429=1x,seed=9")
	if code, _, err := p.send("GET", collection, ""); code != 429 {
		t.Errorf("got %d, %v", code, err)
	}
	p.end()
	for _, part := range []string{"level=WARN msg=\"FAULTS ARE INJECTED", "inject=\"429=1x,seed=9\"", "429:1 of 1"} {
		if !strings.Contains(p.log.String(), part) {
			t.Errorf("no %s in the log:\n%s", part, p.log)
		}
	}
}
