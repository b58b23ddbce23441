package clients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func init() { ctrl.SetLogger(logr.Discard()) } // it complains if nobody sets one

// The client picks protobuf for ConfigMaps by itself, in both directions.
func TestControllerRuntimeClient(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var formats formatLog
	cfg := s.config()
	cfg.Wrap(formats.wrap)
	c, err := client.NewWithWatch(cfg, client.Options{})
	must(t, err)
	ctx := t.Context()

	t.Run("CreateOrUpdate writes only what differs", func(t *testing.T) {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "flags", Namespace: "shop"}}
		for _, step := range []struct {
			mode string
			want controllerutil.OperationResult
		}{
			{"blue", controllerutil.OperationResultCreated},
			{"blue", controllerutil.OperationResultNone},
			{"green", controllerutil.OperationResultUpdated},
		} {
			got, err := controllerutil.CreateOrUpdate(ctx, c, o, func() error {
				o.Data = map[string]string{"mode": step.mode}
				o.BinaryData = map[string][]byte{"raw": {0, 1, 255}}
				return nil
			})
			must(t, err)
			if got != step.want {
				t.Errorf("to %s: %s, want %s", step.mode, got, step.want)
			}
		}
		got := &corev1.ConfigMap{}
		must(t, c.Get(ctx, client.ObjectKeyFromObject(o), got))
		if !equality.Semantic.DeepEqual(got, o) {
			t.Errorf("read %+v\nwant %+v", got, o)
		}
	})

	t.Run("a patch with an optimistic lock is refused when it is late", func(t *testing.T) {
		base := inShop("locked", "a", "1")
		must(t, c.Create(ctx, base))
		first, late := base.DeepCopy(), base.DeepCopy()
		first.Data["a"], late.Data["a"] = "2", "3"
		lock := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
		must(t, c.Patch(ctx, first, lock))
		if err := c.Patch(ctx, late.DeepCopy(), lock); !apierrors.IsConflict(err) {
			t.Errorf("the late patch: %v", err)
		}
		must(t, c.Patch(ctx, late, client.MergeFrom(base)))
		must(t, c.Patch(ctx, late, client.StrategicMergeFrom(base)))
		if late.Data["a"] != "3" {
			t.Errorf("a is %q after the patch without a lock", late.Data["a"])
		}
	})

	t.Run("applies, and is told of another manager's fields", func(t *testing.T) {
		mode := func(m string) *coreapply.ConfigMapApplyConfiguration {
			return coreapply.ConfigMap("applied", "shop").WithData(map[string]string{"mode": m})
		}
		must(t, c.Apply(ctx, mode("blue"), client.FieldOwner("a")))
		if err := c.Apply(ctx, mode("green"), client.FieldOwner("b")); !apierrors.IsConflict(err) {
			t.Errorf("another manager's apply: %v", err)
		}
		must(t, c.Apply(ctx, mode("green"), client.FieldOwner("b"), client.ForceOwnership))
		got := &corev1.ConfigMap{}
		must(t, c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "applied"}, got))
		if got.Data["mode"] != "green" {
			t.Errorf("mode is %q", got.Data["mode"])
		}
	})

	t.Run("lists, watches and deletes by selector", func(t *testing.T) {
		w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("shop"), client.MatchingLabels{"batch": "x"})
		must(t, err)
		defer w.Stop()
		for _, name := range []string{"x1", "x2"} {
			o := inShop(name, "a", "1")
			o.Labels = map[string]string{"batch": "x"}
			must(t, c.Create(ctx, o))
			if e := nextEvent(t, w); e.Type != watch.Added || e.Object.(*corev1.ConfigMap).ResourceVersion != o.ResourceVersion {
				t.Errorf("the watch showed %s %v, want ADDED %v", e.Type, e.Object, o)
			}
		}
		list := &corev1.ConfigMapList{}
		must(t, c.List(ctx, list, client.MatchingLabels{"batch": "x"}))
		if len(list.Items) != 2 {
			t.Errorf("%d objects by label, want 2", len(list.Items))
		}
		must(t, c.List(ctx, list, client.InNamespace("shop"), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", "x2")}))
		if len(list.Items) != 1 {
			t.Errorf("%d objects by name, want 1", len(list.Items))
		}
		only := &metav1.PartialObjectMetadataList{}
		only.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		must(t, c.List(ctx, only, client.MatchingLabels{"batch": "x"}))
		if len(only.Items) != 2 {
			t.Errorf("%d objects' metadata, want 2", len(only.Items))
		}
		must(t, c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("shop"), client.MatchingLabels{"batch": "x"}))
		err = c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "x1"}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("read after the deletion: %v", err)
		}
	})

	formats.mustBeProtobuf(t)
}

