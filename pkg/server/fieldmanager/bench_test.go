package fieldmanager

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/cmctl/pkg/types"
)

// sized is a ConfigMap of two managers with n keys of size bytes each.
func sized(m *Manager, n, size int) *corev1.ConfigMap {
	cm := types.ConfigMaps.New().(*corev1.ConfigMap)
	cm.Name = "a"
	cm.Data = map[string]string{}
	for i := range n {
		cm.Data[fmt.Sprintf("key-%06d", i)] = strings.Repeat("x", size)
	}
	m.Update(nil, cm, "creator", start)
	cm.UID = "u"
	next := cm.DeepCopy()
	next.Labels = map[string]string{"app": "bench"}
	m.Update(cm, next, "labeller", start)
	return next
}

func BenchmarkUpdate(b *testing.B) {
	ways := map[string]func(*Manager, types.Object, types.Object, string, time.Time){
		"direct": func(m *Manager, live, next types.Object, manager string, now time.Time) {
			if !m.updateDirectly(live, next, manager, now) {
				b.Fatal("this update can't go the direct way")
			}
		},
		"full": (*Manager).updateFully,
	}
	for _, size := range []struct{ keys, bytes int }{{4, 256}, {10_000, 16}} {
		for _, way := range []string{"direct", "full"} {
			for _, manager := range []string{"creator", "other"} {
				b.Run(fmt.Sprintf("keys=%d/%s/by=%s", size.keys, way, manager), func(b *testing.B) {
					m := newManager(b, types.ConfigMaps)
					live := sized(m, size.keys, size.bytes)
					next := live.DeepCopy()
					next.Data["key-000001"] = "changed"
					b.ReportAllocs()
					for b.Loop() {
						next.ManagedFields = live.ManagedFields
						ways[way](m, live, next, manager, start)
					}
				})
			}
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	for _, size := range []struct{ keys, bytes int }{{4, 256}, {10_000, 16}} {
		b.Run(fmt.Sprintf("keys=%d", size.keys), func(b *testing.B) {
			m := newManager(b, types.ConfigMaps)
			next := sized(m, size.keys, size.bytes)
			b.ReportAllocs()
			for b.Loop() {
				m.Update(nil, next, "m", start)
			}
		})
	}
}
