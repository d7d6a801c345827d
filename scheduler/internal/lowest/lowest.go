// Package lowest finds, for each of many elements, the lowest of the others: the one that keeps what all of them claim.
package lowest

// An Element has a key, by which elements are ordered. The zero value of its type is none.
type Element interface {
	comparable
	Key() string
}

// Two has the two elements with the lowest keys of those that were added: the lowest one, and the
// one that is lowest for it. The zero Two has none.
type Two[E Element] [2]E

// Add adds an element. It may have been added before.
func (t *Two[E]) Add(e E) {
	var none E
	switch {
	case t[0] == e || t[1] == e:
	case t[0] == none || e.Key() < t[0].Key():
		t[0], t[1] = e, t[0]
	case t[1] == none || e.Key() < t[1].Key():
		t[1] = e
	}
}

// Except returns the lowest element other than e. The zero value: there is none.
func (t *Two[E]) Except(e E) E {
	if t[0] == e {
		return t[1]
	}
	return t[0]
}
