package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// manifestFile writes a manifest of "app" with that data.
func manifestFile(t *testing.T, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.yaml")
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: " + data + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Two applies of different files at once end as one of the files, whole: what the
// slower one makes is computed anew from what the faster one left.
func TestTheSlowerApplyIsMadeAnew(t *testing.T) {
	for _, mode := range [][]string{nil, {"--server-side"}} {
		t.Run(strings.Join(mode, " "), func(t *testing.T) {
			var faster func()
			between(t, func(_ http.ResponseWriter, r *http.Request) bool {
				if (r.Method == http.MethodPut || r.Method == http.MethodPatch) && faster != nil {
					act := faster
					faster = nil
					act()
				}
				return false
			})
			apply := func(file string) (int, string, string) {
				return cmctl(t, append([]string{"apply", "-f", file}, mode...)...)
			}
			if code, _, errs := apply(manifestFile(t, `{a: "0"}`)); code != 0 {
				t.Fatal(errs)
			}
			both := manifestFile(t, `{a: "2", c: "2"}`)
			faster = func() {
				if code, _, errs := apply(both); code != 0 {
					t.Error(errs)
				}
			}
			if code, out, errs := apply(manifestFile(t, `{a: "1"}`)); code != 0 || !strings.Contains(out, "configured") || !strings.Contains(errs, "removed, for the file no longer has it: data[c]") {
				t.Errorf("the slower one ended with %d, %s%s", code, out, errs)
			} else if want := `data[a]: "2" -> "1", replaces what was written meanwhile by `; strings.Count(errs, "meanwhile") != 2 || !strings.Contains(errs, want) {
				t.Errorf("the slower one doesn't name what it replaced:\n%s", errs)
			}
			if _, out, _ := cmctl(t, "get", "app", "-o", "yaml"); !strings.Contains(out, `a: "1"`) || strings.Contains(out, "  c:") {
				t.Errorf("it ended as\n%s", out)
			}
		})
	}
}

// Who meant to create, and found that another apply had, names what it replaced.
func TestAnApplyThatMeetsACreationNamesWhatItReplaces(t *testing.T) {
	var faster func()
	between(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && faster != nil {
			act := faster
			faster = nil
			act()
		}
		return false
	})
	theirs := manifestFile(t, `{a: "2", b: "1"}`)
	faster = func() {
		if code, _, errs := cmctl(t, "apply", "-f", theirs); code != 0 {
			t.Error(errs)
		}
	}
	code, _, errs := cmctl(t, "apply", "-f", manifestFile(t, `{a: "1", b: "1"}`))
	if want := `data[a]: "2" -> "1", replaces what was written meanwhile by `; code != 0 || strings.Count(errs, "meanwhile") != 1 || !strings.Contains(errs, want) {
		t.Errorf("it ended with %d:\n%s", code, errs)
	}
}

// A server-side apply names the version that it was made from, so that what
// somebody writes in between is compared with too.
func TestAServerSideApplyIsOfTheVersionThatWasRead(t *testing.T) {
	var faster func()
	between(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && faster != nil {
			act := faster
			faster = nil
			act()
		}
		return false
	})
	if code, _, errs := cmctl(t, "apply", "--server-side", "-f", manifestFile(t, `{a: "0"}`)); code != 0 {
		t.Fatal(errs)
	}
	// Under the same manager's name the server would see no conflict.
	faster = func() {
		send(t, "fieldManager=cmctl-apply", "application/apply-patch+yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: theirs}}`)
	}
	if code, _, errs := cmctl(t, "apply", "--server-side", "-f", manifestFile(t, `{a: "1"}`)); code != 3 || !strings.Contains(errs, `"theirs"`) {
		t.Errorf("it ended with %d:\n%s", code, errs)
	}
	if _, out, _ := cmctl(t, "get", "app", "-o", "yaml"); !strings.Contains(out, "a: theirs") {
		t.Errorf("it ended as\n%s", out)
	}
}

// Only NotFound means that nothing is there.
func TestApplyWritesNothingAfterAReadThatFailed(t *testing.T) {
	var writes atomic.Int32
	between(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			writes.Add(1)
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<html>not here</html>")
		return true
	})
	for _, mode := range []string{"--server-side=false", "--server-side", "--dry-run=client", "--set=s"} {
		if code, _, errs := cmctl(t, "apply", mode, "-f", manifestFile(t, `{a: "1"}`)); code == 0 {
			t.Errorf("%s ended well:\n%s", mode, errs)
		}
	}
	if n := writes.Load(); n > 0 {
		t.Errorf("%d writes were sent", n)
	}
}

