package clients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"
)

const namespace = "default"

// The options that most calls need: none.
var (
	created = metav1.CreateOptions{}
	updated = metav1.UpdateOptions{}
	patched = metav1.PatchOptions{}
	deleted = metav1.DeleteOptions{}
	read    = metav1.GetOptions{}
)

func clientset(t testing.TB, c *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	must(t, err)
	return client
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func TestClientGoTypedClient(t *testing.T) {
	t.Parallel()
	configMaps := clientset(t, startServer(t).config()).CoreV1().ConfigMaps(namespace)
	ctx := t.Context()

	t.Run("writes on the version that it read, and on no older one", func(t *testing.T) {
		first, err := configMaps.Create(ctx, configMap("flags", map[string]string{"mode": "blue"}), created)
		must(t, err)
		if first.UID == "" || first.ResourceVersion == "" || first.Namespace != namespace || first.CreationTimestamp.IsZero() {
			t.Errorf("created without what the server sets: %+v", first.ObjectMeta)
		}
		if _, err := configMaps.Create(ctx, configMap("flags", nil), created); !apierrors.IsAlreadyExists(err) {
			t.Errorf("creating it again: %v", err)
		}
		change := first.DeepCopy()
		change.Data["mode"] = "green"
		second, err := configMaps.Update(ctx, change, updated)
		must(t, err)
		if second.ResourceVersion == first.ResourceVersion || second.UID != first.UID {
			t.Errorf("the update kept version %s, or made uid %s of %s", second.ResourceVersion, second.UID, first.UID)
		}
		stale := first.DeepCopy()
		stale.Data["mode"] = "red"
		if _, err := configMaps.Update(ctx, stale, updated); !apierrors.IsConflict(err) {
			t.Errorf("a stale update: %v", err)
		}
		again, err := configMaps.Update(ctx, second, updated)
		must(t, err)
		if again.ResourceVersion != second.ResourceVersion {
			t.Errorf("an update that changes nothing made version %s of %s", again.ResourceVersion, second.ResourceVersion)
		}
		got, err := configMaps.Get(ctx, "flags", read)
		must(t, err)
		if !equality.Semantic.DeepEqual(got, second) {
			t.Errorf("read %+v\nwant %+v", got, second)
		}
	})

	t.Run("patches", func(t *testing.T) {
		_, err := configMaps.Create(ctx, configMap("patched", map[string]string{"a": "1", "b": "2"}), created)
		must(t, err)
		for _, p := range []struct {
			kind types.PatchType
			body string
			want map[string]string
		}{
			{types.StrategicMergePatchType, `{"data":{"a":"strategic"}}`, map[string]string{"a": "strategic", "b": "2"}},
			{types.MergePatchType, `{"data":{"b":null}}`, map[string]string{"a": "strategic"}},
			{types.JSONPatchType, `[{"op":"replace","path":"/data/a","value":"json"}]`, map[string]string{"a": "json"}},
		} {
			got, err := configMaps.Patch(ctx, "patched", p.kind, []byte(p.body), patched)
			if err != nil {
				t.Errorf("%s: %v", p.kind, err)
			} else if !equality.Semantic.DeepEqual(got.Data, p.want) {
				t.Errorf("%s: data is %v, want %v", p.kind, got.Data, p.want)
			}
		}
	})

	t.Run("applies configurations as their managers", func(t *testing.T) {
		mode := func(m string) *coreapply.ConfigMapApplyConfiguration {
			return coreapply.ConfigMap("applied", namespace).WithData(map[string]string{"mode": m})
		}
		_, err := configMaps.Apply(ctx, mode("blue"), metav1.ApplyOptions{FieldManager: "a"})
		must(t, err)
		_, err = configMaps.Apply(ctx, mode("green"), metav1.ApplyOptions{FieldManager: "b"})
		if !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
			t.Errorf("another manager's apply: %v", err)
		}
		got, err := configMaps.Apply(ctx, mode("green"), metav1.ApplyOptions{FieldManager: "b", Force: true})
		must(t, err)
		extracted, err := coreapply.ExtractConfigMap(got, "b")
		must(t, err)
		if extracted.Data["mode"] != "green" {
			t.Errorf("b owns %v, want mode=green", extracted.Data)
		}
		if extracted, err = coreapply.ExtractConfigMap(got, "a"); err != nil || len(extracted.Data) != 0 {
			t.Errorf("a owns %v (%v), want nothing", extracted.Data, err)
		}
	})

	t.Run("watches what a selector lets through", func(t *testing.T) {
		labelled := configMap("watched", nil)
		labelled.Labels = map[string]string{"w": "1"}
		list, err := configMaps.List(ctx, metav1.ListOptions{LabelSelector: "w=1"})
		must(t, err)
		w, err := configMaps.Watch(ctx, metav1.ListOptions{LabelSelector: "w=1", ResourceVersion: list.ResourceVersion})
		must(t, err)
		defer w.Stop()
		_, err = configMaps.Create(ctx, labelled, created)
		must(t, err)
		for _, patch := range []string{`{"data":{"a":"1"}}`, `{"metadata":{"labels":{"w":"2"}}}`, `{"metadata":{"labels":{"w":"1"}}}`} {
			_, err := configMaps.Patch(ctx, "watched", types.MergePatchType, []byte(patch), patched)
			must(t, err)
		}
		must(t, configMaps.Delete(ctx, "watched", deleted))
		for i, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Added, watch.Deleted} {
			if got := nextEvent(t, w); got.Type != want {
				t.Fatalf("event %d is %s, want %s", i, got.Type, want)
			}
		}
	})

	t.Run("deletes under a precondition, and collections", func(t *testing.T) {
		one, err := configMaps.Create(ctx, configMap("doomed", nil), created)
		must(t, err)
		other := types.UID("00000000-0000-4000-8000-000000000000")
		err = configMaps.Delete(ctx, "doomed", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
		if !apierrors.IsConflict(err) {
			t.Errorf("deleting another uid: %v", err)
		}
		must(t, configMaps.Delete(ctx, "doomed", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &one.UID}}))
		if err := configMaps.Delete(ctx, "doomed", deleted); !apierrors.IsNotFound(err) {
			t.Errorf("deleting it again: %v", err)
		}
		must(t, configMaps.DeleteCollection(ctx, deleted, metav1.ListOptions{}))
		list, err := configMaps.List(ctx, metav1.ListOptions{})
		must(t, err)
		if len(list.Items) != 0 {
			t.Errorf("%d objects are left of the collection", len(list.Items))
		}
	})
}

