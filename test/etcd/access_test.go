package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
)

// guarded is a cluster with users: root, and one who may use a prefix alone.
func guarded(t *testing.T) (cluster string) {
	t.Helper()
	cluster = embedded(t)
	c, ctx := others(t, cluster), t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.UserAdd(ctx, "root", "secret"))
	must(c.UserGrantRole(ctx, "root", "root"))
	must(c.RoleAdd(ctx, "cmserver"))
	must(c.RoleGrantPermission(ctx, "cmserver", "/cmserver/", clientv3.GetPrefixRangeEnd("/cmserver/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(c.UserAdd(ctx, "cmserver", "password"))
	must(c.UserGrantRole(ctx, "cmserver", "cmserver"))
	must(c.AuthEnable(ctx))
	return cluster
}

func TestAUserOfThePrefixAloneIsEnough(t *testing.T) {
	o := etcd.Options{Endpoints: []string{guarded(t)}, Username: "cmserver", Password: "password", HistoryLimit: 1, DeletedRetention: -1}
	a, b := open(t, o), open(t, o)
	w, err := b.Watch(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		raise(t, a, n)
	}
	sees(t, w, 1, 3)
	raise(t, b, 4)
	at := a.State().Current
	if err := a.Compact(t.Context(), at); err != nil {
		t.Errorf("compact: %v", err)
	}
	if err := a.(*etcd.Store).Sweep(t.Context()); err != nil {
		t.Errorf("sweep: %v", err)
	}
	led := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		a.(*etcd.Store).Lead(ctx, func(context.Context) { cancel() })
		close(led)
	}()
	<-led
	if err := a.Healthy(); err != nil {
		t.Errorf("the store is %v", err)
	}
	// What it may not do it says.
	if err := a.(*etcd.Store).CompactCluster(t.Context(), at); err == nil || errors.Is(err, store.ErrUnreachable) {
		t.Errorf("compact the cluster: %v, want a refusal", err)
	}
}

func TestWhatIsWrongWithTheAccessIsSaid(t *testing.T) {
	cluster := guarded(t)
	for name, c := range map[string]struct {
		o     etcd.Options
		want  error
		words string
	}{
		"a wrong password":     {etcd.Options{Endpoints: []string{cluster}, Prefix: "/cmserver", Username: "cmserver", Password: "wrong"}, nil, "authentication failed"},
		"no user":              {etcd.Options{Endpoints: []string{cluster}, Prefix: "/cmserver"}, nil, "user name is empty"},
		"another prefix":       {etcd.Options{Endpoints: []string{cluster}, Prefix: "/other", Username: "cmserver", Password: "password"}, nil, "permission denied"},
		"nobody there":         {etcd.Options{Endpoints: []string{"127.0.0.1:1"}, Prefix: "/cmserver"}, store.ErrUnreachable, "127.0.0.1:1"},
		"nobody, with a user":  {etcd.Options{Endpoints: []string{"127.0.0.1:1"}, Prefix: "/cmserver", Username: "u", Password: "p"}, store.ErrUnreachable, "127.0.0.1:1"},
		"a store that must be": {etcd.Options{Endpoints: []string{cluster}, Prefix: "/cmserver", Username: "cmserver", Password: "password", MustExist: true}, store.ErrNoStore, "/cmserver"},
	} {
		c.o.Timeout = time.Second
		st, err := etcd.Open(t.Context(), c.o)
		if err == nil {
			_ = st.Close()
			t.Errorf("%s: it is opened", name)
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) || c.want == nil && errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One of all cleans up, and another once that one is gone.
func TestOneLeads(t *testing.T) {
	a, b, _ := pair(t)
	leads, done := make(chan string), make(chan struct{})
	lead := func(ctx context.Context, name string, st store.Store) {
		st.(*etcd.Store).Lead(ctx, func(ctx context.Context) {
			leads <- name
			<-ctx.Done()
		})
		done <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go lead(ctx, "a", a)
	if first := <-leads; first != "a" {
		t.Fatalf("%s leads", first)
	}
	go lead(t.Context(), "b", b)
	cancel()
	<-done
	if second := <-leads; second != "b" {
		t.Fatalf("once a has ended %s leads", second)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
}
