package load

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"example.com/cmctl/pkg/types"
)

// Each of many watches gets each change, in order, and writes don't wait for them.
func TestManyWatchers(t *testing.T) {
	watchers, writes := sized(1000, 10_000), sized(20, 50)
	p := run(t, t.TempDir())
	cm, err := p.send(t.Context(), "POST", collection, &types.ConfigMap{Data: map[string]string{"content": "first"}, ObjectMeta: named("watched")})
	if err != nil {
		t.Fatal(err)
	}
	before := p.memory(t)

	ctx, cancel := context.WithCancel(t.Context())
	crowd := &crowd{arrived: make(chan string, watchers)}
	began := time.Now()
	crowd.watch(ctx, t, p.url+collection+"?watch=1&resourceVersion="+cm.ResourceVersion, watchers)
	t.Logf("%d watches open after %v; the server holds %d MiB, %d before", watchers, time.Since(began).Round(time.Millisecond), p.memory(t), before)

	var put, last []time.Duration
	for n := range writes {
		cm.Data["content"] = fmt.Sprint(n)
		began := time.Now()
		if cm, err = p.send(ctx, "PUT", collection+"/watched", cm); err != nil {
			t.Fatal(err)
		}
		put = append(put, time.Since(began))
		for range watchers {
			if version := <-crowd.arrived; version != cm.ResourceVersion {
				t.Fatalf("a watch got %q, want version %s", version, cm.ResourceVersion)
			}
		}
		last = append(last, time.Since(began))
	}
	t.Logf("%d changes: a PUT takes %v, and after %v all %d watches have it (medians)", writes, median(put), median(last), watchers)
	cancel()
	crowd.all.Wait()
	if _, err := p.send(t.Context(), "GET", collection+"/watched", nil); err != nil {
		t.Error(err)
	}
}

// crowd is many watches.
type crowd struct {
	all     sync.WaitGroup
	arrived chan string // the version of each event that a watch gets; or what is wrong
}

// watch opens so many, and returns when all are open. They end with ctx.
func (c *crowd) watch(ctx context.Context, t *testing.T, url string, n int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10}}
	open := make(chan error, n)
	atOnce := make(chan struct{}, 64) // what a listener's backlog takes
	for range n {
		c.all.Go(func() {
			atOnce <- struct{}{}
			req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
			if err != nil {
				open <- err
				return
			}
			resp, err := client.Do(req)
			<-atOnce
			if err == nil && resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("watch: %s", resp.Status)
			}
			open <- err
			if err != nil {
				return
			}
			defer resp.Body.Close()
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				c.arrived <- versionIn(lines.Bytes())
			}
		})
	}
	for range n {
		if err := <-open; err != nil {
			t.Fatal(err)
		}
	}
}
