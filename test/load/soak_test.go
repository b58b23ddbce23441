package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// Long work of every kind leaves nothing behind: no goroutine, no connection, no
// memory. The history is given up as it would be in a day, only sooner.
func TestSoak(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const phases = 5
	length := sized(4*time.Second, 50*time.Second)
	s := soakServer(t)
	defer s.close(t)

	var settled uint64
	for phase := range phases {
		s.work(t, length)
		heap, goroutines := s.rest(t)
		t.Logf("phase %d: %d requests so far, at version %d, %d objects; %.1f MiB of heap, %d goroutines",
			phase+1, s.requests.Load(), s.store.State().Current, s.count(t), float64(heap)/(1<<20), goroutines)
		if phase == 0 {
			continue // caches fill
		}
		if phase == 1 {
			settled = heap
		}
		if allowed := settled + settled/4 + 8<<20; heap > allowed {
			t.Errorf("after phase %d the heap is %d bytes; after the second it was %d", phase+1, heap, settled)
		}
	}
}

// objects is among how many names the workers choose.
const objects = 200

// soaked is a server in this process, on a real disk.
type soaked struct {
	store    *local.Store
	api      *server.Server
	http     *httptest.Server
	client   *http.Client
	requests atomic.Int64
}

func soakServer(t *testing.T) *soaked {
	t.Helper()
	st, err := local.Open(local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := &soaked{store: st, api: server.New(server.Options{Store: st})}
	if err := s.api.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.http = httptest.NewServer(s.api.Handler())
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return s
}

func (s *soaked) close(t *testing.T) {
	s.client.CloseIdleConnections()
	s.api.Stop()
	s.http.Close()
	if err := s.store.Close(); err != nil {
		t.Error(err)
	}
}

// work keeps workers of all kinds busy for so long.
func (s *soaked) work(t *testing.T, length time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var all sync.WaitGroup
	for worker := range 16 {
		do := s.one
		if worker < 4 {
			do = s.watch
		}
		all.Go(func() {
			for ctx.Err() == nil {
				if err := do(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Go(func() {
		for every := time.Tick(200 * time.Millisecond); ctx.Err() == nil; {
			select {
			case <-every:
				if err := s.store.Compact(ctx, max(s.store.State().Current-1000, s.store.State().Compacted)); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			case <-ctx.Done():
			}
		}
	})
	all.Wait()
}

// one makes a request by chance. Refusals that others' work explains are fine.
func (s *soaked) one(ctx context.Context) error {
	name := fmt.Sprintf("object-%d", rand.IntN(objects))
	path := collection + "/" + name
	data := fmt.Sprintf(`"data":{"content":%q}`, text(rand.New(rand.NewPCG(rand.Uint64(), 0)), rand.IntN(8<<10)))
	switch rand.IntN(10) {
	case 0, 1:
		return s.send(ctx, "POST", collection, "", fmt.Sprintf(`{"metadata":{"name":%q},%s}`, name, data), 201, 409)
	case 2, 3:
		version := s.version(ctx, path)
		return s.send(ctx, "PUT", path, "", fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":%q},%s}`, name, version, data), 200, 404, 409, 400)
	case 4:
		return s.send(ctx, "PATCH", path, "application/merge-patch+json", "{"+data+"}", 200, 404)
	case 5:
		return s.send(ctx, "PATCH", path+"?fieldManager=soak&force=true", "application/apply-patch+yaml",
			fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},%s}`, name, data), 200, 201)
	case 6:
		return s.send(ctx, "DELETE", path, "", "", 200, 404)
	case 7:
		return s.send(ctx, "GET", collection+"?limit=50", "", "", 200)
	case 8:
		return s.send(ctx, "GET", path, "", "", 200, 404)
	}
	return s.send(ctx, "GET", path+"/history", "", "", 200, 404)
}

// watch follows for a second, or goes before its time.
func (s *soaked) watch(ctx context.Context) error {
	if rand.IntN(2) == 0 {
		early, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		err := s.send(early, "GET", collection+"?watch=1", "", "", 200)
		if early.Err() != nil {
			return nil
		}
		return err
	}
	return s.send(ctx, "GET", fmt.Sprintf("%s?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=%s",
		collection, s.store.State().Current), "", "", 200)
}

// send makes a request, reads its answer to the end, and holds its code against
// those that are right.
func (s *soaked) send(ctx context.Context, method, path, mediaType, body string, right ...int) error {
	s.requests.Add(1)
	req, err := http.NewRequestWithContext(ctx, method, s.http.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	for _, code := range right {
		if resp.StatusCode == code {
			return nil
		}
	}
	return fmt.Errorf("%s %s: %s %s", method, path, resp.Status, answer[:min(len(answer), 500)])
}

// version is that of an object; "1" if it is not there.
func (s *soaked) version(ctx context.Context, path string) string {
	name := path[strings.LastIndex(path, "/")+1:]
	rec, err := s.store.Get(ctx, store.Key("configmaps/default/"+name), 0)
	if err != nil {
		return "1"
	}
	return rec.Revision.String()
}

// count is how many objects there are.
func (s *soaked) count(t *testing.T) int {
	page, err := s.store.List(t.Context(), store.ListOptions{Prefix: "configmaps/"})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Records)
}

// rest measures what is held while nothing happens.
func (s *soaked) rest(t *testing.T) (heap uint64, goroutines int) {
	t.Helper()
	s.client.CloseIdleConnections()
	s.http.CloseClientConnections()
	for range 3 { // finalizers, and what they let go of
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}

// versionIn is the version of the object in a watch event.
func versionIn(line []byte) string {
	var e struct {
		Object metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return errors.Join(err, fmt.Errorf("in %s", bytes.TrimSpace(line))).Error()
	}
	return e.Object.ResourceVersion
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
