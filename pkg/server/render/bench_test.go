package render_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"example.com/cmctl/pkg/server/render"
	"example.com/cmctl/pkg/types"
)

// sized is an item with about that many bytes of data.
func sized(b *testing.B, bytes int) render.Item {
	cm := sampleConfigMap()
	cm.Data["big"] = strings.Repeat("key: value\n", bytes/11)
	return item(b, types.ConfigMaps, cm, "7")
}

func listOf(it render.Item, n int) render.List {
	l := render.List{Resource: types.ConfigMaps, Version: "9"}
	for range n {
		l.Items = append(l.Items, it)
	}
	return l
}

func run(b *testing.B, render func() ([]byte, error)) {
	b.ReportAllocs()
	for b.Loop() {
		body, err := render()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkObject(b *testing.B) {
	for _, size := range []int{1 << 10, 500 << 10} {
		it, r := sized(b, size), newRenderer()
		for name, accept := range map[string]string{"json": "", "partial": acceptPartial, "table": acceptTable, "protobuf": protobuf, "yaml": "application/yaml"} {
			f := form(b, accept, render.Object, nil)
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				run(b, func() ([]byte, error) { return r.Object(f, it) })
			})
		}
	}
}

func BenchmarkListOf500(b *testing.B) {
	for _, size := range []int{1 << 10, 500 << 10} {
		l, r := listOf(sized(b, size), 500), newRenderer()
		for name, accept := range map[string]string{"json": "", "partial": acceptPartialList, "table": acceptTable, "protobuf": protobuf} {
			if size > 1<<10 && (name == "json" || name == "protobuf") {
				continue // 250 MB: nothing but copying
			}
			f := form(b, accept, render.Collection, nil)
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				run(b, func() ([]byte, error) { return r.List(f, l) })
			})
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	it, r := sized(b, 1<<10), newRenderer()
	for name, accept := range map[string]string{"json": "", "partial": acceptPartial, "table": acceptTable, "protobuf": protobuf} {
		s := stream(b, r, accept, types.ConfigMaps, nil)
		var dst []byte
		b.Run(name, func(b *testing.B) {
			run(b, func() (body []byte, err error) {
				dst, err = s.Event(dst[:0], watch.Modified, it)
				return dst, err
			})
		})
	}
}

func BenchmarkNegotiate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		form(b, acceptTable+",application/json", render.Collection, nil)
	}
}