// A server that passes over dryRun is found out.
func TestADryRunThatIsStoredIsShouted(t *testing.T) {
	deaf := true
	between(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if deaf {
			q := r.URL.Query()
			q.Del("dryRun")
			r.URL.RawQuery = q.Encode()
		}
		return false
	})
	if code, _, errs := cmctl(t, "apply", "-f", manifestFile(t, `{a: "1"}`)); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := cmctl(t, "apply", "-f", manifestFile(t, `{a: "2"}`), "--dry-run=server"); code != 1 || !strings.Contains(errs, "THE DRY RUN WAS STORED") {
		t.Errorf("it ended with %d:\n%s", code, errs)
	}
	deaf = false
	if code, _, errs := cmctl(t, "apply", "-f", manifestFile(t, `{a: "3"}`), "--dry-run=server"); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, errs)
	}
}

// A client's dry run, and what decides about it, only reads.
func TestADryRunOfTheClientOnlyReads(t *testing.T) {
	var writes atomic.Int32
	between(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			writes.Add(1)
		}
		return false
	})
	if code, _, errs := cmctl(t, "apply", "-f", manifestFile(t, `{a: "1"}`), "--set=s"); code != 0 {
		t.Fatal(errs)
	}
	before := writes.Load()
	for _, mode := range []string{"--set=s", "--server-side", "--exact", "--force", "--all-or-nothing"} {
		for _, data := range []string{`{a: "1"}`, `{a: "2", b: "1"}`} {
			cmctl(t, "apply", "-f", manifestFile(t, data), "--dry-run=client", mode)
		}
	}
	if n := writes.Load() - before; n > 0 {
		t.Errorf("%d writes were sent", n)
	}
}

// An apply whose answer is lost after it landed is done once, and known to be.
func TestAnApplyWhoseAnswerIsLostIsDone(t *testing.T) {
	for _, mode := range [][]string{nil, {"--server-side"}} {
		t.Run(strings.Join(mode, " "), func(t *testing.T) {
			lose, writes := false, 0
			var backend *url.URL
			b, stop, err := serve()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			if backend, err = url.Parse(b); err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(backend)
			proxy.ModifyResponse = func(r *http.Response) error {
				if r.Request.Method != http.MethodGet {
					writes++
					if lose {
						lose = false
						r.Body.Close()
						panic(http.ErrAbortHandler) // it landed; its answer goes nowhere
					}
				}
				return nil
			}
			front := httptest.NewServer(proxy)
			t.Cleanup(front.Close)
			t.Setenv("HOME", t.TempDir())
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			t.Setenv("CMCTL_SERVER", front.URL)
			for _, data := range []string{`{a: "1"}`, `{b: "2"}`} {
				lose, writes = true, 0
				code, _, errs := cmctl(t, append([]string{"apply", "-f", manifestFile(t, data)}, mode...)...)
				if code != 0 || writes != 1 {
					t.Errorf("%s ended with %d after %d writes:\n%s", data, code, writes, errs)
				}
			}
			if _, out, _ := cmctl(t, "get", "app", "-o", "yaml"); !strings.Contains(out, `b: "2"`) || strings.Contains(out, "  a:") {
				t.Errorf("stored is\n%s", out)
			}
		})
	}
}

// Members in namespaces that can no longer be looked at are told, not forgotten.
func TestPruningTellsWhereItCouldNotLook(t *testing.T) {
	closed := false
	between(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !closed || !strings.HasSuffix(r.URL.Path, "/namespaces/two/configmaps") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
		return true
	})
	dir := t.TempDir()
	write := func(name, namespace string) string {
		path := filepath.Join(dir, name+".yaml")
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b, c := write("a", "one"), write("b", "one"), write("c", "two")
	if code, _, errs := cmctl(t, "apply", "-f", a, "-f", b, "-f", c, "--set=s"); code != 0 {
		t.Fatal(errs)
	}
	closed = true
	code, out, errs := cmctl(t, "apply", "-f", a, "--set=s", "--prune")
	if code != 6 || !strings.Contains(out, "configmap/b pruned") || !strings.Contains(errs, `configmaps in namespace "two" on `) || !strings.Contains(errs, "may be left here") {
		t.Errorf("it ended with %d:\n%s%s", code, out, errs)
	}
	closed = false
	if code, out, errs := cmctl(t, "apply", "-f", a, "--set=s", "--prune"); code != 0 || !strings.Contains(out, "configmap/c pruned") {
		t.Errorf("it ended with %d:\n%s%s", code, out, errs)
	}
}

