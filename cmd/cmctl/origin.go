package main

import (
	"context"
	"fmt"
	"time"

	"example.com/cmctl/pkg/client"
	"example.com/cmctl/pkg/types"
)

// origins finds out who wrote a field of an object last, and when: from the
// object's managedFields, else from its history on the server. It asks the
// server only when a conflict is to be shown, and at most once for each version.
type origins struct {
	maps    *client.ConfigMaps
	live    types.Document
	history []pastVersion
	loaded  bool
}

// pastVersion is one version of the object with what wrote it.
type pastVersion struct {
	types.HistoryEntry
	doc types.Document // nil if the content is not kept
}

func newOrigins(conn *connection, live types.Document) *origins {
	return &origins{maps: conn.ConfigMaps(live.Namespace()), live: live}
}

// of says who wrote the field last, in words for a message.
func (o *origins) of(ctx context.Context, f types.Field) string {
	if manager, when := managerOf(o.live, f); manager != "" {
		return fmt.Sprintf("by %s at or before %s", manager, when)
	}
	if !o.loaded {
		o.loaded = true
		o.load(ctx)
	}
	for i, v := range o.history {
		if i+1 < len(o.history) && types.SameValue(valueOf(v.doc, f), valueOf(o.history[i+1].doc, f)) {
			continue
		}
		who := v.FieldManager
		if v.User != "" {
			who = v.User + " with " + who
		}
		return fmt.Sprintf("by %s at %s, version %s", who, v.Time.UTC().Format("2006-01-02T15:04:05Z"), v.ResourceVersion)
	}
	return "by whom is not recorded"
}

// A conflict is shown soon, even if it can't be said then who wrote.
const (
	originsDepth = 50
	originsTime  = 3 * time.Second
)

// load reads the versions that the server keeps, newest first, as far back as
// they are there whole and of this object. A failure here costs only the name
// of who wrote: the conflict is shown all the same.
func (o *origins) load(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, originsTime)
	defer cancel()
	list, err := o.maps.History(ctx, o.live.Name())
	if err != nil {
		return
	}
	for i, e := range list.Items {
		if i == originsDepth || e.Deleted || string(e.UID) != o.live.UID() {
			return
		}
		v := pastVersion{HistoryEntry: e}
		if v.doc, err = o.maps.At(ctx, o.live.Name(), e.ResourceVersion); err != nil {
			return
		}
		o.history = append(o.history, v)
	}
}

func valueOf(d types.Document, f types.Field) any { return d.Fields()[f] }

// managerOf is the field manager that managedFields name for a field, with its
// time; the newest, if several own it.
func managerOf(d types.Document, f types.Field) (manager, when string) {
	meta, _ := d["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		set, _ := entry["fieldsV1"].(map[string]any)
		if !owns(set, f) {
			continue
		}
		name, _ := entry["manager"].(string)
		time, _ := entry["time"].(string)
		if time >= when { // RFC 3339 in UTC sorts by time
			manager, when = name, time
		}
	}
	return manager, when
}

// owns looks a field up in a fieldsV1 set.
func owns(set map[string]any, f types.Field) bool {
	has := func(path ...string) bool {
		at := set
		for _, p := range path {
			next, ok := at["f:"+p].(map[string]any)
			if !ok {
				return false
			}
			at = next
		}
		return true
	}
	switch f.Section {
	case "":
		return has(f.Key)
	case "data":
		return has("data", f.Key) || has("binaryData", f.Key)
	case "metadata.labels":
		return has("metadata", "labels", f.Key)
	case "metadata.annotations":
		return has("metadata", "annotations", f.Key)
	}
	return has("metadata", f.Key)
}
