package history

import (
	"slices"
	"unsafe"
)

// A Columnar is a column of any type.
type Columnar interface {
	Resize(n, room int)
	Part(first, last int)
	Bytes() int
}

// A Column is one field of many structs, of which there is room for so many; nil: it is zero in all of them.
type Column[T any] []T

// Set sets the field of the i-th struct.
func (c *Column[T]) Set(i, room int, v T, zero bool) {
	if *c == nil {
		if zero {
			return
		}
		*c = make([]T, room)
	}
	(*c)[i] = v
}

// At returns the field of the i-th struct.
func (c Column[T]) At(i int) (v T) {
	if c != nil {
		v = c[i]
	}
	return v
}

// Resize makes room for so many structs, of which the first n are there.
func (c *Column[T]) Resize(n, room int) {
	if *c != nil {
		to := make([]T, room)
		copy(to, (*c)[:n])
		*c = to
	}
}

// Part leaves the structs from first up to last.
func (c *Column[T]) Part(first, last int) {
	if *c != nil {
		*c = (*c)[first:last]
	}
}

// Edit replaces what needs that, in a copy of the column, which others share.
func (c *Column[T]) Edit(needs func(T) bool, change func(T) T) {
	if !slices.ContainsFunc(*c, needs) {
		return
	}
	*c = slices.Clone(*c)
	for i, v := range *c {
		if needs(v) {
			(*c)[i] = change(v)
		}
	}
}

// Bytes is the memory of the column, without that to which its elements refer.
func (c *Column[T]) Bytes() int {
	var one T
	return len(*c) * int(unsafe.Sizeof(one))
}
