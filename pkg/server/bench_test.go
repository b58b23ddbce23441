package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
	"example.com/cmctl/pkg/types"
)

// pool lets a benchmark keep as many connections as it has clients.
func (a *api) pool(clients int) {
	a.client.Transport.(*http.Transport).MaxIdleConnsPerHost = clients
}

// fetch is do without looking at the answer.
func (a *api) fetch(method, path, body string, want int) {
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Error(err)
		return
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != want {
		a.t.Errorf("got %d, %v", resp.StatusCode, err)
	}
}

func BenchmarkGet(b *testing.B) {
	for _, clients := range []int{1, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			a := start(b)
			a.pool(clients)
			a.must(201, "POST", collection, flagsBody("", fmt.Sprintf(`{"k":%q}`, strings.Repeat("x", 1024))))
			spread(b, clients, func(int) { a.fetch("GET", flags, "", 200) })
		})
	}
}

func BenchmarkList1000(b *testing.B) {
	a := start(b)
	for i := range 1000 {
		a.must(201, "POST", collection, fmt.Sprintf(`{"metadata":{"name":"n%d"},"data":{"k":%q}}`, i, strings.Repeat("x", 1024)))
	}
	b.ResetTimer()
	for b.Loop() {
		a.fetch("GET", collection, "", 200)
	}
}

// BenchmarkListLong are lists of 200 objects of 200 KiB, on disk, in the forms that
// leave out what the objects hold; cpu-ms is the CPU time of one, client included.
func BenchmarkListLong(b *testing.B) {
	a := start(b, over(func(store.Store) store.Store { return onDisk(b) }))
	const n = 200
	value := strings.Repeat("all work and no play\\n", 10_000)
	for i := range n {
		a.must(201, "POST", collection, fmt.Sprintf(`{"metadata":{"name":"n%d","labels":{"app":"x"}},"data":{"k":"%s","l":""}}`, i, value), "Content-Type", types.MediaJSON)
	}
	for _, c := range []struct{ name, accept, query string }{
		{"rows", acceptTable, "?includeObject=None"},
		{"rows-with-metadata", acceptTable, ""},
		{"metadata", acceptPartialList, ""},
		{"metadata-protobuf", strings.Replace(acceptPartialList, "json", "vnd.kubernetes.protobuf", 1), ""},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			began := cpuTime(b)
			for b.Loop() {
				a.must(200, "GET", collection+c.query, "", "Accept", c.accept)
			}
			b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms")
		})
	}
}

// onDisk is a store in a directory, in the place of one in memory.
func onDisk(b *testing.B) store.Store {
	s, err := local.Open(local.Options{Dir: b.TempDir(), InitialVersion: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkPut has each client write its own object, always from the version
// that it got before.
func BenchmarkPut(b *testing.B) {
	for _, clients := range []int{1, 32, 128} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			a := start(b)
			a.pool(clients)
			versions := make([]string, clients)
			for i := range versions {
				versions[i] = a.must(201, "POST", collection, fmt.Sprintf(`{"metadata":{"name":"n%d"}}`, i)).version()
			}
			var n atomic.Int64
			value := strings.Repeat("x", 1024)
			spread(b, clients, func(i int) {
				r := a.do("PUT", fmt.Sprintf("%s/n%d", collection, i), fmt.Sprintf(
					`{"metadata":{"name":"n%d","resourceVersion":%q},"data":{"k":"%s%d"}}`, i, versions[i], value, n.Add(1)),
					"Content-Type", types.MediaJSON)
				if r.code != 200 {
					b.Errorf("got %d: %s", r.code, r.body)
				}
				versions[i] = r.version()
			})
		})
	}
}

// spread runs b.N calls over so many clients.
func spread(b *testing.B, clients int, call func(client int)) {
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				call(i)
			}
		})
	}
	wg.Wait()
}
