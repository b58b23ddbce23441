// Package managed reads an object's managedFields: which field manager owns which
// field, and when it wrote last.
//
//	manager, at := managed.Last(live, types.Field{Section: "data", Key: "mode"})
package managed

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"example.com/cmctl/pkg/types"
)

// Operation is the way in which a manager wrote.
type Operation string

// The operations that managedFields tell apart.
const (
	Apply  Operation = "Apply"
	Update Operation = "Update"
)

// Entry is what an object notes of one manager. It shares its content with the
// object.
type Entry map[string]any

// Entries are the object's, in its order.
func Entries(d types.Document) []Entry {
	raw, _ := d.Value("metadata", "managedFields")
	list, _ := raw.([]any)
	var entries []Entry
	for _, e := range list {
		if entry, ok := e.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

// Manager is the name of who wrote.
func (e Entry) Manager() string { return e.text("manager") }

// Operation is how.
func (e Entry) Operation() Operation { return Operation(e.text("operation")) }

// Time is when the manager wrote last in that way, zero if it isn't noted.
func (e Entry) Time() time.Time {
	at, _ := time.Parse(time.RFC3339, e.text("time")) // zero if it is none
	return at
}

func (e Entry) text(key string) string {
	text, _ := e[key].(string)
	return text
}

// Is tells whether the entry is that of a manager and a way to write, on the object
// itself.
func (e Entry) Is(manager string, how Operation) bool {
	return e.Manager() == manager && e.Operation() == how && e["subresource"] == nil
}

// Set are the fields that the manager owns, in the form of fieldsV1.
func (e Entry) Set() map[string]any {
	set, _ := e["fieldsV1"].(map[string]any)
	return set
}

// Owns tells whether the manager owns a field.
func (e Entry) Owns(f types.Field) bool {
	return slices.ContainsFunc(paths(f), func(path []string) bool {
		_, ok := types.Document(e.Set()).Value(path...)
		return ok
	})
}

// paths are where fieldsV1 has a field.
func paths(f types.Field) [][]string {
	key := "f:" + f.Key
	switch f.Section {
	case "":
		return [][]string{{key}}
	case "data":
		return [][]string{{"f:data", key}, {"f:binaryData", key}}
	case "metadata.labels":
		return [][]string{{"f:metadata", "f:labels", key}}
	case "metadata.annotations":
		return [][]string{{"f:metadata", "f:annotations", key}}
	}
	return [][]string{{"f:metadata", key}}
}

// OwnsItem tells whether the manager owns an item of a list of metadata.
func (e Entry) OwnsItem(list types.Field, item any) bool {
	_, ok := types.Document(e.Set()).Value("f:metadata", "f:"+list.Key, ItemKey(item))
	return ok
}

// ItemKey is what fieldsV1 calls an item of a list: a text by itself, an object by
// its uid. It is empty for anything else.
func ItemKey(item any) string {
	prefix := "v:"
	if object, ok := item.(map[string]any); ok {
		prefix, item = "k:", map[string]any{"uid": object["uid"]}
	}
	text, err := json.Marshal(item)
	if err != nil {
		return ""
	}
	return prefix + string(text)
}

// Last is the manager that wrote a field, and when it wrote last; the newest, if
// several own it. The name is empty if there is none.
func Last(d types.Document, f types.Field) (manager string, at time.Time) {
	return newest(d, func(e Entry) bool { return e.Owns(f) })
}

// LastApplied is the manager that applied a field through the server last, empty if none
// did.
func LastApplied(d types.Document, f types.Field) string {
	manager, _ := newest(d, func(e Entry) bool { return e.Operation() == Apply && e.Owns(f) })
	return manager
}

// LastApplier is the manager that applied anything of the object through the server last,
// empty if none did.
func LastApplier(d types.Document) string {
	manager, _ := newest(d, func(e Entry) bool { return e.Operation() == Apply })
	return manager
}

// LastOfAll is the manager that wrote the object last, and when.
func LastOfAll(d types.Document) (manager string, at time.Time) {
	return newest(d, func(Entry) bool { return true })
}

func newest(d types.Document, counts func(Entry) bool) (manager string, at time.Time) {
	for _, e := range Entries(d) {
		if when := e.Time(); counts(e) && (manager == "" || !when.Before(at)) {
			manager, at = e.Manager(), when
		}
	}
	return manager, at
}

// OwnersOf tells who owns a field; ours is what this manager applied through the
// server.
func OwnersOf(d types.Document, f types.Field, manager string) types.Owners {
	return owners(d, manager, func(e Entry) bool { return e.Owns(f) })
}

// OwnersOfItem is OwnersOf for an item of a list of metadata.
func OwnersOfItem(d types.Document, list types.Field, item any, manager string) types.Owners {
	return owners(d, manager, func(e Entry) bool { return e.OwnsItem(list, item) })
}

func owners(d types.Document, manager string, owns func(Entry) bool) (who types.Owners) {
	for _, e := range Entries(d) {
		switch {
		case !owns(e):
		case e.Is(manager, Apply):
			who.Ours = true
		default:
			who.Others = true
		}
	}
	return who
}

// AsApplied is a copy of the object in which all that the manager wrote itself counts
// as applied by it through the server.
func AsApplied(d types.Document, manager string) types.Document {
	next := d.Clone()
	var rest []any
	set, newest := map[string]any{}, ""
	for _, e := range Entries(next) {
		if !e.Is(manager, Apply) && !e.Is(manager, Update) {
			rest = append(rest, map[string]any(e))
			continue
		}
		set = union(set, e.Set())
		newest = max(newest, e.text("time")) // RFC 3339 in UTC sorts by time
	}
	next.SetMeta("managedFields", append(rest, applied(manager, newest, set)))
	return next
}

// DataKey is a key in one of the two maps of data.
type DataKey struct {
	Key    string
	Binary bool // it is in binaryData
}

// set is the key as a set of fieldsV1.
func (k DataKey) set() map[string]any {
	section := "f:data"
	if k.Binary {
		section = "f:binaryData"
	}
	return map[string]any{section: map[string]any{"f:" + k.Key: map[string]any{}}}
}

// HandOver is a copy of the object in which the keys are this manager's alone, as if
// it had applied them through the server.
func HandOver(d types.Document, keys []DataKey, manager string) types.Document {
	next := d.Clone()
	var rest []any
	ours, when := map[string]any{}, ""
	for _, e := range Entries(next) {
		set := e.Set()
		for _, k := range keys {
			subtract(set, k.set())
		}
		switch {
		case e.Is(manager, Apply):
			ours, when = set, e.text("time")
		case len(set) > 0:
			rest = append(rest, map[string]any(e))
		}
	}
	for _, k := range keys {
		ours = union(ours, k.set())
	}
	next.SetMeta("managedFields", append(rest, applied(manager, when, ours)))
	return next
}

// applied is an entry for what a manager applied; when may be empty.
func applied(manager, when string, set map[string]any) map[string]any {
	e := map[string]any{"manager": manager, "operation": string(Apply), "apiVersion": types.APIVersion, "fieldsType": "FieldsV1", "fieldsV1": set}
	if when != "" {
		e["time"] = when
	}
	return e
}

// subtract takes the leaves of b out of the set a, and a map with its last key.
func subtract(a, b map[string]any) {
	for k, v := range b {
		left, _ := a[k].(map[string]any)
		right, _ := v.(map[string]any)
		subtract(left, right)
		if _, itself := left["."]; len(right) == 0 || len(left) == 0 || itself && len(left) == 1 {
			delete(a, k)
		}
	}
}

// union puts two field sets together.
func union(a, b map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, a)
	for k, v := range b {
		left, _ := out[k].(map[string]any)
		right, _ := v.(map[string]any)
		out[k] = union(left, right)
	}
	return out
}
