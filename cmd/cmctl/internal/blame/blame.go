// Package blame finds out who wrote each field of an object last, with what
// tool and when: from the history of its versions where the server keeps one,
// else from its managedFields.
//
//	b := blame.New(live)
//	for !b.Complete() && … {
//		b.Add(entry, doc) // each version, newest first
//	}
//	origins := b.Origins()
package blame

import (
	"cmp"
	"slices"
	"time"

	"example.com/cmctl/cmd/cmctl/internal/managed"
	"example.com/cmctl/pkg/types"
)

// Origin is the last write of one field.
type Origin struct {
	Field types.Field
	// Manager is the tool that wrote it, User who used it. Either is empty where
	// that is not recorded.
	Manager, User string
	// Time is when it was written, or, unless Exact, a time before which it was.
	// It is zero where nothing is recorded.
	Time time.Time
	// Version is the one in which it was written, or, unless Exact, one in which
	// it was there. It is empty if all that is known is from managedFields.
	Version string
	// Verb is what was asked of the server: create, update, patch or apply.
	Verb string
	// Exact tells whether it is known which write it was.
	Exact bool
}

// Blame goes through the versions of one object. It is made by New and belongs
// to one goroutine.
type Blame struct {
	live    types.Document
	fields  map[types.Field]any // as they are now
	open    map[types.Field]bool
	origins map[types.Field]Origin
	last    types.HistoryEntry // the version that was added last
	any     bool
}

// New begins with the object as it is now. Only the fields of data, labels and
// annotations have origins.
func New(live types.Document) *Blame {
	b := &Blame{live: live, fields: live.Fields(), open: map[types.Field]bool{}, origins: map[types.Field]Origin{}}
	for f := range b.fields {
		if _, ok := sections[f.Section]; ok {
			b.open[f] = true
		}
	}
	return b
}

// sections are those whose fields have origins, in the order in which they are
// shown.
var sections = map[string]int{"data": 0, "metadata.labels": 1, "metadata.annotations": 2}

// Only leaves out all fields but one, and tells whether that is there.
func (b *Blame) Only(f types.Field) bool {
	there := b.open[f]
	b.open = map[types.Field]bool{}
	if there {
		b.open[f] = true
	}
	return there
}

// Complete tells whether each field's last write is known.
func (b *Blame) Complete() bool { return len(b.open) == 0 }

// Add takes the next older version of the same object: what is different in it
// was written in the version before. The first one is the object as it is.
func (b *Blame) Add(e types.HistoryEntry, doc types.Document) {
	then := doc.Fields()
	for f := range b.open {
		if b.any && !types.SameValue(b.fields[f], then[f]) {
			b.settle(f, true)
		}
	}
	b.last, b.any = e, true
}

// Begin says that the version which was added last is the object's first: all
// that was there since is from it.
func (b *Blame) Begin() {
	for f := range b.open {
		b.settle(f, true)
	}
}

// settle names the version that was added last as the origin.
func (b *Blame) settle(f types.Field, exact bool) {
	delete(b.open, f)
	b.origins[f] = Origin{
		Field: f, Manager: b.last.FieldManager, User: b.last.User, Time: b.last.Time.Time,
		Version: b.last.ResourceVersion, Verb: b.last.Verb, Exact: exact,
	}
}

// Origins are the last writes, as far as the versions tell. Of a field that is
// older than all of them it is what managedFields know; else that it was there
// by the oldest of them.
func (b *Blame) Origins() []Origin {
	all := make([]Origin, 0, len(b.origins)+len(b.open))
	for _, o := range b.origins {
		all = append(all, o)
	}
	for f := range b.open {
		all = append(all, b.older(f))
	}
	slices.SortFunc(all, func(x, y Origin) int {
		return cmp.Or(cmp.Compare(sections[x.Field.Section], sections[y.Field.Section]), cmp.Compare(x.Field.Key, y.Field.Key))
	})
	return all
}

// older is what is known of a field that no version shows the writing of.
func (b *Blame) older(f types.Field) Origin {
	o := Origin{Field: f}
	if b.any {
		o.Version, o.Time = b.last.ResourceVersion, b.last.Time.Time
	}
	manager, at := managed.Last(b.live, f)
	o.Manager = manager
	// managedFields have one time for each manager, that of its last write.
	if !at.IsZero() && (o.Time.IsZero() || at.Before(o.Time)) {
		o.Time = at
	}
	return o
}
