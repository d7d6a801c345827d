package queue

// A Fair queue has the elements of several owners. Each owner's are first in, first out, and the owners take turns, so that
// one with many elements delays another one by no more than a turn. The zero value is empty. One goroutine uses it.
type Fair[E any] struct {
	owners []owned[E] // those with elements, the one whose turn it is first
	len    int
	taken  int // elements of the first owner in its present turn
}

type owned[E any] struct {
	owner uint8
	queue Queue[E]
}

// turn is the number of elements of one turn: enough of a kind for one call of CreateAll.
const turn = 16

// Len returns the number of elements.
func (f *Fair[E]) Len() int { return f.len }

// Push appends an element of an owner.
func (f *Fair[E]) Push(owner uint8, e E) {
	f.len++
	for i := range f.owners {
		if f.owners[i].owner == owner {
			f.owners[i].queue.Push(e)
			return
		}
	}
	f.owners = append(f.owners, owned[E]{owner: owner})
	f.owners[len(f.owners)-1].queue.Push(e)
}

// Pop removes the next element, and returns it with its owner; the zero value if the queue is empty.
func (f *Fair[E]) Pop() (owner uint8, e E) {
	if f.len == 0 {
		return 0, e
	}
	f.len--
	first := f.owners[0]
	owner, e = first.owner, f.owners[0].queue.Pop()
	f.taken++
	if f.owners[0].queue.Len() > 0 && f.taken < turn {
		return owner, e
	}
	first, f.taken = f.owners[0], 0
	copy(f.owners, f.owners[1:])
	last := len(f.owners) - 1
	f.owners[last] = first
	if first.queue.Len() == 0 {
		f.owners[last] = owned[E]{}
		f.owners = f.owners[:last]
	}
	return owner, e
}

// All yields the elements, in no particular order.
func (f *Fair[E]) All(yield func(E) bool) {
	for i := range f.owners {
		for e := range f.owners[i].queue.All() {
			if !yield(e) {
				return
			}
		}
	}
}
