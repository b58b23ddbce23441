package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/types"
)

const collection = "/api/v1/namespaces/default/configmaps"

// configMap is an object with one value.
func configMap(name, version, content string) *types.ConfigMap {
	return &types.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version},
		Data:       map[string]string{"content": content},
	}
}

// A server that was killed goes on where it was: versions that clients remember
// from before are worth what they were, and none is given again.
func TestVersionsKeepTheirMeaningOverAKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	s := startServer(t, dir)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refusedWith := func(code int, err error) {
		t.Helper()
		var r *refused
		if !errors.As(err, &r) || r.code != code {
			t.Errorf("got %v, want %d", err, code)
		}
	}
	var versions []string
	cm := configMap("app", "", "0")
	must(call(ctx, "POST", s.url+collection, cm, 201, cm))
	versions = append(versions, cm.ResourceVersion)
	for n := 1; n < 50; n++ {
		cm.Data["content"] = strconv.Itoa(n)
		must(call(ctx, "PUT", s.url+collection+"/app", cm, 200, cm))
		versions = append(versions, cm.ResourceVersion)
	}
	last, future := listVersion(ctx, t, s.url), strconv.FormatInt(listVersion(ctx, t, s.url)+10_000, 10)

	s.kill()
	s = startServer(t, dir)
	if got := listVersion(ctx, t, s.url); got < last {
		t.Errorf("the server is at version %d, and was at %d", got, last)
	}
	// Who is up to date sees the next write; who is behind sees what it missed;
	// who names a version that never was is not told anything of it.
	current := listen(ctx, t, s.url+collection+"?watch=1&resourceVersion="+versions[49])
	behind := listen(ctx, t, s.url+collection+"?watch=1&resourceVersion="+versions[39])
	ahead := listen(ctx, t, s.url+collection+"?watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion="+future)
	var stale *types.ConfigMap
	must(call(ctx, "GET", s.url+collection+"/app", nil, 200, &stale))
	stale.ResourceVersion = versions[48]
	refusedWith(409, call(ctx, "PUT", s.url+collection+"/app", stale, 200, nil))
	refusedWith(504, call(ctx, "GET", s.url+collection+"?resourceVersion="+future, nil, 200, nil))
	refusedWith(504, call(ctx, "GET", s.url+collection+"/app?resourceVersion="+future, nil, 200, nil))
	cm.Data["content"] = "after"
	must(call(ctx, "PUT", s.url+collection+"/app", cm, 200, cm))
	if slices.Contains(versions, cm.ResourceVersion) {
		t.Errorf("version %s was given twice", cm.ResourceVersion)
	}
	next := "MODIFIED " + cm.ResourceVersion + " after"
	current.hears(next)
	for n := 40; n < 50; n++ {
		behind.hears(fmt.Sprintf("MODIFIED %s %d", versions[n], n))
	}
	behind.hears(next)
	ahead.hears("") // its end, and nothing before
}

// The version is stored for itself: when only objects remain that are much older,
// or none, the restarted server does not fall back to theirs.
func TestTheVersionSurvivesTheObjects(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	s := startServer(t, dir)
	if err := call(ctx, "POST", s.url+collection, configMap("old", "", "1"), 201, nil); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"busy", "old"} { // at last nothing is left
		for n := range 100 {
			cm := configMap("busy", "", strconv.Itoa(n))
			if err := call(ctx, "POST", s.url+collection, cm, 201, nil); err != nil {
				t.Fatal(err)
			}
			if err := call(ctx, "DELETE", s.url+collection+"/busy", nil, 200, nil); err != nil {
				t.Fatal(err)
			}
		}
		if gone == "old" {
			if err := call(ctx, "DELETE", s.url+collection+"/old", nil, 200, nil); err != nil {
				t.Fatal(err)
			}
		}
		before := listVersion(ctx, t, s.url)
		s.kill()
		s = startServer(t, dir)
		if got := listVersion(ctx, t, s.url); got != before {
			t.Errorf("the server is at version %d, and was at %d", got, before)
		}
		ear := listen(ctx, t, fmt.Sprintf("%s%s?watch=1&resourceVersion=%d", s.url, collection, before))
		cm := configMap("new-after-"+gone, "", "1")
		if err := call(ctx, "POST", s.url+collection, cm, 201, cm); err != nil {
			t.Fatal(err)
		}
		if want := strconv.FormatInt(before+1, 10); cm.ResourceVersion != want {
			t.Errorf("the next version is %s, want %s", cm.ResourceVersion, want)
		}
		ear.hears("ADDED " + cm.ResourceVersion + " 1")
	}
}

// ear listens to a watch.
type ear struct {
	t      *testing.T
	url    string
	events chan string // closed at the end of the stream
}

// listen opens a watch, and returns when its head has come.
func listen(ctx context.Context, t *testing.T, url string) *ear {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %s", url, resp.Status)
	}
	e := &ear{t: t, url: url, events: make(chan string, 100)}
	go func() {
		defer close(e.events)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var event struct {
				Type   string
				Object types.ConfigMap
			}
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				return
			}
			e.events <- fmt.Sprintf("%s %s %s", event.Type, event.Object.ResourceVersion, event.Object.Data["content"])
		}
	}()
	return e
}

// hears demands that this is the next event.
func (e *ear) hears(want string) {
	e.t.Helper()
	select {
	case got := <-e.events:
		if got != want {
			e.t.Errorf("%s: got %q, want %q", e.url, got, want)
		}
	case <-time.After(30 * time.Second):
		e.t.Errorf("%s: nothing came, want %q", e.url, want)
	}
}

// Nobody else on the machine can read the data, also in a directory that somebody
// made with wider permissions.
func TestTheFilesAreTheServersAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dir)
	mustCmctl(t, s.url, "create", "flags", "--from-literal=mode=blue")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}