// Ten writers count to a hundred in one object; each reads again when it was
// too late.
func TestClientGoRetryOnConflict(t *testing.T) {
	t.Parallel()
	const writers, rounds = 10, 10
	configMaps := clientset(t, startServer(t).config()).CoreV1().ConfigMaps(namespace)
	_, err := configMaps.Create(t.Context(), configMap("counter", map[string]string{"n": "0"}), created)
	must(t, err)
	patient := wait.Backoff{Steps: 1000, Duration: time.Millisecond, Jitter: 2}
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range rounds {
				err := retry.RetryOnConflict(patient, func() error {
					c, err := configMaps.Get(t.Context(), "counter", read)
					if err != nil {
						return err
					}
					n, err := strconv.Atoi(c.Data["n"])
					if err != nil {
						return err
					}
					c.Data["n"] = strconv.Itoa(n + 1)
					_, err = configMaps.Update(t.Context(), c, updated)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	c, err := configMaps.Get(t.Context(), "counter", read)
	must(t, err)
	if want := strconv.Itoa(writers * rounds); c.Data["n"] != want {
		t.Errorf("counted to %s, want %s", c.Data["n"], want)
	}
}

// A list in pages shows one state, whatever is written between them.
func TestClientGoPager(t *testing.T) {
	t.Parallel()
	const objects = 1200
	configMaps := clientset(t, startServer(t).config()).CoreV1().ConfigMaps(namespace)
	createMany(t, configMaps, objects)
	pages := 0
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		pages++
		list, err := configMaps.List(ctx, o)
		if err != nil || pages > 1 {
			return list, err
		}
		if left := list.RemainingItemCount; left == nil || *left != objects-pager.New(nil).PageSize {
			t.Errorf("after the first page %v objects remain", left)
		}
		last := fmt.Sprintf("m-%04d", objects-1)
		_, err = configMaps.Create(ctx, configMap("m-9999", nil), created)
		return list, errors.Join(err, configMaps.Delete(ctx, last, deleted))
	})
	p.PageBufferSize = 0 // pages are read one after the other
	seen := 0
	err := p.EachListItem(t.Context(), metav1.ListOptions{}, func(o runtime.Object) error {
		if name := o.(*corev1.ConfigMap).Name; name != fmt.Sprintf("m-%04d", seen) {
			return fmt.Errorf("object %d is %s", seen, name)
		}
		seen++
		return nil
	})
	must(t, err)
	if seen != objects || pages != 3 {
		t.Errorf("%d objects in %d pages, want %d in 3", seen, pages, objects)
	}
}

// createMany makes m-0000, m-0001 and so on.
func createMany(t *testing.T, configMaps typedcore.ConfigMapInterface, n int) {
	t.Helper()
	const writers = 16
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := w; i < n; i += writers {
				if _, err := configMaps.Create(t.Context(), configMap(fmt.Sprintf("m-%04d", i), nil), created); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func TestClientGoDynamicClient(t *testing.T) {
	t.Parallel()
	client, err := dynamic.NewForConfig(startServer(t).config())
	must(t, err)
	configMaps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	ctx := t.Context()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "flags"},
		"data":     map[string]any{"mode": "blue"},
	}}
	one, err := configMaps.Create(ctx, o, created)
	must(t, err)
	w, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: one.GetResourceVersion()})
	must(t, err)
	defer w.Stop()

	must(t, unstructured.SetNestedField(one.Object, "green", "data", "mode"))
	two, err := configMaps.Update(ctx, one, updated)
	must(t, err)
	if e := nextEvent(t, w); e.Type != watch.Modified || !equality.Semantic.DeepEqual(e.Object, two) {
		t.Errorf("the watch showed %s %v, want MODIFIED %v", e.Type, e.Object, two)
	}
	if _, err := configMaps.Update(ctx, one, updated); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v", err)
	}
	o.SetManagedFields(nil)
	if _, err := configMaps.Apply(ctx, "flags", o, metav1.ApplyOptions{FieldManager: "dynamic", Force: true}); err != nil {
		t.Errorf("apply: %v", err)
	}
	list, err := configMaps.List(ctx, metav1.ListOptions{})
	must(t, err)
	if mode, _, _ := unstructured.NestedString(list.Items[0].Object, "data", "mode"); len(list.Items) != 1 || mode != "blue" {
		t.Errorf("the list is %v", list.Items)
	}
	if list.Items[0].GetKind() != "ConfigMap" {
		t.Errorf("an item of the list is of kind %q", list.Items[0].GetKind())
	}
	must(t, configMaps.Delete(ctx, "flags", deleted))
	if _, err := configMaps.Get(ctx, "flags", read); !apierrors.IsNotFound(err) {
		t.Errorf("read after the deletion: %v", err)
	}
}

