// Package lists compares long lists in a time that is proportional to their length. Lists of
// a value come from users, and may have a hundred thousand elements.
//
//	for i, addr := range lists.Firsts(v.GetIpAddresses()) { ... } // each once
//	gone := lists.Without(old, new)
//
// The functions are pure, and keep the order of their arguments.
package lists

import "iter"

// Firsts yields each different element of all once, with its first index.
func Firsts[T comparable](all []T) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		seen := make(map[T]bool, len(all))
		for i, one := range all {
			if seen[one] {
				continue
			}
			seen[one] = true
			if !yield(i, one) {
				return
			}
		}
	}
}

// Unique returns each different element of all once; nil for none.
func Unique[T comparable](all []T) (out []T) {
	for _, one := range Firsts(all) {
		out = append(out, one)
	}
	return out
}

// Set returns a map that is true for the elements of all.
func Set[T comparable](all []T) map[T]bool {
	out := make(map[T]bool, len(all))
	for _, one := range all {
		out[one] = true
	}
	return out
}

// Without returns the elements of all that are not in other; nil for none.
func Without[T comparable](all, other []T) (out []T) {
	in := Set(other)
	for _, one := range all {
		if !in[one] {
			out = append(out, one)
		}
	}
	return out
}
