package content

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"
)

// Tree is what a text says, whatever its layout and its comments. Trees are
// immutable. A nil Tree is a value that is absent.
type Tree struct {
	kind     kind
	sum      [sha256.Size]byte // equal for equal trees, so that comparing needs no walk
	children map[string]*Tree  // of a list by index
}

type kind byte

const (
	leafKind kind = iota
	mapKind
	listKind
)

func newLeaf(value string) *Tree {
	return &Tree{sum: sha256.Sum256(append([]byte{byte(leafKind)}, value...))}
}

func newMap(children map[string]*Tree) *Tree { return newBranch(mapKind, children) }

func newList(items []*Tree) *Tree {
	children := make(map[string]*Tree, len(items))
	for i, item := range items {
		children[strconv.Itoa(i)] = item
	}
	return newBranch(listKind, children)
}

func newBranch(k kind, children map[string]*Tree) *Tree {
	t := &Tree{kind: k, children: children}
	hash := sha256.New()
	hash.Write([]byte{byte(k)})
	for _, key := range slices.Sorted(maps.Keys(children)) {
		name := sha256.Sum256([]byte(key))
		hash.Write(name[:])
		hash.Write(children[key].sum[:])
	}
	hash.Sum(t.sum[:0])
	return t
}

// Same tells whether two texts say the same.
func Same(a, b *Tree) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.sum == b.sum
}

// Holds tells whether merged has the changes from base to mine and from base to
// theirs, and no others: at each path it has the side that changed it. What both
// changed, they must have changed alike, or in different places inside. The
// entries of a list go by their index: where one side inserts at the front of a
// list and the other changes what then moves, the answer is no.
func Holds(base, mine, theirs, merged *Tree) bool {
	switch {
	case Same(base, mine):
		return Same(merged, theirs)
	case Same(base, theirs), Same(mine, theirs):
		return Same(merged, mine)
	case !branches(base, mine, theirs, merged):
		return false
	}
	for key := range union(base, mine, theirs, merged) {
		if !Holds(base.children[key], mine.children[key], theirs.children[key], merged.children[key]) {
			return false
		}
	}
	return true
}

// HoldsOf tells whether merged has the changes from base to one side, whatever
// else it has.
func HoldsOf(base, side, merged *Tree) bool {
	switch {
	case Same(base, side), Same(side, merged):
		return true
	case !branches(base, side, merged):
		return false
	}
	for key := range union(base, side) {
		if !HoldsOf(base.children[key], side.children[key], merged.children[key]) {
			return false
		}
	}
	return true
}

// branches tells whether all are maps, or all are lists.
func branches(trees ...*Tree) bool {
	for _, t := range trees {
		if t == nil || t.kind == leafKind || t.kind != trees[0].kind {
			return false
		}
	}
	return true
}

func union(trees ...*Tree) map[string]bool {
	keys := map[string]bool{}
	for _, t := range trees {
		for key := range t.children {
			keys[key] = true
		}
	}
	return keys
}