// The metadata client asks for PartialObjectMetadata and sees no data.
func TestClientGoMetadataClient(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client, err := metadata.NewForConfig(s.config())
	must(t, err)
	configMaps := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	typed := clientset(t, s.config()).CoreV1().ConfigMaps(namespace)
	ctx := t.Context()
	full := configMap("flags", map[string]string{"mode": "blue"})
	full.Labels = map[string]string{"tier": "front"}
	full, err = typed.Create(ctx, full, created)
	must(t, err)

	got, err := configMaps.Get(ctx, "flags", read)
	must(t, err)
	if !equality.Semantic.DeepEqual(got.ObjectMeta, full.ObjectMeta) {
		t.Errorf("read %+v\nwant %+v", got.ObjectMeta, full.ObjectMeta)
	}
	list, err := configMaps.List(ctx, metav1.ListOptions{LabelSelector: "tier=front"})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].UID != full.UID {
		t.Errorf("listed %+v", list.Items)
	}
	w, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	defer w.Stop()
	if got, err = configMaps.Patch(ctx, "flags", types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"back"}}}`), patched); err != nil {
		t.Fatal(err)
	}
	e := nextEvent(t, w)
	seen, ok := e.Object.(*metav1.PartialObjectMetadata)
	if !ok || e.Type != watch.Modified || seen.ResourceVersion != got.ResourceVersion || seen.Labels["tier"] != "back" {
		t.Errorf("the watch showed %s %+v", e.Type, e.Object)
	}
	must(t, configMaps.Delete(ctx, "flags", deleted))
}

// A watch from before the server's history ends with the one event that sends
// clients back to a list.
func TestClientGoIsToldThatHistoryIsGone(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--in-memory", "--initial-version=1000000")
	configMaps := clientset(t, s.config()).CoreV1().ConfigMaps(namespace)
	w, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "17"})
	must(t, err)
	defer w.Stop()
	e := nextEvent(t, w)
	if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("the watch began with %s: %v", e.Type, err)
	}
}

// A watch that resumes where it was shows every change once and in order, however
// often the server is killed in between.
func TestClientGoRetryWatcherOverRestarts(t *testing.T) {
	t.Parallel()
	const restarts, writes = 3, 10
	dir := "--data-dir=" + t.TempDir()
	s := startServer(t, dir)
	configMaps := clientset(t, s.config()).CoreV1().ConfigMaps(namespace)
	c, err := configMaps.Create(t.Context(), configMap("flags", nil), created)
	must(t, err)
	w, err := toolswatch.NewRetryWatcherWithContext(t.Context(), c.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return configMaps.Watch(ctx, o)
		},
	})
	must(t, err)
	defer w.Stop()
	var written, seen []string
	for restart := range restarts {
		for write := range writes {
			c.Data = map[string]string{"n": fmt.Sprint(restart, write)}
			c, err = configMaps.Update(t.Context(), c, updated)
			must(t, err)
			written = append(written, c.ResourceVersion)
		}
		seen = append(seen, nextEvent(t, w).Object.(*corev1.ConfigMap).ResourceVersion) // the watch is under way
		s.restart(dir)
	}
	for len(seen) < len(written) {
		e := nextEvent(t, w)
		if e.Type != watch.Modified {
			t.Fatalf("after %d events: %s %v", len(seen), e.Type, e.Object)
		}
		seen = append(seen, e.Object.(*corev1.ConfigMap).ResourceVersion)
	}
	if !slices.Equal(seen, written) {
		t.Errorf("seen    %v\nwritten %v", seen, written)
	}
}

// observer is a shared informer with the state that its handlers were told.
type observer struct {
	lister   cache.SharedIndexInformer
	requests *requestLog

	mu    sync.Mutex
	state map[string]string // guarded by mu; name -> data["n"]
	odd   []string          // guarded by mu; notifications that did not fit the state
}

// observe starts an informer on all namespaces, set up as client-go has it.
func observe(t *testing.T, s *server) *observer {
	t.Helper()
	o := &observer{requests: &requestLog{}, state: map[string]string{}}
	c := s.config()
	c.Wrap(o.requests.wrap)
	factory := informers.NewSharedInformerFactory(clientset(t, c), 0)
	o.lister = factory.Core().V1().ConfigMaps().Informer()
	_, err := o.lister.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(x any) { o.saw("add", x, false) },
		UpdateFunc: func(_, x any) { o.saw("update", x, true) },
		DeleteFunc: func(x any) { o.saw("delete", x, true) },
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	if !cache.WaitForCacheSync(ctx.Done(), o.lister.HasSynced) {
		t.Fatal("the informer never synced")
	}
	return o
}

func (o *observer) saw(what string, x any, known bool) {
	if gone, ok := x.(cache.DeletedFinalStateUnknown); ok {
		x = gone.Obj
	}
	c := x.(*corev1.ConfigMap)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.state[c.Name]; ok != known {
		o.odd = append(o.odd, what+" "+c.Name)
	}
	if what == "delete" {
		delete(o.state, c.Name)
		return
	}
	o.state[c.Name] = c.Data["n"]
}

// agrees waits until the informer's cache and its handlers have the server's state.
func (o *observer) agrees(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	eventually(t, "the informer agrees with the server", func() error {
		list, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		want := map[string]string{}
		for _, c := range list.Items {
			want[c.Name] = c.Data["n"]
		}
		cached := map[string]string{}
		for _, x := range o.lister.GetStore().List() {
			c := x.(*corev1.ConfigMap)
			cached[c.Name] = c.Data["n"]
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if !maps.Equal(cached, want) || !maps.Equal(o.state, want) {
			return fmt.Errorf("the server has %v, the cache %v, the handlers %v", want, cached, o.state)
		}
		return nil
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.odd) > 0 {
		t.Errorf("notifications of what was known, or not: %v", o.odd)
	}
}

// requestLog notes the queries that a client sends.
type requestLog struct {
	mu      sync.Mutex
	queries []map[string][]string // guarded by mu
}

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		l.mu.Lock()
		l.queries = append(l.queries, r.URL.Query())
		l.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// count is how many requests had the parameter with the value.
func (l *requestLog) count(parameter, value string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, q := range l.queries {
		if v := q[parameter]; len(v) > 0 && v[0] == value {
			n++
		}
	}
	return n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// change writes, changes and deletes objects, some of them there before.
func change(t *testing.T, client kubernetes.Interface, round int) {
	t.Helper()
	ctx := t.Context()
	n := map[string]string{"n": strconv.Itoa(round)}
	for _, ns := range []string{"a", "b"} {
		configMaps := client.CoreV1().ConfigMaps(ns)
		for _, name := range []string{"stays", "goes", fmt.Sprintf("new-%d", round)} {
			name = ns + "-" + name
			_, err := configMaps.Create(ctx, configMap(name, n), created)
			if apierrors.IsAlreadyExists(err) {
				_, err = configMaps.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"data":{"n":"%d"}}`, round), patched)
			}
			must(t, err)
		}
		if round%2 == 1 {
			must(t, configMaps.Delete(ctx, ns+"-goes", deleted))
		}
	}
}

