package readback

import (
	"iter"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// Coming are values that are about to be declared. The zero Coming has none.
type Coming map[graph.Kind]*comingOf

// comingOf are the values of a kind. A start with a million values and an empty system asks for none of them.
type comingOf struct {
	values []*graph.Value          // in the order of their keys, which differ
	byKey  map[string]*graph.Value // the same, when one has been asked for
}

// NewComing returns these values. Of several with one key, the last one counts.
func NewComing(values iter.Seq[*graph.Value]) Coming {
	c := Coming{}
	for v := range values {
		of := c[v.Kind]
		if of == nil {
			of = &comingOf{}
			c[v.Kind] = of
		}
		of.values = append(queue.Doubled(of.values), v)
	}
	for _, of := range c {
		of.sort()
	}
	return c
}

// sort puts the values in order, unless they are, as those of a listing, and drops all but the last of each key.
func (of *comingOf) sort() {
	byKey := func(a, b *graph.Value) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(of.values, byKey) {
		slices.SortStableFunc(of.values, byKey)
	}
	last := of.values[:0]
	for i, v := range of.values {
		if i == len(of.values)-1 || of.values[i+1].Key != v.Key {
			last = append(last, v)
		}
	}
	of.values = last
}

// of returns the values of a kind, in the order of their keys.
func (c Coming) of(k graph.Kind) []*graph.Value {
	if c[k] == nil {
		return nil
	}
	return c[k].values
}

// get returns the value of a key; nil: none is coming.
func (c Coming) get(k graph.Kind, key string) *graph.Value {
	of := c[k]
	if of == nil {
		return nil
	}
	if of.byKey == nil {
		of.byKey = make(map[string]*graph.Value, len(of.values))
		for _, v := range of.values {
			of.byKey[v.Key] = v
		}
	}
	return of.byKey[key]
}
