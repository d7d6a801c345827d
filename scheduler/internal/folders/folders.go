// Package folders finds what belongs to folders of keys: an [Index] has the items below a prefix, and [Waitlists] have what waits
// for a key of a folder to appear.
package folders

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// An Index keeps items in the order of their keys, so that those below a prefix are found fast. It
// keeps only items of the folders that somebody asked about: most items of a large graph are in others.
//
//	for item := range index.Under("vpp/interface/loop1/", all) { ... }
//
// A folder is the part of a key up to its second slash, such as "vpp/interface/". One goroutine owns an Index. The zero Index
// has no folder.
type Index[T any] struct {
	trees map[string]*btree.Map[string, T] // by folder
}

// Under yields the items whose keys have the prefix, in order. The first call for a folder takes its
// items from all.
func (x *Index[T]) Under(prefix string, all iter.Seq2[string, T]) iter.Seq[T] {
	folder := prefix[:ends(prefix)[depth]]
	tree := x.trees[folder]
	if tree == nil {
		tree = &btree.Map[string, T]{}
		for key, item := range all {
			if strings.HasPrefix(key, folder) {
				tree.Set(key, item)
			}
		}
		if x.trees == nil {
			x.trees = map[string]*btree.Map[string, T]{}
		}
		x.trees[folder] = tree
	}
	return func(yield func(T) bool) {
		tree.Ascend(prefix, func(key string, item T) bool { return strings.HasPrefix(key, prefix) && yield(item) })
	}
}

// Set adds an item, or replaces the one with its key.
func (x *Index[T]) Set(key string, item T) {
	for tree := range x.above(key) {
		tree.Set(key, item)
	}
}

// Delete removes the item of a key, if there is one.
func (x *Index[T]) Delete(key string) {
	for tree := range x.above(key) {
		tree.Delete(key)
	}
}

// Copy returns an Index with the same items. It shares the memory of all that neither changes later.
func (x *Index[T]) Copy() Index[T] {
	trees := maps.Clone(x.trees)
	for folder, tree := range trees {
		trees[folder] = tree.Copy()
	}
	return Index[T]{trees}
}

// All yields the items of each folder, with their keys.
func (x *Index[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, folder := range slices.Sorted(maps.Keys(x.trees)) {
			goesOn := true
			x.trees[folder].Scan(func(key string, item T) bool {
				goesOn = yield(key, item)
				return goesOn
			})
			if !goesOn {
				return
			}
		}
	}
}

// depth is the number of slashes in the name of a folder.
const depth = 2

// ends returns where the folders of a key end, from the outermost one, which is empty, to the innermost.
// A key with fewer slashes than depth repeats the innermost.
func ends(key string) (at [depth + 1]int) {
	for i := range depth {
		at[i+1] = at[i] + strings.IndexByte(key[at[i]:], '/') + 1
	}
	return at
}

// above yields the trees of the folders of a key.
func (x *Index[T]) above(key string) iter.Seq[*btree.Map[string, T]] {
	return func(yield func(*btree.Map[string, T]) bool) {
		if len(x.trees) == 0 {
			return
		}
		last := -1
		for _, end := range ends(key) {
			if tree := x.trees[key[:end]]; end != last && tree != nil && !yield(tree) {
				return
			}
			last = end
		}
	}
}
