package servertest_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"example.com/cmctl/pkg/server"
	"example.com/cmctl/pkg/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"mode": "blue"}}
}

func TestServerIsAWholeOne(t *testing.T) {
	ctx := t.Context()
	clients := kubernetes.NewForConfigOrDie(servertest.Start(t).Config())
	maps := clients.CoreV1().ConfigMaps("team-a")
	made, err := maps.Create(ctx, configMap("flags"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stale := made.DeepCopy()
	made.Data["mode"] = "green"
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update from an old version: %v, want a Conflict", err)
	}
	if _, err := clients.CoreV1().Namespaces().Get(ctx, "team-a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	ctx := t.Context()
	s := servertest.Start(t, servertest.InitialVersion(41), servertest.StrictNamespaces(), servertest.UnconditionalPut(server.PutAlways))
	clients := kubernetes.NewForConfigOrDie(s.Config())
	if _, err := clients.CoreV1().ConfigMaps("team-a").Create(ctx, configMap("flags"), metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("create in a namespace that is not there: %v, want NotFound", err)
	}
	maps := clients.CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, configMap("flags"), metav1.CreateOptions{})
	if err != nil || made.ResourceVersion != "42" {
		t.Fatalf("version %q, %v; want 42, since 41 are the namespaces", made.ResourceVersion, err)
	}
	if _, err := maps.Update(ctx, configMap("flags"), metav1.UpdateOptions{}); err != nil {
		t.Errorf("an unconditional update: %v", err)
	}
}

func TestVersionsDontMatchThoseOfAnotherServer(t *testing.T) {
	version := func() string {
		list, err := kubernetes.NewForConfigOrDie(servertest.Start(t).Config()).CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return list.ResourceVersion
	}
	if a, b := version(), version(); a == b {
		t.Errorf("two servers are both at %s", a)
	}
}

func TestCompactExpiresOlderWatches(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := servertest.Start(t)
	maps := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().ConfigMaps("default")
	first, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if _, err := maps.Create(ctx, configMap(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := <-w.ResultChan()
	if !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("got %s %+v, want an error that the version expired", e.Type, e.Object)
	}
}

// A watch that a test leaves open must not hold up its end.
func TestServerEndsUnderAnOpenWatch(t *testing.T) {
	var open watch.Interface
	t.Run("a test", func(t *testing.T) {
		clients := kubernetes.NewForConfigOrDie(servertest.Start(t).Config())
		var err error
		if open, err = clients.CoreV1().ConfigMaps("").Watch(context.Background(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	for range open.ResultChan() { // its end, after the namespaces' events
	}
}
