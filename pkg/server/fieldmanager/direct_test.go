package fieldmanager

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"

	"example.com/cmctl/pkg/types"
)

// script decides what happens in a random history: each choice takes a byte.
type script struct{ data []byte }

// pick gives a number below n; 0 once the script is over.
func (s *script) pick(n int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % n
}

func (s *script) over() bool { return len(s.data) == 0 }

// one of the choices.
func one[V any](s *script, choices ...V) V { return choices[s.pick(len(choices))] }

// key is a map key: some that are alike, and some that JSON must escape.
func (s *script) key() string {
	return one(s, "a", "b", "c", "aa", "k1", "k2", "k3", ".", "", "ü", `q"\`, "<&>", "\u2028", "f:x")
}

// edit changes one thing in a ConfigMap.
func (s *script) edit(cm *corev1.ConfigMap) {
	switch s.pick(12) {
	case 0, 1, 2:
		put(&cm.Data, s.key(), one(s, "", "1", "2"))
	case 3:
		delete(cm.Data, s.key())
	case 4:
		put(&cm.BinaryData, s.key(), one(s, []byte{}, []byte{1}, []byte{2}, []byte{3}, []byte{4}, []byte{5}, []byte{6}, nil))
	case 5:
		delete(cm.BinaryData, s.key())
	case 6:
		cm.Immutable = one(s, nil, new(bool), new(true))
	case 7:
		put(&cm.Labels, s.key(), one(s, "", "1", "2"))
	case 8:
		if s.pick(2) == 0 {
			cm.Labels = nil
		} else {
			put(&cm.Annotations, s.key(), one(s, "", "1"))
		}
	case 9:
		s.editFinalizers(cm)
	case 10:
		s.editOwners(cm)
	case 11:
		cm.GenerateName = one(s, "", "x-", "y-")
	}
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

func (s *script) editFinalizers(cm *corev1.ConfigMap) {
	switch name := one(s, "a.b/c", "d", "é"); s.pick(4) {
	case 0:
		cm.Finalizers = append(cm.Finalizers, name) // perhaps a second time
	case 1, 2:
		cm.Finalizers = slices.DeleteFunc(slices.Clone(cm.Finalizers), func(f string) bool { return f == name })
	case 3:
		slices.Reverse(cm.Finalizers)
	}
}

func (s *script) editOwners(cm *corev1.ConfigMap) {
	uid := apitypes.UID(one(s, "1", "2", `"`))
	i := slices.IndexFunc(cm.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
	switch {
	case i < 0:
		cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{UID: uid, Name: one(s, "n", "m")})
	case s.pick(2) == 0:
		cm.OwnerReferences = slices.Delete(cm.OwnerReferences, i, i+1)
	default:
		cm.OwnerReferences[i].Controller = one(s, nil, new(bool), new(true))
	}
}

// configuration is something to apply.
func (s *script) configuration() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	for range s.pick(4) {
		field := one(s, []string{"data"}, []string{"metadata", "labels"}, []string{"metadata", "annotations"})
		_ = unstructured.SetNestedField(u.Object, one(s, "", "1", "2"), append(slices.Clone(field), s.key())...)
	}
	if s.pick(4) == 0 {
		u.SetFinalizers([]string{one(s, "a.b/c", "d")})
	}
	return u
}

// sentEntries are the managedFields that a client sends with an update.
func (s *script) sentEntries(live types.Object) []metav1.ManagedFieldsEntry {
	switch s.pick(12) {
	case 0, 1, 2, 3:
		return stamped(live.GetManagedFields())
	case 4:
		entries := stamped(live.GetManagedFields())
		if len(entries) > 0 {
			i := s.pick(len(entries))
			entries = slices.Delete(entries, i, i+1)
		}
		return entries
	case 5:
		raw := one(s, `{"f:data":{"f:a":{}}}`, `{}`, `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"1\"}":{"f:name":{}}}}}`,
			`{"f:data":{"f:b":{},"f:a":{}}}`, `{"f:spec":{}}`, `{"f:metadata":{".":{}}}`, `[]`, `{"f:data":{".":{},"f:c":{}}}`, `{"x:y":{},"f:data":{}}`)
		e := metav1.ManagedFieldsEntry{
			Manager: s.manager(), Operation: one(s, metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate, "X"),
			APIVersion: one(s, "v1", "v1", "v1", "v2", ""), FieldsType: one(s, "FieldsV1", "FieldsV1", "FieldsV1", ""),
			FieldsV1: &metav1.FieldsV1{}, Subresource: one(s, "", "", "status"),
		}
		e.FieldsV1.SetRawString(raw)
		return append(stamped(live.GetManagedFields()), e)
	}
	return nil
}

// stamped is a copy of entries.
func stamped(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var all []metav1.ManagedFieldsEntry
	for _, e := range entries {
		all = append(all, *e.DeepCopy())
	}
	return all
}

func (s *script) manager() string {
	return fmt.Sprint(one(s, "m", `<"`, "é"), s.pick(5))
}

