package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/cmctl/pkg/types"
)

// jqIncrement is what each round of a shell does to the counter.
const jqIncrement = `jq '.data.n = ((.data.n | tonumber) + 1 | tostring)'`

// needJq skips a test without jq.
func needJq(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is missing: install it to run this")
	}
}

// loops runs a shell loop of so many rounds in each of the shells at once, and
// returns how many rounds ended with which exit code. The command finds its
// shell's number in $1.
func loops(t *testing.T, server string, shells, rounds int, command string) (ends map[int]int) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex // guards ends
	ends = map[int]int{}
	loop := fmt.Sprintf("i=0; while [ $i -lt %d ]; do (%s) >/dev/null 2>errors; echo $?; i=$((i+1)); done", rounds, command)
	for n := range shells {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", loop, "sh", strconv.Itoa(n))
			cmd.Dir = t.TempDir()
			cmd.Env = append(bareEnvironment(t), "CMCTL_SERVER="+server, "PATH="+binaries+string(filepath.ListSeparator)+os.Getenv("PATH"))
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("shell %d: %v", n, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, line := range strings.Fields(string(out)) {
				code, err := strconv.Atoi(line)
				if err != nil {
					t.Errorf("shell %d printed %q", n, line)
				}
				ends[code]++
			}
		})
	}
	all.Wait()
	return ends
}

// field reads a field of the counter.
func field(t *testing.T, server, section, key string) any {
	t.Helper()
	doc, err := connect(t, server).ConfigMaps("default").Get(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	return doc.Fields()[types.Field{Section: section, Key: key}]
}

// Fifty shells count on one object: what each was told is so.
func TestFiftyShellsCountExactly(t *testing.T) {
	needJq(t)
	s := startServer(t, t.TempDir())
	mustCmctl(t, s.url, "create", "counter", "--from-literal=n=0")
	const shells = 50
	for _, c := range []struct {
		name, flags string
		all         bool // must end with 0
	}{
		{name: "few attempts, so that most give up", flags: "--max-attempts=1"},
		{name: "the cap raised", flags: "--max-attempts=100000", all: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			mustCmctl(t, s.url, "set", "counter", "n=0")
			ends := loops(t, s.url, shells, 1, "cmctl update counter "+c.flags+" -- "+jqIncrement)
			if ends[0]+ends[3] != shells || ends[0] == 0 || c.all && ends[0] != shells {
				t.Errorf("the rounds ended with %v", ends)
			}
			if got := field(t, s.url, "data", "n"); got != strconv.Itoa(ends[0]) {
				t.Errorf("the counter is %v after %d rounds that ended with 0", got, ends[0])
			}
			t.Logf("ended with %v", ends)
		})
	}
}

// Fifty processes label one object: each that ended with 0 finds its label, and
// the server is not stormed.
func TestFiftyLabelsAreThere(t *testing.T) {
	s := startServer(t, t.TempDir())
	mustCmctl(t, s.url, "create", "counter", "--from-literal=n=0")
	front, requests := before(t, s.url, passOn)
	const shells = 50
	ends := loops(t, front, shells, 1, `cmctl label counter "k$1=v"`)
	there := 0
	for n := range shells {
		if field(t, s.url, "metadata.labels", fmt.Sprintf("k%d", n)) == "v" {
			there++
		}
	}
	if ends[0]+ends[3] != shells || ends[0] == 0 || there != ends[0] {
		t.Errorf("%d labels are there after %v", there, ends)
	}
	// Each lands after a handful of attempts, of two requests each.
	if n := requests.Load(); n > shells*2*20 {
		t.Errorf("%d requests were made", n)
	}
	t.Logf("%d requests", requests.Load())
}

// fate is what becomes of a request.
type fate int

const (
	pass      fate = iota
	dropped        // it is carried out, and the answer is lost
	noHistory      // 404, as from a server that keeps none
)

func passOn(*http.Request, int64) fate { return pass }

// dropEveryThird loses the answer of every third write.
func dropEveryThird(r *http.Request, n int64) fate {
	if r.Method == http.MethodPut && n%3 == 0 {
		return dropped
	}
	return pass
}

// dropAndForget does so before a server without history.
func dropAndForget(r *http.Request, n int64) fate {
	if strings.HasSuffix(r.URL.Path, "/history") {
		return noHistory
	}
	return dropEveryThird(r, n)
}

// before puts a front before a server. judge gets each request with its number
// among those of its method, from 1.
func before(t *testing.T, server string, judge func(*http.Request, int64) fate) (address string, requests *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	requests = &atomic.Int64{}
	var puts, others atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		n := &others
		if r.Method == http.MethodPut {
			n = &puts
		}
		switch judge(r, n.Add(1)) {
		case pass:
			proxy.ServeHTTP(w, r)
		case noHistory:
			http.NotFound(w, r)
		case dropped:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(front.Close)
	return front.URL, requests
}

// Answers that are lost after the write landed change nothing in the count: the
// server's history tells what became of each.
func TestLostAnswersLeaveTheCountExact(t *testing.T) {
	needJq(t)
	s := startServer(t, t.TempDir())
	mustCmctl(t, s.url, "create", "counter", "--from-literal=n=0")
	front, _ := before(t, s.url, dropEveryThird)
	const shells, rounds = 8, 2
	ends := loops(t, front, shells, rounds, "cmctl update counter --max-attempts=100000 -- "+jqIncrement)
	if ends[0] != shells*rounds {
		t.Errorf("the rounds ended with %v", ends)
	}
	if got := field(t, s.url, "data", "n"); got != strconv.Itoa(shells*rounds) {
		t.Errorf("the counter is %v, want %d", got, shells*rounds)
	}
}

// Where no history tells, the outcome is unknown and said so: nothing is counted
// twice, and what was told to be done is.
func TestLostAnswersWithoutHistoryAreToldUnknown(t *testing.T) {
	needJq(t)
	s := startServer(t, t.TempDir())
	mustCmctl(t, s.url, "create", "counter", "--from-literal=n=0")
	front, _ := before(t, s.url, dropAndForget)
	const shells, rounds = 8, 2
	ends := loops(t, front, shells, rounds, "cmctl update counter --max-attempts=100000 -- "+jqIncrement)
	if ends[0]+ends[7] != shells*rounds || ends[7] == 0 {
		t.Errorf("the rounds ended with %v", ends)
	}
	text, _ := field(t, s.url, "data", "n").(string)
	got, err := strconv.Atoi(text)
	if err != nil || got < ends[0] || got > ends[0]+ends[7] {
		t.Errorf("the counter is %q after %v", text, ends)
	}
	t.Logf("the counter is %s after %v", text, ends)
}
