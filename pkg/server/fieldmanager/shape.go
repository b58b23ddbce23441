package fieldmanager

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// plain says whether a set is of fields that a ConfigMap has, each as deep as
// it has owners. Others come from clients that send entries of their own, and
// apimachinery may have to bring them in line with the schema first.
func plain(set *fieldpath.Set) bool { return configMap.has(set) }

// shape says which fields a set may have at one level.
type shape struct {
	item     func(fieldpath.PathElement) bool // of those that may be members
	children map[string]shape                 // of those that may have parts
}

var (
	configMap = shape{item: oneOf("data", "binaryData", "immutable"), children: map[string]shape{
		"data": {item: isName}, "binaryData": {item: isName}, "metadata": metadata,
	}}
	metadata = shape{
		item: oneOf("labels", "annotations", "generateName", "finalizers", "ownerReferences"),
		children: map[string]shape{
			"labels": {item: isName}, "annotations": {item: isName},
			"finalizers": {item: isText}, "ownerReferences": {item: isKey},
		},
	}
)

// has says whether the set has no other fields than these.
func (s shape) has(set *fieldpath.Set) bool {
	all := true
	set.Members.Iterate(func(pe fieldpath.PathElement) { all = all && s.item(pe) })
	set.Children.Iterate(func(pe fieldpath.PathElement) {
		all = all && pe.FieldName != nil
		if all {
			parts, ok := s.children[*pe.FieldName]
			all = ok && parts.has(below(set, pe))
		}
	})
	return all
}

func oneOf(names ...string) func(fieldpath.PathElement) bool {
	return func(pe fieldpath.PathElement) bool {
		return pe.FieldName != nil && slices.Contains(names, *pe.FieldName)
	}
}

func isName(pe fieldpath.PathElement) bool { return pe.FieldName != nil }
func isText(pe fieldpath.PathElement) bool { return pe.Value != nil && (*pe.Value).IsString() }
func isKey(pe fieldpath.PathElement) bool  { return pe.Key != nil }
