package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
)

// held is a server that holds one read or write of flags until it is let go.
type held struct {
	*api
	running chan struct{} // gets one once the request is held
	release func()
	wg      sync.WaitGroup
}

// hold starts a server with other/flags in it, and begins to hold a request. The
// limits are for those that follow.
func hold(t *testing.T, write bool, limits option) *held {
	t.Helper()
	a, h := hook(t, limits)
	a.create()
	a.must(201, "POST", collection, named("other"))
	let := make(chan struct{})
	held := &held{api: a, running: make(chan struct{}, 1), release: sync.OnceFunc(func() { close(let) })}
	var once sync.Once
	wait := func(key store.Key) {
		if strings.HasSuffix(string(key), "/flags") {
			once.Do(func() { held.running <- struct{}{}; <-let })
		}
	}
	h.get = func(ctx context.Context, key store.Key) (store.Record, error) {
		if !write {
			wait(key)
		}
		return h.Store.Get(ctx, key, 0)
	}
	h.commit = func(ctx context.Context, txn store.Txn) (store.Revision, error) {
		wait(txn.Writes[0].Key)
		return h.Store.Commit(ctx, txn)
	}
	t.Cleanup(func() { held.release(); held.wg.Wait() })
	held.wg.Go(func() {
		r := result{}
		if write {
			r = a.patch(flags, "held")
		} else {
			r = a.do("GET", flags, "")
		}
		if r.code != 200 {
			t.Errorf("the one that was held got %d %s", r.code, r.body)
		}
	})
	<-held.running
	return held
}

// patch adds a key.
func (a *api) patch(path, key string) result {
	a.t.Helper()
	return a.do("PATCH", path, fmt.Sprintf(`{"data":{%q:"1"}}`, key), mergePatch...)
}

// Only so many requests of a kind run at once; the rest are told to come back, and
// neither those of the other kind nor probes have to wait for them.
func TestTooManyRequests(t *testing.T) {
	for _, c := range []struct {
		kind             string
		write            bool
		refused, allowed func(a *api) result
	}{
		{"reads", false, func(a *api) result { return a.do("GET", collection, "") }, func(a *api) result { return a.patch(flags, "x") }},
		{"writes", true, func(a *api) result { return a.patch(collection+"/other", "x") }, func(a *api) result { return a.do("GET", flags, "") }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			a := hold(t, c.write, func(o *server.Options) { o.MaxInFlight, o.MaxMutatingInFlight = 1, 1 })
			r := c.refused(a.api)
			isStatus(t, r, 429, "TooManyRequests", "too many "+c.kind)
			if r.header.Get("Retry-After") != "1" || r.status.Details.RetryAfterSeconds != 1 {
				t.Errorf("Retry-After %q, %s", r.header.Get("Retry-After"), r.body)
			}
			if !c.write { // one patch at a time would be refused by itself
				c.allowed = func(a *api) result { return a.do("POST", collection, named("third")) }
			}
			if r := c.allowed(a.api); r.code >= 300 {
				t.Errorf("the other kind got %d %s", r.code, r.body)
			}
			for _, probe := range []string{"/livez", "/readyz/", "/healthz/ping"} {
				a.must(200, "GET", probe, "")
			}
			a.release()
			a.wg.Wait()
			if r := c.refused(a.api); r.code != 200 {
				t.Errorf("afterwards: %d %s", r.code, r.body)
			}
		})
	}
}

// An object that everybody writes to takes at most half of the places.
func TestAHotObjectLeavesRoomForOthers(t *testing.T) {
	a := hold(t, true, func(o *server.Options) { o.MaxMutatingInFlight = 4 })
	answers := make(chan result, 2)
	for range 2 {
		a.wg.Go(func() { answers <- a.patch(flags, "more") })
	}
	// One of the two waits, the other is refused.
	isStatus(t, <-answers, 429, "TooManyRequests", "writes to this object")
	if r := a.patch(collection+"/other", "x"); r.code != 200 {
		t.Errorf("another object: %d %s", r.code, r.body)
	}
	a.release()
	if r := <-answers; r.code != 200 {
		t.Errorf("the one that waited got %d %s", r.code, r.body)
	}
}

// A client that has only closed its sending side is told the truth.
func TestAWaitingWriteOfAHalfClosedClientIsRefused(t *testing.T) {
	a := hold(t, true, func(o *server.Options) { o.MaxMutatingInFlight = 4 })
	body := `{"data":{"late":"1"}}`
	got := rawRequest(t, a.api, fmt.Sprintf("PATCH %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/merge-patch+json\r\nContent-Length: %d\r\n\r\n%s", flags, len(body), body))
	if !strings.HasPrefix(got, "HTTP/1.1 429 ") || !strings.Contains(got, "nothing was stored") {
		t.Errorf("got %q", got)
	}
	a.release()
	a.wg.Wait()
	if got := a.must(200, "GET", flags, "").object.Data; got["late"] != "" {
		t.Errorf("got %v", got)
	}
}