// compareWays makes a random history of updates and applies, each update both
// ways, and says how many updates went the direct one.
func compareWays(t *testing.T, m *Manager, data []byte) (direct, all int) {
	s := &script{data}
	var live types.Object
	for i := 0; !s.over() && i < 200; i++ {
		now := start.Add(time.Duration(i) * time.Second)
		if s.pick(4) == 0 {
			if next, err := m.Apply(live, s.configuration(), s.manager(), s.pick(2) == 0, now); err == nil {
				next.SetName("a")
				next.SetUID("u")
				live = reread(t, next)
			}
			continue
		}
		next, before := types.ConfigMaps.New(), live
		if live == nil {
			before = types.ConfigMaps.New()
		} else {
			next = reread(t, live)
			next.SetManagedFields(s.sentEntries(live))
		}
		for range s.pick(4) {
			s.edit(next.(*corev1.ConfigMap))
		}
		manager := s.manager()
		full := next.DeepCopyObject().(types.Object)
		m.updateFully(before, full, manager, now)
		all++
		if m.updateDirectly(before, next, manager, now) {
			direct++
			if got, want := entriesJSON(t, next), entriesJSON(t, full); got != want {
				t.Errorf("write %d, by %s: the entries are\n%s\nand by apimachinery\n%s\nbefore: %s\nafter: %s", i, manager, got, want, text(t, before), text(t, next))
				return direct, all
			}
		}
		full.SetName("a")
		full.SetUID("u")
		live = reread(t, full)
	}
	return direct, all
}

func entriesJSON(t *testing.T, o types.Object) string { return text(t, o.GetManagedFields()) }

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// reread is the object as it comes from the store.
func reread(t *testing.T, o types.Object) types.Object {
	t.Helper()
	e, err := types.ConfigMaps.Encode(o)
	if err != nil {
		t.Fatal(err)
	}
	back, err := e.Decode("1")
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestTheDirectWayGivesApimachinerysEntries(t *testing.T) {
	for name, cacheSize := range map[string]int64{"with a cache": ownedCacheSize, "with a cache that is always full": 4000} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, types.ConfigMaps)
			m.owned = newOwnedCache(cacheSize)
			direct, all := 0, 0
			for seed := range uint64(20) {
				d, a := compareWays(t, m, random(seed, 300))
				direct, all = direct+d, all+a
				if t.Failed() {
					t.Fatalf("the history is that of seed %d", seed)
				}
			}
			if direct < all/3 {
				t.Errorf("only %d of %d updates went the direct way", direct, all)
			}
		})
	}
}

// random are n bytes that follow from the seed.
func random(seed uint64, n int) []byte {
	data := make([]byte, n)
	source := rand.New(rand.NewPCG(seed, 0))
	for i := range data {
		data[i] = byte(source.UintN(256))
	}
	return data
}

func TestManyWritersShareOneManager(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	m.owned = newOwnedCache(4000)
	var writers sync.WaitGroup
	for seed := range uint64(4) {
		writers.Go(func() { compareWays(t, m, random(seed, 100)) })
	}
	writers.Wait()
}

func TestTheCacheStaysWithinItsSize(t *testing.T) {
	c := newOwnedCache(100_000)
	for i := range 1000 {
		fields := &metav1.FieldsV1{}
		fields.SetRawString(fmt.Sprintf(`{"f:data":{"f:%d":{}}}`, i))
		if got := c.get(fields); got == nil || !got.plain || got.fields.GetRawString() != fields.GetRawString() {
			t.Fatalf("%s is decoded as %+v", fields.GetRawString(), got)
		}
	}
	kept := int64(0)
	for _, generation := range []map[string]*owned{c.young, c.old} {
		for _, o := range generation {
			kept += o.cost()
		}
	}
	if kept > 100_000 || kept < 50_000 {
		t.Errorf("it keeps %d bytes", kept)
	}
}

func FuzzFastPathEqualsApimachinery(f *testing.F) {
	m := newManager(f, types.ConfigMaps)
	f.Add([]byte("0"))
	f.Add([]byte("a few updates and applies by several managers"))
	f.Fuzz(func(t *testing.T, data []byte) { compareWays(t, m, data) })
}

func TestUsualUpdatesGoTheDirectWay(t *testing.T) {
	m := newManager(t, types.ConfigMaps)
	live := object(t, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
	m.Update(nil, live, "m1", start)
	live.SetUID("u")
	live = reread(t, live)
	edits := map[string]func(*corev1.ConfigMap){
		"a value":          func(cm *corev1.ConfigMap) { cm.Data["k"] = "w" },
		"no managedFields": func(cm *corev1.ConfigMap) { cm.Data["k"], cm.ManagedFields = "w", nil },
		"a label":          func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"a": "b"} },
		"a finalizer":      func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"a.b/c"} },
		"no data":          func(cm *corev1.ConfigMap) { cm.Data = nil },
		"nothing":          func(*corev1.ConfigMap) {},
	}
	for name, edit := range edits {
		next := reread(t, live)
		edit(next.(*corev1.ConfigMap))
		if !m.updateDirectly(live, next, "m2", start) {
			t.Errorf("an update with %s went to apimachinery", name)
		}
	}
}