func inShop(name, key, value string) *corev1.ConfigMap {
	o := configMap(name, map[string]string{key: value})
	o.Namespace = "shop"
	return o
}

const protobuf = "application/vnd.kubernetes.protobuf"

// formatLog notes the media types of answers to who prefers protobuf. (Apply
// asks for JSON.)
type formatLog struct {
	mu    sync.Mutex
	types map[string]int // guarded by mu
}

func (l *formatLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil && strings.HasPrefix(r.Header.Get("Accept"), protobuf) {
			mediaType, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.types == nil {
				l.types = map[string]int{}
			}
			l.types[mediaType]++
		}
		return answer, err
	})
}

func (l *formatLog) mustBeProtobuf(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.types) != 1 || l.types[protobuf] == 0 {
		t.Errorf("answers were in %v, want all in %s", l.types, protobuf)
	}
}

// shouter keeps, for each ConfigMap labelled shout=yes, one of its own with the
// same data in capitals.
type shouter struct{ client client.Client }

func (s shouter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	source := &corev1.ConfigMap{}
	if err := s.client.Get(ctx, r.NamespacedName, source); err != nil || source.Labels["shout"] != "yes" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	loud := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name + "-loud"}}
	_, err := controllerutil.CreateOrUpdate(ctx, s.client, loud, func() error {
		loud.Data = capitals(source.Data)
		return controllerutil.SetControllerReference(source, loud, scheme.Scheme)
	})
	return ctrl.Result{}, err
}

func capitals(data map[string]string) map[string]string {
	loud := map[string]string{}
	for k, v := range data {
		loud[k] = strings.ToUpper(v)
	}
	return loud
}

// A controller under a manager, as a project's main function sets it up: it
// follows its sources, repairs what others break, and goes on when the server is
// killed and comes back.
func TestControllerRuntimeManager(t *testing.T) {
	t.Parallel()
	dir := "--data-dir=" + t.TempDir()
	s := startServer(t, dir)
	runManager(t, s)
	c, err := client.New(s.config(), client.Options{})
	must(t, err)
	ctx := t.Context()
	loudIs := func(name string, data map[string]string) {
		t.Helper()
		eventually(t, name+"-loud follows", func() error {
			loud := &corev1.ConfigMap{}
			err := c.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name + "-loud"}, loud)
			if err == nil && !maps.Equal(loud.Data, capitals(data)) {
				err = fmt.Errorf("its data is %v", loud.Data)
			}
			return err
		})
	}

	source := inShop("source", "word", "hello")
	source.Labels = map[string]string{"shout": "yes"}
	must(t, c.Create(ctx, source))
	loudIs("source", source.Data)

	source.Data["word"] = "bye"
	must(t, c.Update(ctx, source))
	loudIs("source", source.Data)

	broken := inShop("source-loud", "word", "broken")
	must(t, c.Get(ctx, client.ObjectKeyFromObject(broken), broken))
	broken.Data["word"] = "broken"
	must(t, c.Update(ctx, broken))
	loudIs("source", source.Data)
	must(t, c.Delete(ctx, broken))
	loudIs("source", source.Data)

	s.restart(dir)
	source.Data["word"] = "again"
	must(t, c.Update(ctx, source))
	loudIs("source", source.Data)
	another := inShop("another", "word", "too")
	another.Labels = source.Labels
	must(t, c.Create(ctx, another))
	loudIs("another", another.Data)
}

// runManager runs a shouter until the test ends.
func runManager(t *testing.T, s *server) {
	t.Helper()
	mgr, err := ctrl.NewManager(s.config(), ctrl.Options{
		Metrics: metrics.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}}},
		// The test may run more than once in a process.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	must(t, err)
	must(t, ctrl.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Owns(&corev1.ConfigMap{}).
		Complete(shouter{mgr.GetClient()}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1) // one send: how the manager ended
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the manager ended: %v", err)
		}
	})
}
