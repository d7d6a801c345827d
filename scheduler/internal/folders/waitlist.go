package folders

import "iter"

// Waitlists have the elements that wait for something in a folder, a list for each folder.
// An element may wait in several folders. Adding and removing one takes the same time in a list
// of any length. The zero value is empty. One goroutine uses it.
type Waitlists[E any] struct{ folders map[string]*Waitlist[E] }

// A Waitlist has the elements of one folder. A nil Waitlist is empty.
type Waitlist[E any] struct {
	folder  string
	entries []*entry[E]
}

// Places are the entries of one element, in the order of its folders.
type Places[E any] []entry[E]

// An entry is the place of an element in one list.
type entry[E any] struct {
	of   E
	list *Waitlist[E]
	pos  int // in list.entries
}

// Empty reports that no element waits.
func (l *Waitlists[E]) Empty() bool { return len(l.folders) == 0 }

// In returns the list of a folder; nil: nothing waits there.
func (l *Waitlists[E]) In(folder string) *Waitlist[E] { return l.folders[folder] }

// Above yields the lists of the folders in which a key is, the root first. Elements may be removed
// meanwhile.
func (l *Waitlists[E]) Above(key string) iter.Seq[*Waitlist[E]] {
	return func(yield func(*Waitlist[E]) bool) {
		if l.Empty() || !yield(l.In("")) {
			return
		}
		for i := range len(key) {
			if key[i] == '/' && !yield(l.In(key[:i+1])) {
				return
			}
		}
	}
}

// Len returns the number of elements in the list.
func (l *Waitlist[E]) Len() int {
	if l == nil {
		return 0
	}
	return len(l.entries)
}

// At returns the element at an index. If that one is removed, another one takes its index, or
// the list gets shorter.
func (l *Waitlist[E]) At(i int) E { return l.entries[i].of }

// Add appends an element to the lists of folders. Remove needs the result.
func (l *Waitlists[E]) Add(e E, folders []string) *Places[E] {
	if l.folders == nil {
		l.folders = map[string]*Waitlist[E]{}
	}
	places := make(Places[E], len(folders))
	for i, folder := range folders {
		list := l.folders[folder]
		if list == nil {
			list = &Waitlist[E]{folder: folder}
			l.folders[folder] = list
		}
		places[i] = entry[E]{of: e, list: list, pos: len(list.entries)}
		list.entries = append(list.entries, &places[i])
	}
	return &places
}

// Remove removes an element from its lists. The last one of a list takes its place there.
func (l *Waitlists[E]) Remove(places *Places[E]) {
	for i := len(*places) - 1; i >= 0; i-- {
		gone := &(*places)[i]
		list := gone.list
		last := len(list.entries) - 1
		list.entries[gone.pos] = list.entries[last]
		list.entries[gone.pos].pos = gone.pos
		list.entries[last] = nil
		list.entries = list.entries[:last]
		if last == 0 {
			delete(l.folders, list.folder)
		}
	}
}

// Restore undoes Remove. All changes after that Remove must have been undone, the last one
// first, so that the former positions are right again.
func (l *Waitlists[E]) Restore(places *Places[E]) {
	for i := range *places {
		back := &(*places)[i]
		list := back.list
		l.folders[list.folder] = list
		list.entries = append(list.entries, back)
		last := len(list.entries) - 1
		list.entries[last], list.entries[back.pos] = list.entries[back.pos], back
		list.entries[last].pos = last
	}
}