// Field managers that share an object, plain applies and other clients, all at once
// on keys of their own: each finds its last value at the end.
func TestAppliesAtOnceLoseNothing(t *testing.T) {
	between(t, func(http.ResponseWriter, *http.Request) bool { return false })
	if code, _, errs := cmctl(t, "apply", "-f", manifestFile(t, `{plain: "0"}`)); code != 0 {
		t.Fatal(errs)
	}
	const rounds = 5
	var all sync.WaitGroup
	apply := func(key string, flags ...string) {
		all.Go(func() {
			for round := 1; round <= rounds; round++ {
				args := append([]string{"apply", "app", fmt.Sprintf("--from-literal=%s=%d", key, round), "--max-attempts=100"}, flags...)
				if code, _, errs := cmctl(t, args...); code != 0 {
					t.Errorf("%q ended with %d:\n%s", args, code, errs)
				}
			}
		})
	}
	apply("plain")
	keys := []string{"plain"}
	for i := range 3 {
		manager, patched := fmt.Sprintf("manager-%d", i), fmt.Sprintf("patched-%d", i)
		keys = append(keys, manager, patched)
		apply(manager, "--server-side", "--field-manager="+manager)
		all.Go(func() {
			for round := 1; round <= rounds; round++ {
				send(t, "fieldManager="+patched, "application/merge-patch+json", fmt.Sprintf(`{"data":{%q:"%d"}}`, patched, round))
			}
		})
	}
	all.Wait()
	_, out, _ := cmctl(t, "get", "app", "-o", "json")
	data, _ := parsed(t, out)["data"].(map[string]any)
	for _, key := range keys {
		if data[key] != fmt.Sprint(rounds) {
			t.Errorf("%s is %v, want %d", key, data[key], rounds)
		}
	}
}

// The first server-side apply of an object only creates: what somebody else makes
// in between is read and compared as any live object is.
func TestTheFirstServerSideApplyTakesNothing(t *testing.T) {
	applies := func(t *testing.T) {
		send(t, "fieldManager=cmctl-apply", "application/apply-patch+yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: theirs, c: theirs}}`)
	}
	creates := func(t *testing.T) {
		if code, _, errs := cmctl(t, "create", "app", "--from-literal=a=theirs", "--from-literal=c=theirs"); code != 0 {
			t.Error(errs)
		}
	}
	for name, c := range map[string]struct {
		faster func(t *testing.T)
		flags  []string
		code   int
		says   string // on stderr
		holds  string
	}{
		"another applies under the same name": {applies, nil, 3, `"theirs"`, "a: theirs"},
		"another creates":                     {creates, nil, 3, `"theirs"`, "a: theirs"},
		"another applies, and is overruled":   {applies, []string{"--force"}, 0, `data[a]: overwritten by the file, file "1", live "theirs"`, `a: "1"`},
		"another creates, and is overruled":   {creates, []string{"--force"}, 0, `data[a]: overwritten by the file, file "1", live "theirs"`, `a: "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			raced := false
			between(t, func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPatch && !raced {
					raced = true
					c.faster(t)
				}
				return false
			})
			code, out, errs := cmctl(t, append([]string{"apply", "--server-side", "-f", manifestFile(t, `{a: "1", b: "1"}`)}, c.flags...)...)
			if code != c.code || !strings.Contains(errs, c.says) || strings.Contains(out, "created") {
				t.Errorf("it ended with %d, want %d:\n%s%s", code, c.code, out, errs)
			}
			if _, out, _ := cmctl(t, "get", "app", "-o", "yaml"); !strings.Contains(out, c.holds) {
				t.Errorf("it ended as\n%s", out)
			}
		})
	}
}

// What another manager takes between reading and writing is shown as what it had
// before is: the file's value, the live one, and whose it is.
func TestAConflictThatArisesMeanwhileIsShownWhole(t *testing.T) {
	var faster func()
	between(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && faster != nil {
			act := faster
			faster = nil
			act()
		}
		return false
	})
	if code, _, errs := cmctl(t, "apply", "--server-side", "-f", manifestFile(t, `{a: "0"}`)); code != 0 {
		t.Fatal(errs)
	}
	faster = func() {
		if code, _, errs := cmctl(t, "set", "app", "a=theirs"); code != 0 {
			t.Error(errs)
		}
	}
	code, _, errs := cmctl(t, "apply", "--server-side", "-f", manifestFile(t, `{a: "1"}`))
	for _, want := range []string{"other field managers own what the file sets", `file: "1"`, `live: "theirs"`, "owned by cmctl-set"} {
		if code != 3 || !strings.Contains(errs, want) {
			t.Errorf("it ended with %d, want 3 and %s:\n%s", code, want, errs)
		}
	}
}
