package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// The counter is exact on a server that misbehaves in every way that a client can
// ride through. The seed repeats what it does, as far as the processes come in the
// same order. What ends with 7 may be unknown: an injected conflict moves no version,
// and proves nothing about a body that was lost before.
func TestCmctlCountsExactlyOnAServerThatMisbehaves(t *testing.T) {
	const writers, rounds = 4, 4
	s := startServer(t, t.TempDir(), "--inject", "conflict=15%,latency=1ms-5ms@50%,lost=10%,429=5%,503=5%,retry-after=0s,seed=21")
	mustCmctl(t, s.url, "create", "counter", "--from-literal=n=0", "--max-attempts=50")
	next := script(t, "echo $(($(cat) + 1)) | tr -d '\\n'\n")
	var all sync.WaitGroup
	var done, unknown atomic.Int64
	for w := range writers {
		all.Go(func() {
			for range rounds {
				switch end := cmctl(t, s.url, nil, "update", "counter", "--key=n", "--max-attempts=200", "--", next); end.code {
				case 0:
					done.Add(1)
				case 7:
					unknown.Add(1)
					t.Logf("writer %d:\n%s", w, end.stderr)
				default:
					t.Errorf("writer %d: ended with %d:\n%s", w, end.code, end.stderr)
				}
			}
		})
	}
	all.Wait()
	end := cmctl(t, s.url, nil, "get", "counter", "--key=n")
	for end.code == 7 { // a plain read is not tried again by itself
		end = cmctl(t, s.url, nil, "get", "counter", "--key=n")
	}
	got, err := strconv.ParseInt(end.stdout, 10, 64)
	if err != nil || got < done.Load() || got > done.Load()+unknown.Load() || unknown.Load() > writers {
		t.Errorf("the counter is %q; %d are done and %d unknown", end.stdout, done.Load(), unknown.Load())
	}
	if code := s.stop(); code != 0 || !strings.Contains(s.log.String(), "faults that were injected") {
		t.Errorf("ended with %d:\n%s", code, s.log)
	}
}

// More processes than a server has room for: it turns some away, serves the rest,
// and each gets its turn.
func TestProcessesCountExactlyOnAServerWithLittleRoom(t *testing.T) {
	const rounds = 5
	s := startServer(t, t.TempDir(), "--max-mutating-requests-inflight", "1", "--max-requests-inflight", "2")
	mustCmctl(t, s.url, "create", "counter", "--from-literal=count=0", "--max-attempts=50")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(bareEnvironment(t), counterRole+"="+s.url, fmt.Sprintf("E2E_COUNTER_ROUNDS=%d", rounds))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	all.Wait()
	if got := mustCmctl(t, s.url, "get", "counter", "--key=count"); got != strconv.Itoa(processes*rounds) {
		t.Errorf("the counter is %s, want %d", got, processes*rounds)
	}
	s.stop()
	t.Logf("%d requests were turned away", strings.Count(s.log.String(), "code=429"))
}
