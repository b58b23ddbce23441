package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// One change from its commit until the last watcher has written it out, without
// the network.
func BenchmarkWatchDelivery(b *testing.B) {
	for _, watchers := range []int{1, 100, 1000} {
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			b.Run(fmt.Sprintf("watchers=%d/%s", watchers, accept), func(b *testing.B) { benchmarkDelivery(b, watchers, accept) })
		}
	}
}

func benchmarkDelivery(b *testing.B, watchers int, accept string) {
	st, err := local.Open(local.Options{InMemory: true, InitialVersion: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	s := server.New(server.Options{Store: st})
	commit := func() {
		if _, err := st.Commit(context.Background(), store.Txn{Writes: []store.Record{stored("a", "v")}}); err != nil {
			b.Fatal(err)
		}
	}
	commit()
	var began, arrived, running sync.WaitGroup
	began.Add(watchers)
	for range watchers {
		w := &sink{header: http.Header{}, began: began.Done, arrived: &arrived}
		request := httptest.NewRequest("GET", collection+"?watch=1&resourceVersion=1", nil)
		request.Header.Set("Accept", accept)
		running.Go(func() { s.Handler().ServeHTTP(w, request) })
	}
	began.Wait()
	b.ReportAllocs()
	for b.Loop() {
		arrived.Add(watchers)
		commit()
		arrived.Wait()
	}
	s.EndWatches()
	running.Wait()
}

// sink counts what a watcher gets: the head, then an event a write.
type sink struct {
	header  http.Header
	began   func()
	arrived *sync.WaitGroup
}

func (w *sink) Header() http.Header { return w.header }
func (w *sink) WriteHeader(int)     { w.began() }
func (w *sink) Flush()              {}

func (w *sink) Write(b []byte) (int, error) {
	w.arrived.Done()
	return len(b), nil
}