// The informer asks for its first state as a stream, and stays right when the
// server is killed and comes back: it goes on where it was.
func TestClientGoInformerOverRestarts(t *testing.T) {
	t.Parallel()
	dir := "--data-dir=" + t.TempDir()
	s := startServer(t, dir)
	client := clientset(t, s.config())
	change(t, client, 0)
	o := observe(t, s)
	o.agrees(t, client)
	if n := o.requests.count("sendInitialEvents", "true"); n == 0 {
		t.Errorf("the informer did not ask for the first state as a stream: %v", o.requests.queries)
	}
	for round := 1; round <= 2; round++ {
		change(t, client, 10*round)
		s.restart(dir)
		change(t, client, 10*round+1)
		o.agrees(t, client)
	}
}

// A server that kept nothing can't go on where the informer was. The informer
// starts anew, and tells its handlers what is gone.
func TestClientGoInformerOverLostHistory(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--in-memory", "--initial-version=1")
	client := clientset(t, s.config())
	change(t, client, 0)
	o := observe(t, s)
	o.agrees(t, client)
	before := o.requests.count("sendInitialEvents", "true")

	s.restart("--in-memory", "--initial-version=1000000")
	_, err := client.CoreV1().ConfigMaps("a").Create(t.Context(), configMap("a-stays", map[string]string{"n": "anew"}), created)
	must(t, err)
	o.agrees(t, client)
	if after := o.requests.count("sendInitialEvents", "true"); after == before {
		t.Error("the informer did not ask for the state anew")
	}
	change(t, client, 2)
	o.agrees(t, client)
}

// A lister with a selector sees only what it asks for.
func TestClientGoInformerWithSelector(t *testing.T) {
	t.Parallel()
	client := clientset(t, startServer(t).config())
	configMaps := client.CoreV1().ConfigMaps(namespace)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "tier=front" }))
	lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace)
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.WaitForCacheSync(ctx.Done())
	sees := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d objects in the lister", want), func() error {
			list, err := lister.List(labels.Everything())
			if err == nil && len(list) != want {
				err = fmt.Errorf("%d objects", len(list))
			}
			return err
		})
	}
	for _, tier := range []string{"front", "back"} {
		c := configMap(tier, nil)
		c.Labels = map[string]string{"tier": tier}
		_, err := configMaps.Create(ctx, c, created)
		must(t, err)
	}
	sees(1)
	_, err := configMaps.Patch(ctx, "back", types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"front"}}}`), patched)
	must(t, err)
	sees(2)
	_, err = configMaps.Patch(ctx, "front", types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":null}}}`), patched)
	must(t, err)
	sees(1)
}
