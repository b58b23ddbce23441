package load

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/cmctl/pkg/types"
)

// slowMemory is how much so many slow clients can make the server hold, in MiB: what
// docs/limits.md says of bodies and connections, and as much again that is free and not
// collected yet.
func slowMemory(clients int) int { return 2 * (64 + clients*(4+24)>>10 + 16) }

// trickle begins writes of 3 MiB, sends some of each and then hardly anything, until
// ctx ends. What is refused is begun again. The beginnings are counted.
func trickle(ctx context.Context, address string, begun *atomic.Int64) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		begun.Add(1)
		fmt.Fprintf(conn, "PUT %s/flags HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			collection, 3<<20, strings.Repeat(" ", 40<<10))
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			_, _ = conn.Read(make([]byte, 1)) // whatever it is
		}()
		every := time.NewTicker(200 * time.Millisecond)
		for sending := true; sending; {
			select {
			case <-refused:
				sending = false
			case <-every.C:
				_, _ = io.WriteString(conn, " ")
			}
		}
		every.Stop()
		stop()
		conn.Close()
		select { // as a client that is told to come back in a second
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Clients without number that send large bodies, and take their time, cost the server
// no more memory than it says, and don't keep others from being served.
func TestSlowClients(t *testing.T) {
	clients := sized(2000, 8000)
	p := run(t, t.TempDir(), "--max-connections", "20000")
	before := p.memory(t)
	ctx, stop := context.WithCancel(t.Context())
	var begun atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() { trickle(ctx, strings.TrimPrefix(p.url, "http://"), &begun) })
	}
	defer all.Wait()
	defer stop()
	for begun.Load() < int64(clients) {
		time.Sleep(10 * time.Millisecond)
	}
	object := &types.ConfigMap{Data: map[string]string{"content": "small"}}
	object.Name = "honest"
	made, err := p.send(ctx, "POST", collection, object)
	if err != nil {
		t.Fatal("a create:", err)
	}
	high := 0
	for n, until := 0, time.Now().Add(sized(8*time.Second, 30*time.Second)); time.Now().Before(until); n++ {
		made.Data["content"] = fmt.Sprint(n)
		if made, err = p.send(ctx, "PUT", collection+"/honest", made); err != nil {
			t.Fatal("an update:", err)
		}
		probe(t, p, "/readyz")
		high = max(high, p.memory(t))
	}
	large := &types.ConfigMap{Data: map[string]string{"content": strings.Repeat("x", 200<<10)}}
	large.Name = "large"
	for attempt := 1; ; attempt++ {
		if _, err = p.send(ctx, "POST", collection, large); err == nil {
			t.Logf("a large body came through at attempt %d", attempt)
			break
		}
		if attempt == 10 {
			t.Fatal("a large body:", err)
		}
		time.Sleep(time.Second) // as its answer says
	}
	t.Logf("%d slow clients began %d times; %d MiB before, %d MiB at most", clients, begun.Load(), before, high)
	if high > before+slowMemory(clients) {
		t.Errorf("%d MiB were held, %d before; that is more than %d besides", high, before, slowMemory(clients))
	}
}

// probe demands that the server answers as healthy.
func probe(t *testing.T, p *process, path string) {
	t.Helper()
	resp, err := p.client.Get(p.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
}
