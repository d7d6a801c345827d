package scheduler

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/mailbox"
)

// An Index looks up the metadata of one descriptor's actual values by name. The name of a
// value is its key without the prefix. Any goroutine may use it.
type Index[M any] struct{ x *index }

// Get returns the metadata of the value with the name, if the value exists.
func (x *Index[M]) Get(name string) (M, bool) {
	x.x.mu.RLock()
	defer x.x.mu.RUnlock()
	m, ok := x.x.byName[name]
	return meta[M](m), ok
}

// All returns the metadata of all existing values, by name.
func (x *Index[M]) All() map[string]M {
	x.x.mu.RLock()
	defer x.x.mu.RUnlock()
	out := make(map[string]M, len(x.x.byName))
	for name, m := range x.x.byName {
		out[name] = meta[M](m)
	}
	return out
}

// By adds a secondary index: of returns the terms by which a value can be found. By must
// be called before Run.
func (x *Index[M]) By(of func(M) []string) *Secondary {
	sec := &Secondary{x: x.x, of: func(m any) []string { return of(meta[M](m)) }, names: map[string][]string{}}
	x.x.secondary = append(x.x.secondary, sec)
	return sec
}

// A Secondary finds names of values by terms from their metadata.
type Secondary struct {
	x     *index
	of    func(any) []string
	names map[string][]string // guarded by x.mu
}

// Names returns the sorted names of the values with the term.
func (s *Secondary) Names(term string) []string {
	s.x.mu.RLock()
	defer s.x.mu.RUnlock()
	return slices.Clone(s.names[term])
}

// An IndexChange is new metadata of a value, or the end of the value.
type IndexChange[M any] struct {
	Name string
	Meta M
	Gone bool
}

// An IndexWatch yields changes of an index. If its reader is slow, it yields the newest
// change of each name and misses none.
type IndexWatch[M any] struct {
	x   *index
	box *mailbox.Box[IndexChange[any]]
}

// Watch watches the index. It begins with the present content. Close ends it.
func (x *Index[M]) Watch() *IndexWatch[M] {
	w := &IndexWatch[M]{x: x.x, box: mailbox.New[IndexChange[any]]()}
	x.x.mu.Lock()
	defer x.x.mu.Unlock()
	for name, m := range x.x.byName {
		w.box.Put(name, IndexChange[any]{Name: name, Meta: m})
	}
	x.x.watches = append(x.x.watches, w.box)
	return w
}

// Close ends the watch.
func (w *IndexWatch[M]) Close() {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	w.x.watches = slices.DeleteFunc(w.x.watches, func(b *mailbox.Box[IndexChange[any]]) bool { return b == w.box })
}

// Next waits for changes and returns them.
func (w *IndexWatch[M]) Next(ctx context.Context) ([]IndexChange[M], error) {
	news, err := w.box.Next(ctx)
	var out []IndexChange[M]
	for _, m := range news {
		out = append(out, IndexChange[M]{m.Name, meta[M](m.Meta), m.Gone})
	}
	return out, err
}

// index is the untyped part of an Index.
type index struct {
	mu        sync.RWMutex
	byName    map[string]any
	secondary []*Secondary
	watches   []*mailbox.Box[IndexChange[any]]
}

func (x *index) set(name string, m any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byName == nil {
		x.byName = map[string]any{}
	}
	if (len(x.secondary) > 0 || len(x.watches) > 0) && reflect.DeepEqual(x.byName[name], m) {
		return
	}
	x.removeSecondary(name)
	x.byName[name] = m
	for _, sec := range x.secondary {
		for _, term := range sec.of(m) {
			names := sec.names[term]
			if i, found := slices.BinarySearch(names, name); !found {
				sec.names[term] = slices.Insert(names, i, name)
			}
		}
	}
	x.notify(IndexChange[any]{Name: name, Meta: m})
}

func (x *index) drop(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.byName[name]; !ok {
		return
	}
	x.removeSecondary(name)
	delete(x.byName, name)
	x.notify(IndexChange[any]{Name: name, Gone: true})
}

// removeSecondary removes name from the secondary indexes.
func (x *index) removeSecondary(name string) {
	m, ok := x.byName[name]
	if !ok {
		return
	}
	for _, sec := range x.secondary {
		for _, term := range sec.of(m) {
			names := sec.names[term]
			if i, found := slices.BinarySearch(names, name); found {
				sec.names[term] = slices.Delete(names, i, i+1)
			}
			if len(sec.names[term]) == 0 {
				delete(sec.names, term)
			}
		}
	}
}

func (x *index) notify(m IndexChange[any]) {
	for _, box := range x.watches {
		box.Put(m.Name, m)
	}
}
