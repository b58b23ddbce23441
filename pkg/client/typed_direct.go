package client

import "example.com/cmctl/pkg/types"

// direct is the typed form of a document that has nothing but names, strings and
// whether it is immutable, as most manifests do. The way through JSON, which reads
// any document, takes ten times as long.
func direct(d types.Document) (*types.ConfigMap, bool) {
	cm := &types.ConfigMap{}
	ok := true
	for key, v := range d {
		switch key {
		case "apiVersion":
			ok = text(v, &cm.APIVersion)
		case "kind":
			ok = text(v, &cm.Kind)
		case "metadata":
			ok = directMeta(v, cm)
		case "data":
			ok = texts(v, &cm.Data)
		case "immutable":
			var b bool
			b, ok = v.(bool)
			cm.Immutable = &b
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return cm, true
}

func directMeta(v any, cm *types.ConfigMap) bool {
	meta, ok := v.(map[string]any)
	for key, v := range meta {
		switch key {
		case "name":
			ok = text(v, &cm.Name)
		case "namespace":
			ok = text(v, &cm.Namespace)
		case "labels":
			ok = texts(v, &cm.Labels)
		case "annotations":
			ok = texts(v, &cm.Annotations)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return ok
}

func text(v any, into *string) (ok bool) {
	*into, ok = v.(string)
	return ok
}

func texts(v any, into *map[string]string) bool {
	entries, ok := v.(map[string]any)
	if !ok {
		return false
	}
	*into = make(map[string]string, len(entries))
	for key, v := range entries {
		s, ok := v.(string)
		if !ok {
			return false
		}
		(*into)[key] = s
	}
	return true
}
