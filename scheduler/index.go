package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

// An Index looks up the metadata of one descriptor's actual values by name. The name of a
// value is its key without the prefix. Any goroutine may use it.
type Index[M any] struct{ x *watch.Index }

// Get returns the metadata of the value with the name, if the value exists.
func (x *Index[M]) Get(name string) (M, bool) {
	m, ok := x.x.Get(name)
	return kind.Meta[M](m), ok
}

// All returns the metadata of all existing values, by name.
func (x *Index[M]) All() map[string]M {
	content := x.x.Content()
	out := make(map[string]M, len(content))
	for name, m := range content {
		out[name] = kind.Meta[M](m)
	}
	return out
}

// By adds a secondary index: of returns the terms by which a value can be found, and names
// returns the sorted names of the existing values with a term. By must be called before Run;
// any goroutine may call names.
func (x *Index[M]) By(of func(M) []string) (names func(term string) []string) {
	return x.x.By(func(m any) []string { return of(kind.Meta[M](m)) })
}

// An IndexChange is new metadata of a value, or the end of the value. Meta is the newest
// metadata; it is the zero value if the value is gone.
type IndexChange[M any] struct {
	Name string
	Meta M
	Gone bool
}

// Watch watches the index. It begins with the present content.
func (x *Index[M]) Watch() *Watch[IndexChange[M]] {
	return newWatch(x.x.Watch(), func(c watch.Change) IndexChange[M] { return IndexChange[M]{c.Name, kind.Meta[M](c.Meta), c.Gone} })
}
