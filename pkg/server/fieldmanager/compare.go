package fieldmanager

import (
	"bytes"
	"reflect"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"example.com/cmctl/pkg/types"
)

// comparison is what tells two ConfigMaps apart, in the fields that can have
// owners.
type comparison struct {
	changed fieldpath.Set // added, or with another value
	removed fieldpath.Set
	unusual bool // something is there that only apimachinery judges
}

// none says whether nothing differs.
func (c *comparison) none() bool { return c.changed.Empty() && c.removed.Empty() }

// place is where a field is: its parents, and its name.
type place struct {
	parent fieldpath.Path
	name   string
}

// top is a field of the object itself.
func top(name string) place { return place{name: name} }

// meta is a field of metadata.
func meta(name string) place { return place{parent: metadataPath, name: name} }

var metadataPath = fieldpath.MakePathOrDie("metadata")

// compare says what differs between live and next.
func compare(live, next *types.ConfigMap) *comparison {
	c := &comparison{}
	compareMaps(c, top("data"), live.Data, next.Data, func(a, b string) bool { return a == b })
	c.checkBytes(live.BinaryData)
	c.checkBytes(next.BinaryData)
	compareMaps(c, top("binaryData"), live.BinaryData, next.BinaryData, bytes.Equal)
	c.scalar(top("immutable"), live.Immutable != nil, next.Immutable != nil, reflect.DeepEqual(live.Immutable, next.Immutable))

	compareMaps(c, meta("labels"), live.Labels, next.Labels, func(a, b string) bool { return a == b })
	compareMaps(c, meta("annotations"), live.Annotations, next.Annotations, func(a, b string) bool { return a == b })
	c.scalar(meta("generateName"), live.GenerateName != "", next.GenerateName != "", live.GenerateName == next.GenerateName)
	c.finalizers(live.Finalizers, next.Finalizers)
	c.ownerReferences(live.OwnerReferences, next.OwnerReferences)
	if !live.DeletionTimestamp.Equal(next.DeletionTimestamp) ||
		!reflect.DeepEqual(live.DeletionGracePeriodSeconds, next.DeletionGracePeriodSeconds) {
		c.unusual = true
	}
	return c
}

// scalar compares a field that has no parts.
func (c *comparison) scalar(at place, before, after, same bool) {
	switch {
	case same:
	case after:
		at.insert(&c.changed)
	case before:
		at.insert(&c.removed)
	}
}

// compareMaps compares two maps key by key.
func compareMaps[V any](c *comparison, at place, live, next map[string]V, same func(a, b V) bool) {
	var changed, removed []string
	common := 0
	for key, v := range next {
		old, ok := live[key]
		if ok {
			common++
		}
		if !ok || !same(old, v) {
			changed = append(changed, key)
		}
	}
	if common < len(live) {
		for key := range live {
			if _, ok := next[key]; !ok {
				removed = append(removed, key)
			}
		}
	}
	c.items(at, c.names(changed), c.names(removed), len(live), len(next))
}

// names are the path elements of map keys.
func (c *comparison) names(keys []string) []fieldpath.PathElement {
	slices.Sort(keys) // a set grows fast at its end only
	elements := make([]fieldpath.PathElement, len(keys))
	for i := range keys {
		c.checkText(keys[i])
		elements[i].FieldName = &keys[i]
	}
	return elements
}

// checkText notes what JSON can't carry as it is.
func (c *comparison) checkText(s string) {
	if !utf8.ValidString(s) {
		c.unusual = true
	}
}

// checkBytes notes values of binaryData that are null, and not empty.
func (c *comparison) checkBytes(values map[string][]byte) {
	for _, v := range values {
		if v == nil {
			c.unusual = true
		}
	}
}

// items notes the parts of a field that changed and that were removed, and the
// field itself where it came or went: an empty one isn't there.
func (c *comparison) items(at place, changed, removed []fieldpath.PathElement, before, after int) {
	if len(changed) > 0 {
		at.insert(&c.changed, changed...)
	}
	if len(removed) > 0 {
		at.insert(&c.removed, removed...)
	}
	switch {
	case before == 0 && after > 0:
		at.insert(&c.changed)
	case before > 0 && after == 0:
		at.insert(&c.removed)
	}
}

// insert adds parts of the field to a set, or the field itself if there are
// none.
func (at place) insert(s *fieldpath.Set, parts ...fieldpath.PathElement) {
	for _, pe := range at.parent {
		s = s.Children.Descend(pe)
	}
	field := fieldpath.FieldNameElement(at.name)
	if len(parts) == 0 {
		s.Members.Insert(field)
		return
	}
	s = s.Children.Descend(field)
	for _, pe := range parts {
		s.Members.Insert(pe)
	}
}

// finalizers compares two sets of names. Their order has no owner.
func (c *comparison) finalizers(live, next []string) {
	if slices.Equal(live, next) {
		return
	}
	element := func(name string) fieldpath.PathElement {
		c.checkText(name)
		return fieldpath.ValueElement(value.NewValueInterface(name))
	}
	compareLists(c, meta("finalizers"), live, next, func(name string) string { return name }, element)
}

// ownerReferences compares two lists whose items are known by uid.
func (c *comparison) ownerReferences(live, next []metav1.OwnerReference) {
	if reflect.DeepEqual(live, next) {
		return
	}
	uid := func(ref metav1.OwnerReference) string { return string(ref.UID) }
	element := func(ref metav1.OwnerReference) fieldpath.PathElement {
		c.checkText(uid(ref))
		return fieldpath.KeyElementByFields("uid", uid(ref))
	}
	compareLists(c, meta("ownerReferences"), live, next, uid, element)
}

// compareLists compares two lists item by item. An item that is there twice
// makes the comparison unusual.
func compareLists[V any](c *comparison, at place, live, next []V, key func(V) string, element func(V) fieldpath.PathElement) {
	before, after := indexed(live, key), indexed(next, key)
	if len(before) != len(live) || len(after) != len(next) {
		c.unusual = true
		return
	}
	var changed, removed []fieldpath.PathElement
	for _, item := range next {
		if old, ok := before[key(item)]; !ok || !reflect.DeepEqual(old, item) {
			changed = append(changed, element(item))
		}
	}
	for _, item := range live {
		if _, ok := after[key(item)]; !ok {
			removed = append(removed, element(item))
		}
	}
	c.items(at, changed, removed, len(live), len(next))
}

func indexed[V any](list []V, key func(V) string) map[string]V {
	items := make(map[string]V, len(list))
	for _, item := range list {
		items[key(item)] = item
	}
	return items
}
