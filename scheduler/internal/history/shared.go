package history

import (
	"sync"
	"unsafe"
)

// A Sharing says how structs repeat parts of items. Most operations of a transaction, for example,
// repeat the key and the message of one of its values.
type Sharing[S, I any] struct {
	Key     func(*S) string // of the item that a struct may repeat
	KeyOf   func(I) string  // of an item; several may have the same one
	Strip   func(*S, I) bool
	Restore func(*S, I) // undoes Strip, which reports whether it removed the repeated parts
}

// Shared has packed structs without what they repeat of items.
type Shared[S any] struct {
	from []int32 // by struct: the index of the item plus 1; 0: it repeats none
	rest Packed[S]
}

// An Items finds items by key.
type Items[I any] struct {
	all     []I
	indexes func() map[string]int32
}

// Items returns the items for calls of Pack.
func (s Sharing[S, I]) Items(all []I) Items[I] {
	return Items[I]{all, sync.OnceValue(func() map[string]int32 {
		out := make(map[string]int32, len(all))
		for i, item := range all {
			out[s.KeyOf(item)] = int32(i)
		}
		return out
	})}
}

// Pack packs structs. It is fast if they have the order of the items.
func (s Sharing[S, I]) Pack(structs []S, items Items[I]) Shared[S] {
	p := Shared[S]{from: make([]int32, len(structs))}
	next := 0
	p.rest = Pack(len(structs), func(i int) S {
		one := structs[i]
		if key := s.Key(&one); next >= len(items.all) || s.KeyOf(items.all[next]) != key {
			at, known := items.indexes()[key]
			if !known {
				return one
			}
			next = int(at)
		}
		if s.Strip(&one, items.all[next]) {
			p.from[i] = int32(next + 1)
		}
		next++
		return one
	})
	return p
}

// Unpack returns new copies of the first structs, at most so many; nil if there are none.
func (s Sharing[S, I]) Unpack(p Shared[S], items []I, most int) []S {
	all := p.rest.Unpack(most)
	for i := range all {
		if at := p.from[i]; at > 0 {
			s.Restore(&all[i], items[at-1])
		}
	}
	return all
}

// Bytes returns the memory of the packed structs, without the memory to which they refer.
func (p Shared[S]) Bytes() int { return len(p.from)*int(unsafe.Sizeof(p.from[0])) + p.rest.Bytes() }

// Len returns the number of structs.
func (p Shared[S]) Len() int { return len(p.from) }
