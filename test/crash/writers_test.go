package crash

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	writers    = 8
	keys       = 12 // that they share
	collection = "/api/v1/namespaces/crash/configmaps"
)

// object is what matters of a ConfigMap.
type object struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Data map[string]string `json:"data,omitempty"`
}

// api talks to a server.
type api struct {
	url    string
	client *http.Client
}

func newAPI(url string) *api {
	return &api{url: url, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers + 1}, Timeout: 20 * time.Second}}
}

// call sends a request. The code is 0 if no answer came.
func (a *api) call(ctx context.Context, method, path, writeID string, body, into any) (code int, err error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, reader)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if writeID != "" {
		req.Header.Set("Cmctl-Write-Id", writeID)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode < 300 && into != nil {
		err = json.Unmarshal(text, into)
	}
	return resp.StatusCode, err
}

// writer writes keys that others write too, until it gets no answer.
type writer struct {
	api    *api
	ledger *ledger
	rng    *rand.Rand
	name   string
}

func (w *writer) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("key-%d", w.rng.IntN(keys))
		var now object
		code, _ := w.api.call(ctx, "GET", collection+"/"+key, "", nil, &now)
		if code == 0 || !w.write(ctx, w.next(key, n, code == 404, now.Metadata.ResourceVersion)) {
			return
		}
	}
}

// attempt is a write with what is sent.
type attempt struct {
	write
	path string
	body any
	bad  bool // it has to be refused
}

// next is a random write to a key.
func (w *writer) next(key string, n int, absent bool, base string) attempt {
	a := attempt{write: write{key: key, token: fmt.Sprintf("%s-%d", w.name, n), base: base}, path: collection + "/" + key}
	var o object
	o.Metadata.Name, o.Metadata.ResourceVersion = key, base
	o.Data = map[string]string{"token": a.token, "fill": strings.Repeat("x", w.rng.IntN(100)*w.rng.IntN(100))}
	kind := w.rng.IntN(20)
	if kind == 0 {
		o.Data["not a key"], a.bad = "", true
	}
	a.verb, a.body = "PUT", o
	switch {
	case absent:
		o.Metadata.ResourceVersion = ""
		a.verb, a.base, a.path, a.body = "POST", "", collection, o
	case kind < 4: // without a version: the server makes it from what it has
		o.Metadata.ResourceVersion = ""
		a.verb, a.base, a.body = "PATCH", "", o
	case kind < 6 && !a.bad:
		a.verb, a.body = "DELETE", map[string]any{"preconditions": map[string]string{"resourceVersion": base}}
	}
	return a
}

// write tries it, notes what came of it, and says whether the server is still there.
func (w *writer) write(ctx context.Context, a attempt) bool {
	var made object
	code, err := w.api.call(ctx, a.verb, a.path, a.token, a.body, &made)
	switch {
	case err != nil:
		w.ledger.leaveOpen(a.write)
		return false
	case code < 300:
		if a.verb != "DELETE" {
			a.version, _ = strconv.ParseInt(made.Metadata.ResourceVersion, 10, 64)
		}
		if a.bad {
			a.token += " (which is invalid)" // the check will not find it
		}
		w.ledger.acknowledge(a.write)
	case code < 500:
		w.ledger.refuse(a.write)
	default:
		w.ledger.leaveOpen(a.write)
	}
	return true
}

// load runs the writers until the context ends or the server does.
func load(ctx context.Context, l *ledger, url string, round int, r *rand.Rand) (wait func()) {
	var all sync.WaitGroup
	a := newAPI(url)
	for i := range writers {
		w := &writer{api: a, ledger: l, rng: rand.New(rand.NewPCG(r.Uint64(), 0)), name: fmt.Sprintf("r%d-w%d", round, i)}
		all.Go(func() { w.run(ctx) })
	}
	return func() { all.Wait(); a.client.CloseIdleConnections() }
}

// look reads everything that a restarted server has, each version as a whole.
func look(ctx context.Context, l *ledger, url string) (found, error) {
	a := newAPI(url)
	defer a.client.CloseIdleConnections()
	f := found{histories: map[string][]version{}, live: map[string]version{}}
	var list struct {
		object
		Items []object `json:"items"`
	}
	if code, err := a.call(ctx, "GET", collection, "", nil, &list); code != 200 || err != nil {
		return f, fmt.Errorf("list: %d, %w", code, err)
	}
	f.current = number(list.Metadata.ResourceVersion)
	names := map[string]bool{}
	for _, o := range list.Items {
		f.live[o.Metadata.Name] = version{number: number(o.Metadata.ResourceVersion), token: o.Data["token"]}
		names[o.Metadata.Name] = true
	}
	for i := range keys {
		names[fmt.Sprintf("key-%d", i)] = true
	}
	for name := range names {
		history, err := a.history(ctx, l, name)
		if err != nil {
			return f, err
		}
		if len(history) > 0 {
			f.histories[name] = history
		}
	}
	return f, nil
}

// history reads the versions of a key, oldest first. The token is the write id, and
// of what was not seen before it has to be in the data as well.
func (a *api) history(ctx context.Context, l *ledger, name string) ([]version, error) {
	var list struct {
		Items []struct {
			ResourceVersion string `json:"resourceVersion"`
			WriteID         string `json:"writeID"`
			Deleted         bool   `json:"deleted"`
		} `json:"items"`
	}
	path := collection + "/" + name + "/history"
	code, err := a.call(ctx, "GET", path, "", nil, &list)
	if code == 404 {
		return nil, nil
	}
	if code != 200 || err != nil {
		return nil, fmt.Errorf("history of %s: %d, %w", name, code, err)
	}
	history := make([]version, len(list.Items))
	for i, item := range list.Items {
		v := version{number: number(item.ResourceVersion), token: item.WriteID, deleted: item.Deleted}
		what, known := l.seen[v.number]
		switch {
		case known && !strings.HasPrefix(name, "key-"): // cmctl has write ids of its own
			_, v.token, _ = strings.Cut(what, " ")
		case !known && !v.deleted:
			var o object
			if code, err := a.call(ctx, "GET", path+"?resourceVersion="+item.ResourceVersion, "", nil, &o); code != 200 || err != nil {
				return nil, fmt.Errorf("%s at %d: %d, %w", name, v.number, code, err)
			}
			if !strings.HasPrefix(name, "key-") {
				v.token = o.Data["token"]
			} else if o.Data["token"] != v.token {
				return nil, fmt.Errorf("%s at %d was written as %s and holds %s", name, v.number, v.token, o.Data["token"])
			}
		}
		history[len(history)-1-i] = v
	}
	return history, nil
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // 0 fits nowhere
	return n
}

// large is an object of so many bytes, which can't be compressed much and follow
// from its name.
func large(name string, size int) object {
	var o object
	o.Metadata.Name = name
	var seed [32]byte
	copy(seed[:], name)
	text := make([]byte, size*3/4)
	_, _ = rand.NewChaCha8(seed).Read(text) // it has no error to tell
	o.Data = map[string]string{"token": name, "fill": base64.StdEncoding.EncodeToString(text)}
	return o
}

func expect(t *testing.T, a *api, code int, method, path string, body any) {
	t.Helper()
	if got, err := a.call(t.Context(), method, path, "", body, nil); got != code {
		t.Errorf("%s %s: got %d, %v, want %d", method, path, got, err, code)
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in a minute it did not come to this: %s", what)
		}
	}
}
