package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

const processes = 16

// Sixteen people edit one ConfigMap at once, each adding a key of their own.
func TestEveryEditorsKeyIsThere(t *testing.T) {
	s := startServer(t, t.TempDir())
	mustCmctl(t, s.url, "create", "flags", "--from-literal=mode=blue")
	var all sync.WaitGroup
	ends := make([]outcome, processes)
	for i := range processes {
		editor := script(t, fmt.Sprintf("sed 's/^data:$/&\\n  key-%d: \"%d\"/' \"$1\" >\"$1.new\" && cat \"$1.new\" >\"$1\" && rm \"$1.new\"\n", i, i))
		all.Go(func() {
			ends[i] = cmctl(t, s.url, []string{"CMCTL_EDITOR=" + editor}, "edit", "flags", "--max-attempts=200")
		})
	}
	all.Wait()
	doc, err := connect(t, s.url).ConfigMaps("default").Get(t.Context(), "flags")
	if err != nil {
		t.Fatal(err)
	}
	fields := doc.Fields()
	for i, end := range ends {
		if end.code != 0 {
			t.Errorf("edit %d ended with %d:\n%s", i, end.code, end.stderr)
		}
		if got := fields[types.Field{Section: "data", Key: fmt.Sprintf("key-%d", i)}]; got != fmt.Sprint(i) {
			t.Errorf("key-%d is %v", i, got)
		}
	}
	if got := doc.DataCount(); got != processes+1 {
		t.Errorf("%d keys, want %d", got, processes+1)
	}
}

// Sixteen processes increment one counter through the retry loop.
func TestProcessesCountExactly(t *testing.T) {
	const rounds = 20
	s := startServer(t, t.TempDir())
	mustCmctl(t, s.url, "create", "counter", "--from-literal=count=0")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(bareEnvironment(t), counterRole+"="+s.url, "E2E_COUNTER_ROUNDS="+strconv.Itoa(rounds))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	all.Wait()
	doc, err := connect(t, s.url).ConfigMaps("default").Get(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.Fields()[types.Field{Section: "data", Key: "count"}]; got != strconv.Itoa(processes*rounds) {
		t.Errorf("the counter is %v, want %d", got, processes*rounds)
	}
}

// count is the program that TestProcessesCountExactly runs.
func count(url, rounds string) int {
	n, err := strconv.Atoi(rounds)
	if err == nil {
		err = increment(context.Background(), url, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func increment(ctx context.Context, url string, rounds int) error {
	c, err := newClient(url)
	if err != nil {
		return err
	}
	counter := c.ConfigMaps("default").Object("counter")
	for range rounds {
		_, err := retry.Update(ctx, counter, client.EditConfigMap(func(cm *types.ConfigMap) error {
			n, err := strconv.Atoi(cm.Data["count"])
			if err != nil {
				return err
			}
			cm.Data["count"] = strconv.Itoa(n + 1)
			return nil
		}), retry.Options{MaxAttempts: 500, Computed: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// Several steps of a pipeline apply the same new object at once.
func TestEightAppliesOfANewObjectAllSucceed(t *testing.T) {
	s := startServer(t, t.TempDir())
	file := t.TempDir() + "/new.yaml"
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: \"1\"}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ends := make([]outcome, 8)
	for i := range ends {
		all.Go(func() { ends[i] = cmctl(t, s.url, nil, "apply", "-f", file) })
	}
	all.Wait()
	created := 0
	for i, end := range ends {
		if end.code != 0 {
			t.Errorf("apply %d ended with %d:\n%s", i, end.code, end.stderr)
		}
		created += strings.Count(end.stdout, "created")
	}
	if created != 1 {
		t.Errorf("%d of them say created, want 1", created)
	}
}
