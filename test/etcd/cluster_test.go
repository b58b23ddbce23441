package etcd_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/test/etcd/internal/procs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	procs.Clean()
	os.Exit(code)
}

// world is three members of etcd, three cmservers on them, and clients of these.
type world struct {
	t       *testing.T
	cluster *procs.Cluster
	servers []*procs.Server
	proxies []*procs.Proxy // between the last server and etcd
	prefix  string
}

func newWorld(t *testing.T, program string, args ...string) *world {
	t.Helper()
	w := &world{t: t, prefix: "/cmserver", cluster: procs.StartEtcd(t, program, 3, args...)}
	for i := range 3 {
		endpoints := w.cluster.Endpoints()
		if i == 2 {
			for j, endpoint := range endpoints {
				w.proxies = append(w.proxies, procs.NewProxy(t, endpoint))
				endpoints[j] = w.proxies[j].Address
			}
		}
		s := procs.NewServer(t, endpoints, w.prefix, "--etcd-timeout=2s")
		s.Start()
		w.servers = append(w.servers, s)
	}
	w.await()
	return w
}

// await waits until all servers take writes.
func (w *world) await() {
	w.t.Helper()
	for _, s := range w.servers {
		s.Await()
	}
}

// version is the newest version that a server tells of, by a list of nothing.
func (w *world) version(s *procs.Server) int64 {
	w.t.Helper()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	code, body := w.get(s, "/api/v1/namespaces/nobody/configmaps")
	if code != http.StatusOK {
		w.t.Fatalf("a list answers %d: %s", code, body)
	}
	if err := json.Unmarshal(body, &list); err != nil {
		w.t.Fatal(err)
	}
	n, err := strconv.ParseInt(list.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// get is one request, that is bounded in any case.
func (w *world) get(s *procs.Server, path string) (code int, body []byte) {
	patient := http.Client{Timeout: 20 * time.Second}
	r, err := patient.Get(s.URL + path)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer r.Body.Close() // it is read below
	body, err = io.ReadAll(r.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return r.StatusCode, body
}

// create makes one object, and returns its version.
func (w *world) create(s *procs.Server, name string) int64 {
	w.t.Helper()
	patient := http.Client{Timeout: 20 * time.Second}
	r, err := patient.Post(s.URL+"/api/v1/namespaces/single/configmaps", "application/json", strings.NewReader(fmt.Sprintf(`{"metadata":{"name":%q}}`, name)))
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close() // it is read below
	var made struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(r.Body).Decode(&made); err != nil || r.StatusCode != http.StatusCreated {
		w.t.Fatalf("create %s: %d, %v", name, r.StatusCode, err)
	}
	n, err := strconv.ParseInt(made.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// calm is the time between two faults, in which clients come to something.
const calm = 700 * time.Millisecond

// fault is one thing that goes wrong, and is mended.
type fault struct {
	name string
	does func(w *world)
}

var faults = []fault{
	{"a member of etcd is killed and comes back", func(w *world) {
		m := w.other(w.cluster.Leader())
		m.Kill()
		time.Sleep(calm)
		m.Start()
	}},
	{"the leader of etcd is killed and comes back", func(w *world) {
		m := w.cluster.Leader()
		m.Kill()
		time.Sleep(2 * calm)
		m.Start()
	}},
	{"a cmserver is killed and comes back", func(w *world) {
		w.servers[0].Kill()
		time.Sleep(calm)
		w.servers[0].Start()
	}},
	{"a member of etcd stands still", func(w *world) {
		m := w.other(w.cluster.Leader())
		m.Pause()
		time.Sleep(4 * calm)
		m.Resume()
	}},
	{"the leader of etcd stands still", func(w *world) {
		m := w.cluster.Leader()
		m.Pause()
		time.Sleep(4 * calm)
		m.Resume()
	}},
	{"a cmserver stands still", func(w *world) {
		w.servers[1].Pause()
		time.Sleep(3 * calm)
		w.servers[1].Resume()
	}},
	{"etcd changes its leader", func(w *world) {
		leader := w.cluster.Leader()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		client := w.cluster.Client(leader.Endpoint)
		status, err := client.Status(ctx, w.other(leader).Endpoint)
		if err == nil {
			_, err = client.MoveLeader(ctx, status.Header.MemberId)
		}
		if err != nil {
			w.t.Logf("NOT TRIED: the leader could not be moved: %v", err)
		}
	}},
	{"somebody compacts etcd", func(w *world) { w.compact(w.cluster.Client()) }},
	{"a cmserver is cut off from etcd", func(w *world) {
		for _, p := range w.proxies {
			p.Cut()
		}
		w.unready(w.servers[2])
		for _, p := range w.proxies {
			p.Mend()
		}
	}},
	{"etcd loses its majority", func(w *world) {
		leader := w.cluster.Leader()
		gone := []*procs.Member{leader, w.other(leader)}
		for _, m := range gone {
			m.Kill()
		}
		for _, s := range w.servers {
			w.unready(s)
		}
		for _, m := range gone {
			m.Start()
		}
	}},
}

// other is a member that is not this one.
func (w *world) other(than *procs.Member) *procs.Member {
	for _, m := range w.cluster.Members {
		if m != than {
			return m
		}
	}
	panic("there is one member alone")
}

// compact gives up all that etcd has of the past, but for the last moment: those who watch
// live have to be spared.
func (w *world) compact(client *clientv3.Client) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	now, err := client.Get(ctx, "nothing")
	if err == nil {
		time.Sleep(calm)
		_, err = client.Compact(ctx, now.Header.Revision)
	}
	if err != nil {
		w.t.Errorf("compact: %v", err)
	}
}

// unready demands that a server without etcd says so, and answers nothing that may be old,
// in bounded time.
func (w *world) unready(s *procs.Server) {
	w.t.Helper()
	procs.Eventually(w.t, s.URL+" is not ready", 15*time.Second, func() bool { return !s.Ready() })
	began := time.Now()
	code, body := w.get(s, "/api/v1/namespaces/single/configmaps")
	if code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout {
		w.t.Errorf("without etcd a list answers %d: %.200s", code, body)
	}
	var status struct{ Kind, Reason string }
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" || status.Reason == "" {
		w.t.Errorf("without etcd the answer is %.200s", body)
	}
	if took := time.Since(began); took > 15*time.Second {
		w.t.Errorf("the answer took %s", took)
	}
}

// What clients are told stays true, whatever fails behind the servers.
func TestFaults(t *testing.T) {
	for _, kind := range kinds(t) {
		t.Run(kind.name, func(t *testing.T) {
			w := newWorld(t, kind.program)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := w.create(w.servers[0], "first")
			var followers []*follower
			for i := range 6 {
				followers = append(followers, follow(ctx, w.servers, i%3, start))
			}
			l := newLoad(t, w.servers)
			l.begin()
			for _, f := range faults {
				t.Logf("%s", f.name)
				time.Sleep(calm)
				f.does(w)
				w.await()
			}
			time.Sleep(calm)
			l.end()
			w.await()
			last := w.create(w.servers[1], "last")
			l.check()
			agree(t, followers, last)
		})
	}
}

// What one server has acknowledged is in what any other one answers from then on.
func TestWhatOneServerAcknowledgesAllHave(t *testing.T) {
	for _, kind := range kinds(t) {
		t.Run(kind.name, func(t *testing.T) {
			w := newWorld(t, kind.program)
			l := newLoad(t, w.servers)
			var working sync.WaitGroup
			for who := range 4 {
				working.Go(func() { l.passRound(who, rounds()) })
			}
			working.Wait()
		})
	}
}

// rounds is how often something is tried that is to hold each time. More of them are for
// runs by hand.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("CMSERVER_ETCD_ROUNDS")); err == nil {
		return n
	}
	return 300
}

// A cluster without room refuses writes as that, and takes them again once it has.
func TestAFullCluster(t *testing.T) {
	for _, kind := range kinds(t) {
		t.Run(kind.name, func(t *testing.T) {
			w := newWorld(t, kind.program, "--quota-backend-bytes=8388608")
			first := w.servers[0]
			if code := w.post(first, "large", 100_000); code != http.StatusCreated {
				t.Fatalf("a write answers %d", code)
			}
			w.fill()
			if code := w.post(first, "one-too-many", 100_000); code != http.StatusInsufficientStorage {
				t.Fatalf("a cluster that is full answers %d", code)
			}
			for _, s := range w.servers {
				procs.Eventually(t, s.URL+" is not ready", time.Minute, func() bool { return !s.Ready() })
				if code, _ := w.get(s, "/api/v1/namespaces/single/configmaps/large"); code != http.StatusOK {
					t.Errorf("a read answers %d", code)
				}
			}
			w.relieve()
			w.await()
			if code := w.post(first, "after", 10); code != http.StatusCreated {
				t.Errorf("afterwards a write answers %d", code)
			}
		})
	}
}

// junk is what somebody else has on the cluster.
const junk = "/junk/"

// fill writes until there is no room.
func (w *world) fill() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := w.cluster.Client()
	for i := range 1000 {
		_, err := client.Put(ctx, fmt.Sprint(junk, i), strings.Repeat("junk", 25_000))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("etcd takes any amount")
}

// relieve deletes what fill has written, and then does what docs/operations.md says:
// compact, defragment, disarm.
func (w *world) relieve() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := w.cluster.Client()
	deleted, err := client.Delete(ctx, junk, clientv3.WithPrefix())
	if err == nil {
		_, err = client.Compact(ctx, deleted.Header.Revision, clientv3.WithCompactPhysical())
	}
	for _, endpoint := range w.cluster.Endpoints() {
		if err == nil {
			_, err = client.Defragment(ctx, endpoint)
		}
	}
	if err == nil {
		_, err = client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// post makes an object of a size that can't be compressed, and returns the code of the
// answer.
func (w *world) post(s *procs.Server, name string, size int) int {
	w.t.Helper()
	noise := make([]byte, size)
	_, _ = rand.Read(noise) // which never fails
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}, "binaryData": map[string]any{"noise": noise}})
	if err != nil {
		w.t.Fatal(err)
	}
	patient := http.Client{Timeout: 20 * time.Second}
	r, err := patient.Post(s.URL+"/api/v1/namespaces/single/configmaps", "application/json", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close() // it is not read
	return r.StatusCode
}

// kind is a release of etcd.
type kind struct{ name, program string }

func kinds(t *testing.T) []kind {
	t.Helper()
	old, err := procs.Etcd34()
	if err != nil {
		t.Fatalf("Debian's etcd-server is missing: %v", err)
	}
	return []kind{{"Debian's etcd", old}, {"etcd of go.mod", procs.Etcd(t)}}
}
