// Package index is the newest version of every live key in memory, in the order of the
// keys, as stores publish it: a state is never changed, and the next one shares what is the
// same.
package index

import (
	"sort"
	"strings"

	"github.com/tidwall/btree"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/record"
)

// Item is the newest version of a live key. It never changes; a new version is a
// new item.
type Item struct {
	Record store.Record
	// Large means that Record.Value is kept elsewhere. Of it there is the head at most,
	// if that is small enough.
	Large bool
	Size  int32 // of the whole Value, in bytes; no Value is beyond record.MaxValue
}

// New holds a whole record, or what may be held of it if its value is longer than longest,
// in bytes.
func New(rec store.Record, longest int) *Item {
	if len(rec.Value) > longest {
		return NewLarge(record.HeadOf(rec), longest)
	}
	return &Item{Record: rec, Size: int32(len(rec.Value))}
}

// NewLarge holds no more of the value than its head, if that is not longer than longest.
func NewLarge(h record.Head, longest int) *Item {
	return &Item{Record: h.Alone(longest), Large: true, Size: int32(h.Size)}
}

// Lacks tells that more must be read of it than is here.
func (it *Item) Lacks(p store.Part) bool {
	return it.Large && (!p.Suffices(it.Record.Brief) || p == store.HeadAlone && it.Record.Value == nil)
}

// Tree holds items by their keys.
type Tree = btree.BTreeG[*Item]

// NewTree has no locks of its own. Its owner alone changes it; everybody else reads
// copies. Copy gives both sides new identities, so
// that a node which a copy can reach is cloned before it is changed, and reading
// methods (Get, Ascend, GetAt, Len) write nothing: readers and the owner never
// touch the same memory while one of them writes.
func NewTree() *Tree {
	return btree.NewBTreeGOptions(func(a, b *Item) bool { return a.Record.Key < b.Record.Key }, btree.Options{NoLocks: true})
}

// State is one published state: immutable and durable.
type State struct {
	Tree      *Tree
	Current   store.Revision
	Compacted store.Revision
}

// Lookup is the item of a key, nil if there is none.
func Lookup(t *Tree, key store.Key) *Item {
	probe := Item{Record: store.Record{Key: key}}
	it, _ := t.Get(&probe)
	return it
}

// Scan returns the items under prefix beyond after, at most limit (0: all), and
// how many follow them.
func (v *State) Scan(prefix, after store.Key, limit int) (items []*Item, remaining int) {
	from := max(prefix, after)
	v.Tree.Ascend(&Item{Record: store.Record{Key: from}}, func(it *Item) bool {
		switch key := it.Record.Key; {
		case !strings.HasPrefix(string(key), string(prefix)):
			return false // the scan began inside the prefix, so this is beyond it
		case key <= after && after != "":
			return true
		case limit > 0 && len(items) == limit:
			remaining = v.rank(prefixEnd(prefix)) - v.rank(key)
			return false
		}
		items = append(items, it)
		return true
	})
	return items, remaining
}

// rank is the number of keys below key; "" stands for the end of all keys.
func (v *State) rank(key store.Key) int {
	if key == "" {
		return v.Tree.Len()
	}
	return sort.Search(v.Tree.Len(), func(i int) bool {
		it, _ := v.Tree.GetAt(i)
		return it.Record.Key >= key
	})
}

// prefixEnd is the first key after all those that begin with prefix, or "" if
// there is none.
func prefixEnd(prefix store.Key) store.Key {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + store.Key(rune8(prefix[i]+1))
		}
	}
	return ""
}

// rune8 is a string of the one byte b, which string(rune(b)) is not.
func rune8(b byte) string { return string([]byte{b}) }
