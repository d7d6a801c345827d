package watch

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
)

// An Index finds the metadata of values by name, or names by terms from the metadata.
// It knows no types; package scheduler adds them.
//
// The scheduler's goroutine writes; any goroutine reads. A name is in the index from the
// end of its Create, or from the Retrieve that found it, until its Delete has ended. So a
// verb of a dependent value always finds the metadata of its dependencies.
type Index struct {
	changes *Hub[Change]

	mu     sync.RWMutex // guards the fields below
	byName map[string]any
	terms  []*terms
}

// A Change is new metadata of a value, or the end of the value.
type Change struct {
	Name string
	Meta any
	Gone bool
}

// terms is a secondary index.
type terms struct {
	of    func(meta any) []string
	names map[string][]string // sorted; by term
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{changes: NewHub(func(c Change) string { return c.Name }), byName: map[string]any{}}
}

// Get returns the metadata of a name, and whether the name is known.
func (x *Index) Get(name string) (meta any, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	meta, ok = x.byName[name]
	return meta, ok
}

// Content returns a copy of all metadata by name.
func (x *Index) Content() map[string]any {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.byName)
}

// By adds a secondary index: of returns the terms of metadata, and names returns the sorted
// names with a term. By must be called before the first Set.
func (x *Index) By(of func(meta any) []string) (names func(term string) []string) {
	t := &terms{of: of, names: map[string][]string{}}
	x.terms = append(x.terms, t)
	return func(term string) []string {
		x.mu.RLock()
		defer x.mu.RUnlock()
		return slices.Clone(t.names[term])
	}
}

// Watch begins with the present content.
func (x *Index) Watch() *Reader[Change] {
	return x.changes.Open("", func(yield func(Change) bool) { each(x.Content())(yield) })
}

// each yields the content as changes, for a watch that begins.
func each(content map[string]any) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for name, meta := range content {
			if !yield(Change{Name: name, Meta: meta}) {
				return
			}
		}
	}
}

// Set stores the metadata of a name. Equal metadata is no change.
func (x *Index) Set(name string, meta any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if (len(x.terms) > 0 || !x.changes.Empty()) && reflect.DeepEqual(x.byName[name], meta) {
		return
	}
	x.removeTerms(name)
	x.byName[name] = meta
	for _, t := range x.terms {
		for _, term := range t.of(meta) {
			names := t.names[term]
			if i, found := slices.BinarySearch(names, name); !found {
				t.names[term] = slices.Insert(names, i, name)
			}
		}
	}
	x.changes.Publish(Change{Name: name, Meta: meta})
}

// Drop forgets a name. It does nothing if the name is unknown.
func (x *Index) Drop(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.byName[name]; !ok {
		return
	}
	x.removeTerms(name)
	delete(x.byName, name)
	x.changes.Publish(Change{Name: name, Gone: true})
}

// removeTerms removes name from the secondary indexes.
func (x *Index) removeTerms(name string) {
	meta, ok := x.byName[name]
	if !ok {
		return
	}
	for _, t := range x.terms {
		for _, term := range t.of(meta) {
			names := t.names[term]
			if i, found := slices.BinarySearch(names, name); found {
				t.names[term] = slices.Delete(names, i, i+1)
			}
			if len(t.names[term]) == 0 {
				delete(t.names, term)
			}
		}
	}
}
