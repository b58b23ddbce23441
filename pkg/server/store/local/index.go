package local

import (
	"sort"
	"strings"

	"github.com/tidwall/btree"

	"example.com/cmctl/pkg/server/store"
)

// item is the newest version of a live key. It never changes; a new version is a
// new item.
type item struct {
	rec store.Record
	// large means that rec.Value is to be read from Pebble. Of it there is the head
	// at most, if that is small enough.
	large bool
	size  int32 // of the whole Value, in bytes; no Value is beyond maxValue
}

// newItem holds a whole record, or what may be held of it if that is too long.
func newItem(rec store.Record, longest int) *item {
	if len(rec.Value) > longest {
		return headOf(rec).item(longest)
	}
	return &item{rec: rec, size: int32(len(rec.Value))}
}

// item holds no more of the value than its head, if that is not too long.
func (h head) item(longest int) *item {
	return &item{rec: h.alone(longest), large: true, size: int32(h.size)}
}

// lacks tells that more must be read of it than is here.
func (it *item) lacks(p store.Part) bool {
	return it.large && (!p.Suffices(it.rec.Brief) || p == store.HeadAlone && it.rec.Value == nil)
}

type tree = btree.BTreeG[*item]

// newTree has no locks of its own. The committer alone changes the tree that it
// holds; everybody else reads copies. Copy gives both sides new identities, so
// that a node which a copy can reach is cloned before it is changed, and reading
// methods (Get, Ascend, GetAt, Len) write nothing: readers and the committer
// never touch the same memory while one of them writes.
func newTree() *tree {
	return btree.NewBTreeGOptions(func(a, b *item) bool { return a.rec.Key < b.rec.Key }, btree.Options{NoLocks: true})
}

// view is one published state: immutable and durable.
type view struct {
	tree      *tree
	current   store.Revision
	compacted store.Revision
}

func lookup(t *tree, key store.Key) *item {
	probe := item{rec: store.Record{Key: key}}
	it, _ := t.Get(&probe)
	return it
}

// scan returns the items under prefix beyond after, at most limit (0: all), and
// how many follow them.
func (v *view) scan(prefix, after store.Key, limit int) (items []*item, remaining int) {
	from := max(prefix, after)
	v.tree.Ascend(&item{rec: store.Record{Key: from}}, func(it *item) bool {
		switch key := it.rec.Key; {
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
func (v *view) rank(key store.Key) int {
	if key == "" {
		return v.tree.Len()
	}
	return sort.Search(v.tree.Len(), func(i int) bool {
		it, _ := v.tree.GetAt(i)
		return it.rec.Key >= key
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
