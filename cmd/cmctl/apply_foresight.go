package main

import (
	"context"

	"example.com/cmctl/cmd/cmctl/internal/manifest"
	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/retry"
	"example.com/cmctl/pkg/types"
)

// foresight is what the server held just before many objects are written, by
// namespace and name: one request in the place of a read of each. It is used once
// for each object, and no less safe than a read: the write that follows is made
// from the version that was seen, or creates what was not there.
type foresight struct {
	found map[string]types.Document
	whole map[string]bool // namespaces of which all was read
}

// manyObjects is how many objects of a namespace are worth looking ahead for.
const manyObjects = 20

// foresee looks ahead where that saves requests. What can't be read so, or is too
// much, is left to be read one by one.
func foresee(ctx context.Context, conn *connection, manifests []manifest.Manifest) foresight {
	s := foresight{found: map[string]types.Document{}, whole: map[string]bool{}}
	counts := map[string]int{}
	for _, m := range manifests {
		counts[m.Namespace()]++
	}
	for namespace, n := range counts {
		if n < manyObjects {
			continue
		}
		items, all, err := conn.ConfigMaps(namespace).Peek(ctx, 2*n)
		if err != nil {
			continue
		}
		s.whole[namespace] = all
		for _, d := range items {
			s.found[namespace+"/"+d.Name()] = d
		}
	}
	return s
}

// of is the object with its first read foreseen, if it is.
func (s foresight) of(m manifest.Manifest, object *client.Object) retry.Creator[types.Document] {
	doc, ok := s.found[m.Namespace()+"/"+m.Name()]
	if !ok && !s.whole[m.Namespace()] {
		return object
	}
	return &foreseenObject{liveObject: object, name: m.Name(), doc: doc}
}

// foreseenObject answers the first read itself.
type foreseenObject struct {
	*liveObject
	name string
	doc  types.Document // nil if there is none
	read bool
}

func (o *foreseenObject) Get(ctx context.Context) (types.Document, error) {
	if o.read {
		return o.liveObject.Get(ctx)
	}
	o.read = true
	if o.doc == nil {
		return nil, types.ConfigMaps.NotFound(o.name)
	}
	return o.doc, nil
}
