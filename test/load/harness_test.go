package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

// full is the size that the figures in the documentation are of.
var full = os.Getenv("LOAD") == "full"

// sized is the size of a run: small among all tests, or full.
func sized[T any](small, large T) T {
	if full {
		return large
	}
	return small
}

// binary is the server program, built without the race detector: what is measured
// here is what people run.
var binary string

func TestMain(m *testing.M) { os.Exit(runAll(m)) }

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cmserver-load-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "cmserver")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/cmserver")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the server:", err)
		return 1
	}
	return m.Run()
}

const collection = "/api/v1/namespaces/default/configmaps"

// objectName is the name of the n-th object.
func objectName(n int) string { return fmt.Sprintf("object-%07d", n) }

// text is as random as what people compress: it takes the room that it seems to.
func text(random *rand.Rand, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"[random.IntN(64)]
	}
	return string(b)
}

// fill makes a store of count objects of 1 KiB of data, as creates would have.
func fill(t testing.TB, dir string, count int) {
	t.Helper()
	st, err := local.Open(local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for worker := range 128 {
		random := rand.New(rand.NewPCG(1, uint64(worker)))
		all.Go(func() {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				if err := put(st, n, text(random, 1024)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// put stores an object as the server would.
func put(st store.Store, n int, value string) error {
	name := objectName(n)
	uid := ktypes.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e, err := types.ConfigMaps.Encode(&types.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: uid, CreationTimestamp: metav1.NewTime(now),
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "load", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:data":{".":{},"f:content":{}}}`)},
			}},
		},
		Data: map[string]string{"content": value},
	})
	if err != nil {
		return err
	}
	key := store.Key("configmaps/default/" + name)
	_, err = st.Commit(context.Background(), store.Txn{
		Guards: []store.Guard{{Key: key}},
		Writes: []store.Record{{
			Key: key, Value: e.Value, VersionAt: e.VersionAt, UID: string(uid),
			Meta: store.Meta{Verb: "create", Manager: "load", Time: now, WriteID: "load-" + strconv.Itoa(n)},
		}},
	})
	return err
}

// process is a running cmserver.
type process struct {
	url    string
	cmd    *exec.Cmd
	log    bytes.Buffer // complete once done is closed
	done   chan struct{}
	client *http.Client
	// took is the time from the start of the process until it served.
	took time.Duration
}

// run starts cmserver on a data directory and returns when it serves.
func run(t testing.TB, dir string, args ...string) *process {
	t.Helper()
	p := &process{
		cmd:    exec.Command(binary, append([]string{"--listen", "127.0.0.1:0", "--data-dir", dir}, args...)...),
		done:   make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := make(chan string, 1)
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(io.TeeReader(pipe, &p.log)); lines.Scan(); {
			if _, after, ok := strings.Cut(lines.Text(), "msg=listening url="); ok {
				url <- strings.Fields(after)[0]
			}
		}
		// How it ended is for its log to say.
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.stop)
	select {
	case p.url = <-url:
		p.took = time.Since(began)
	case <-p.done:
		t.Fatalf("cmserver ended before it served:\n%s", p.log.String())
	}
	return p
}

// stop ends the process and waits for it.
func (p *process) stop() {
	p.client.CloseIdleConnections()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	<-p.done
}

// worked is the time that processors have spent on the process. On a machine with
// other work it tells more than the clock does.
func (p *process) worked(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Skip("this system does not tell what a process takes")
	}
	// Behind the program's name, in ticks of 10 ms: fields 14 and 15 of all.
	_, rest, _ := strings.Cut(string(stat), ") ")
	var ticks int
	for _, field := range strings.Fields(rest)[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory is what the process holds of the machine's memory, in MiB.
func (p *process) memory(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skip("this system does not tell what a process holds")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// send makes a request and reads the object that is answered.
func (p *process) send(ctx context.Context, method, path string, body *types.ConfigMap) (*types.ConfigMap, error) {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, reader)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s %s, %v", method, path, resp.Status, answer, err)
	}
	cm := &types.ConfigMap{}
	return cm, json.Unmarshal(answer, cm)
}
