package published

import (
	"iter"
	"maps"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// ofKind are the values of one descriptor by key. It is immutable.
type ofKind = map[string]*Status

// Shown are the values that a system has made by itself: a read-back has found them, and the graph has no
// node for them. So they can be seen, and can take part in no decision. The zero Shown has none.
//
//	shown.Replace(descriptor, found, now, obtained)
//	moment := shown.Now()
//	moment.Hide(x)                  // the graph has a value with that key
//	for x := range moment.Rest()    // those that were not hidden
//
// One goroutine writes. Any goroutine reads.
type Shown struct {
	all atomic.Pointer[map[*kind.Descriptor]ofKind]
}

// load returns the present values.
func (v *Shown) load() map[*kind.Descriptor]ofKind {
	if all := v.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Replace replaces the values of a descriptor by those that were found. They are in a state since now, unless the
// same value was there before.
func (v *Shown) Replace(d *kind.Descriptor, found []kind.Found, now time.Time, state uint8) {
	before := v.load()[d]
	if len(before)+len(found) == 0 {
		return
	}
	of := make(ofKind, len(found))
	for _, f := range found {
		old := before[f.Key]
		if old != nil && proto.Equal(kind.Message(old.Actual), f.Value) {
			of[f.Key] = old
			continue
		}
		// Without its dependencies and derived values: nothing is decided about it.
		of[f.Key] = OfShown(&graph.Value{Key: f.Key, Data: f.Value, Kind: d}, state, now)
	}
	v.store(d, of)
}

// Drop forgets the values of a descriptor: nobody knows whether they are still there.
func (v *Shown) Drop(d *kind.Descriptor) {
	if len(v.load()[d]) > 0 {
		v.store(d, nil)
	}
}

func (v *Shown) store(d *kind.Descriptor, of ofKind) {
	all := maps.Clone(v.load())
	if all == nil {
		all = map[*kind.Descriptor]ofKind{}
	}
	all[d] = of
	v.all.Store(&all)
}

// Find returns the value under key, or nil.
func (v *Shown) Find(key string) *Status {
	for _, of := range v.load() {
		if x := of[key]; x != nil {
			return x
		}
	}
	return nil
}

// A Moment is all values at one time, without those that are hidden. It belongs to its caller.
type Moment struct {
	all    map[*kind.Descriptor]ofKind
	hidden map[string]bool
}

// Now returns the present values.
func (v *Shown) Now() Moment { return Moment{v.load(), map[string]bool{}} }

// Hide leaves out the value with the key of x, which the graph has.
func (m Moment) Hide(x *Status) {
	if len(m.all) == 0 {
		return
	}
	if key := x.Key(); m.all[x.Descriptor()][key] != nil {
		m.hidden[key] = true
	}
}

// Rest yields the values that are not hidden, in no order.
func (m Moment) Rest() iter.Seq[*Status] {
	return func(yield func(*Status) bool) {
		for _, of := range m.all {
			for key, x := range of {
				if !m.hidden[key] && !yield(x) {
					return
				}
			}
		}
	}
}
