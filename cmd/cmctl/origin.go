package main

import (
	"context"
	"fmt"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/managed"
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
	if manager, at := managed.Last(o.live, f); manager != "" {
		return fmt.Sprintf("by %s %s", manager, atOrBefore(at))
	}
	if !o.loaded {
		o.loaded = true
		o.load(ctx)
	}
	for i, v := range o.history {
		if i+1 < len(o.history) && types.SameValue(v.doc.Fields()[f], o.history[i+1].doc.Fields()[f]) {
			continue
		}
		return fmt.Sprintf("by %s, version %s", whoAndWhen(v.HistoryEntry), v.ResourceVersion)
	}
	return "by whom is not recorded"
}

// whoAndWhen tells of a write who made it, with what, and when.
func whoAndWhen(e types.HistoryEntry) string {
	who := e.FieldManager
	if e.User != "" {
		who = e.User + " with " + who
	}
	return fmt.Sprintf("%s at %s", who, e.Time.UTC().Format(time.RFC3339))
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

// atOrBefore is a time as messages show one that managedFields tell: they have one
// for each manager, that of its last write.
func atOrBefore(at time.Time) string {
	if at.IsZero() {
		return "at a time that is not recorded"
	}
	return "at or before " + at.UTC().Format(time.RFC3339)
}
