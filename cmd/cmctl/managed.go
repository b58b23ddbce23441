package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"example.com/cmctl/pkg/types"
)

// The operations that managedFields tell apart.
const (
	opApply  = "Apply"
	opUpdate = "Update"
)

// managed is an entry of managedFields.
type managed map[string]any

func managedFields(d types.Document) []managed {
	raw, _ := d.Value("metadata", "managedFields")
	list, _ := raw.([]any)
	var entries []managed
	for _, e := range list {
		if entry, ok := e.(map[string]any); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

func (m managed) is(manager, operation string) bool {
	return m["manager"] == manager && m["operation"] == operation && m["subresource"] == nil
}

func (m managed) fields() map[string]any {
	set, _ := m["fieldsV1"].(map[string]any)
	return set
}

// ownersOf tells who owns a field, our manager meaning what it applied through
// the server.
func ownersOf(d types.Document, f types.Field, manager string) (who types.Owners) {
	for _, e := range managedFields(d) {
		switch {
		case !owns(e.fields(), f):
		case e.is(manager, opApply):
			who.Ours = true
		default:
			who.Others = true
		}
	}
	return who
}

// ownsItem tells whether our manager applied an item of a list of metadata.
func ownsItem(d types.Document, f types.Field, item any, manager string) bool {
	for _, e := range managedFields(d) {
		meta, _ := e.fields()["f:metadata"].(map[string]any)
		items, _ := meta["f:"+f.Key].(map[string]any)
		if _, ok := items[itemKey(item)]; ok && e.is(manager, opApply) {
			return true
		}
	}
	return false
}

// itemKey is what fieldsV1 calls an item of a list: a text by itself, an object by
// its uid. It is empty for anything else.
func itemKey(item any) string {
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

// managersOf names who owns a field, apart from what our manager applied.
func managersOf(d types.Document, f types.Field, manager string) string {
	var names []string
	for _, e := range managedFields(d) {
		if !owns(e.fields(), f) || e.is(manager, opApply) {
			continue
		}
		names = append(names, fmt.Sprintf("%v, by %s at or before %v", e["manager"], strings.ToLower(fmt.Sprint(e["operation"])), e["time"]))
	}
	return "owned by " + strings.Join(names, " and ")
}
