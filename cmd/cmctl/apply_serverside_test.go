package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

// What the client makes of a server-side apply beforehand is what the server makes
// of it, whoever wrote before: other managers, our own by another way, and applies
// of the other kind.
func TestAServerSideApplyIsForeseen(t *testing.T) {
	between(t, func(http.ResponseWriter, *http.Request) bool { return false })
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	data := func() string {
		var keys []string
		for _, key := range []string{"a", "b", "c"} {
			if v := pick("", `"1"`, `"2"`); v != "" {
				keys = append(keys, key+": "+v)
			}
		}
		return "{" + strings.Join(keys, ", ") + "}"
	}
	seen := map[string]int{}
	for step := range 200 {
		switch pick("server", "server", "server", "server", "client", "patch", "binary", "raw") {
		case "client":
			cmctl(t, "apply", "-f", manifestFile(t, data()), "--force")
		case "patch":
			send(t, "fieldManager=someone", "application/merge-patch+json", fmt.Sprintf(`{"data":{%q:%s}}`, pick("a", "b", "c"), pick(`"3"`, "null")))
		case "binary":
			key := pick("a", "b", "c")
			send(t, "fieldManager="+pick("someone", "cmctl-apply"), "application/merge-patch+json", fmt.Sprintf(`{"data":{%[1]q:null},"binaryData":{%[1]q:"AP8B"}}`, key))
		case "raw":
			send(t, "force=true&fieldManager=cmctl-apply", "application/apply-patch+yaml", `{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: `+data()+`}`)
		default:
			args := []string{"apply", "--server-side", "-f", manifestFile(t, data()), pick("--force", "--keep", "--force-conflicts", "--force=false"), "--field-manager=" + pick("cmctl-apply", "cmctl-apply", "team-b")}
			foreseenCode, foreseen, _ := cmctl(t, append(args, "-o", "json", "--dry-run=client")...)
			code, made, errs := cmctl(t, append(args, "-o", "json")...)
			seen[fmt.Sprint(code)]++
			if code != foreseenCode {
				t.Fatalf("step %d, %q: foreseen to end with %d, ended with %d:\n%s", step, args, foreseenCode, code, errs)
			}
			if code != 0 {
				continue
			}
			want, got := parsed(t, foreseen), parsed(t, made)
			for _, c := range types.Diff(want, got) {
				t.Errorf("step %d, %q: %s was foreseen as %v and is %v\n%s", step, args, c.Field, c.From, c.To, errs)
			}
			if code, again, errs := cmctl(t, append(args, "--dry-run=client")...); code != 0 || !strings.Contains(again, "unchanged") {
				t.Errorf("step %d, %q: a second run is %s%s", step, args, again, errs)
			}
		}
		if t.Failed() {
			return
		}
	}
	if seen["0"] < 10 || seen["3"] < 10 {
		t.Errorf("ended %v: this shows nothing", seen)
	}
}

func parsed(t *testing.T, text string) types.Document {
	t.Helper()
	d, err := types.ParseDocument([]byte(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return d
}

// send patches "app" as another client would.
func send(t *testing.T, query, mediaType, body string) {
	t.Helper()
	target := os.Getenv("CMCTL_SERVER") + "/api/v1/namespaces/default/configmaps/app?" + query
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, target, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	resp.Body.Close()
}
