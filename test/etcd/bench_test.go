package etcd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
	"example.com/cmctl/test/etcd/internal/procs"
)

// BenchmarkOnACluster measures what a write and a read take on three members of etcd of
// go.mod, each next to what it can't be faster than, in turns. It reports operations in a
// second, and ratios of the medians:
//
//	go test -run '^$' -bench OnACluster -benchtime 1x ./...
func BenchmarkOnACluster(b *testing.B) {
	cluster := procs.StartEtcd(b, procs.Etcd(b), 3)
	bare := cluster.Client()
	st, err := etcd.Open(b.Context(), etcd.Options{Endpoints: cluster.Endpoints(), Prefix: "/store"})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	var servers []*procs.Server
	for range 3 {
		s := procs.NewServer(b, cluster.Endpoints(), "/cmserver")
		s.Start()
		s.Await()
		servers = append(servers, s)
	}
	content := strings.Repeat("x", 1000)
	for _, clients := range []int{1, 32, 128} {
		writes := []way{
			{"etcd", ownTransactions(bare, content)},
			{"store", commits(st, content)},
			{"1server", puts(servers[:1], content)},
			{"3servers", puts(servers, content)},
		}
		reads := []way{{"etcd", ownReads(bare)}, {"1server", gets(servers[:1])}, {"3servers", gets(servers)}}
		b.Run(fmt.Sprintf("write/clients=%d", clients), func(b *testing.B) { inTurns(b, clients, writes) })
		b.Run(fmt.Sprintf("read/clients=%d", clients), func(b *testing.B) { inTurns(b, clients, reads) })
	}
}

// way is one way of doing the same. do is called by a client again and again.
type way struct {
	name string
	do   func(ctx context.Context, client int) error
}

const (
	turns = 3
	turn  = 2 * time.Second
)

// inTurns measures all ways, one after the other, several times.
func inTurns(b *testing.B, clients int, ways []way) {
	for b.Loop() {
		rates := make([][]float64, len(ways))
		for range turns {
			for i, w := range ways {
				rates[i] = append(rates[i], rate(b, clients, w))
			}
		}
		base := median(rates[0])
		for i, w := range ways {
			b.ReportMetric(median(rates[i]), w.name+"/s")
			if i > 0 {
				b.ReportMetric(median(rates[i])/base, w.name+":"+ways[0].name)
			}
		}
		b.ReportMetric(0, "ns/op")
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// rate is how often it is done in a second.
func rate(b *testing.B, clients int, w way) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), turn)
	defer cancel()
	var done, failed atomic.Int64
	var working sync.WaitGroup
	began := time.Now()
	for c := range clients {
		working.Go(func() {
			for ctx.Err() == nil {
				if err := w.do(ctx, c); err == nil {
					done.Add(1)
				} else if ctx.Err() == nil && failed.Add(1) == 1 {
					b.Logf("%s: %v", w.name, err)
				}
			}
		})
	}
	working.Wait()
	if failed.Load() > done.Load()/100 { // an election, where etcd shares its disk
		b.Errorf("%s: %d of %d failed", w.name, failed.Load(), done.Load())
	}
	return float64(done.Load()) / time.Since(began).Seconds()
}

// ownTransactions are those that a store could not do without: compare one key, and write
// the object, and its version beside it.
func ownTransactions(client *clientv3.Client, content string) func(context.Context, int) error {
	var last [256]int64
	return func(ctx context.Context, c int) error {
		key := fmt.Sprintf("/own/o/%03d", c)
		r, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", last[c])).
			Then(clientv3.OpPut(key, content), clientv3.OpPut(fmt.Sprintf("/own/h/%03d/%d", c, last[c]), content)).
			Else(clientv3.OpGet(key, clientv3.WithKeysOnly())).Commit()
		switch {
		case err != nil:
			return err
		case r.Succeeded:
			last[c] = r.Header.Revision
		default: // an answer was lost when a turn ended
			last[c] = r.Responses[0].GetResponseRange().Kvs[0].ModRevision
		}
		return nil
	}
}

func ownReads(client *clientv3.Client) func(context.Context, int) error {
	return func(ctx context.Context, c int) error {
		_, err := client.Get(ctx, fmt.Sprintf("/own/o/%03d", c))
		return err
	}
}

func commits(st store.Store, content string) func(context.Context, int) error {
	var last [256]store.Revision
	return func(ctx context.Context, c int) error {
		rec := store.Record{Key: store.Key(fmt.Sprintf("configmaps/bench/%03d", c)), Value: []byte(content)}
		if last[c] == 0 {
			if found, err := st.Get(ctx, rec.Key, 0); err == nil {
				last[c] = found.Revision
			}
		}
		rev, err := st.Commit(ctx, store.Txn{Guards: []store.Guard{{Key: rec.Key, Revision: last[c]}}, Writes: []store.Record{rec}})
		last[c] = rev // 0 after an error
		return err
	}
}

// crowd keeps a connection for each client.
var crowd = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxIdleConns: 1024}}

func send(ctx context.Context, method, url, body string) (code int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := crowd.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer got.Body.Close() // it is read to its end
	answer, err = io.ReadAll(got.Body)
	return got.StatusCode, answer, err
}

const collection = "/api/v1/namespaces/bench/configmaps"

func puts(servers []*procs.Server, content string) func(context.Context, int) error {
	var last [256]string
	return func(ctx context.Context, c int) error {
		url := servers[c%len(servers)].URL + collection
		name := fmt.Sprintf("object-%03d", c)
		body := fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":%q},"data":{"content":%q,"at":%q}}`, name, last[c], content, time.Now())
		method, path, want := http.MethodPut, url+"/"+name, http.StatusOK
		if last[c] == "" {
			method, path, want = http.MethodPost, url, http.StatusCreated
		}
		code, answer, err := send(ctx, method, path, body)
		if code == http.StatusConflict { // made in an earlier turn
			code, answer, err = send(ctx, http.MethodGet, url+"/"+name, "")
			want = http.StatusOK
		}
		if err != nil {
			return err
		}
		if code != want {
			return fmt.Errorf("%s answers %d: %.200s", path, code, answer)
		}
		last[c] = versionOf(answer)
		return nil
	}
}

func versionOf(object []byte) string {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.NewDecoder(bytes.NewReader(object)).Decode(&o) // without one the next write is refused
	return o.Metadata.ResourceVersion
}

func gets(servers []*procs.Server) func(context.Context, int) error {
	return func(ctx context.Context, c int) error {
		code, answer, err := send(ctx, http.MethodGet, fmt.Sprintf("%s%s/object-%03d", servers[c%len(servers)].URL, collection, c), "")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("a read answers %d: %.200s", code, answer)
		}
		return err
	}
}
