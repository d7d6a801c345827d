package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A Drift is the difference between the actual state of the system and the state that the
// scheduler knows. A resync removes it.
type Drift struct {
	Start, Stop time.Time
	Read        int // number of values that were read back
	Values      []Drifted
	Errors      []error // of descriptors that could not be read back: nothing is known about their values
}

// A Drifted is one value that differs.
type Drifted struct {
	Key, Descriptor string
	Kind            DriftKind
	Desired, Actual Message // normalized; nil: none
}

// A DriftKind says how a value differs.
type DriftKind uint8

const (
	DriftMissing    DriftKind = iota // it is configured, and the system does not have it
	DriftDiffers                     // the system has it in another form
	DriftUnexpected                  // the system has it, and it is ours, and it is not configured
)

func (k DriftKind) String() string { return [...]string{"missing", "differs", "unexpected"}[k] }

// counts returns the numbers of values by descriptor.
func (d *Drift) counts() map[string]counters.Drift {
	out := map[string]counters.Drift{}
	for _, v := range d.Values {
		n := out[v.Descriptor]
		n[v.Kind]++
		out[v.Descriptor] = n
	}
	return out
}

// Drift reads back all values and compares them with the configured ones. It changes nothing,
// neither in the system nor in the scheduler, and no transaction waits for it. A value that
// changes meanwhile, or that a verb is running for, is left out. So are values of others.
func (s *Scheduler) Drift(ctx context.Context) (*Drift, error) {
	out := &Drift{Start: time.Now()}
	before := map[string]*Status{}
	desired := map[string][]kind.Desired{} // by descriptor
	for st := range s.statuses.All() {
		before[st.Key] = st
		if st.Desired != nil && st.Base == "" {
			desired[st.Descriptor] = append(desired[st.Descriptor], kind.Desired{Key: st.Key, Value: kind.Message(st.value)})
		}
	}
	comparison := comparison{s: s, before: before, found: map[string]bool{}}
	for _, d := range s.registry.Order {
		if d.Retrieve == nil || s.isDisconnected(d) {
			comparison.unread(d)
			continue
		}
		got, err := s.collect(ctx, reading{d: d}, desired[d.Name])
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading back: %w", ctx.Err())
		}
		if err != nil {
			out.Errors = append(out.Errors, fmt.Errorf("%s: %w", d.Name, err))
			comparison.unread(d)
			continue
		}
		out.Read += len(got.items)
		for _, it := range got.items {
			comparison.add(d, it)
		}
	}
	out.Values = comparison.result()
	out.Stop = time.Now()
	s.counters.Drifted(out.counts(), out.Stop)
	return out, nil
}

// isDisconnected reports whether the connection of d is not ready.
func (s *Scheduler) isDisconnected(d *descriptor) bool {
	g := s.connections[d.Pool.Connection]
	return g != nil && !g.ready.Load()
}

// A comparison compares what was read back with the statuses before it.
type comparison struct {
	s       *Scheduler
	before  map[string]*Status
	found   map[string]bool
	unknown []*descriptor // not read back
	values  []Drifted
}

func (c *comparison) unread(d *descriptor) { c.unknown = append(c.unknown, d) }

// add compares one value that was read back, and its derived values that only show in it.
func (c *comparison) add(d *descriptor, it kind.Found) {
	c.found[it.Key] = true
	v := c.s.registry.Actual(d, it.Key, it.Value)
	var derived func(parts []*graph.Value)
	derived = func(parts []*graph.Value) {
		for _, p := range parts {
			if of := kind.OfValue(p); of != nil && of.Evidence() == graph.ShownByBase {
				c.found[p.Key] = true
			}
			derived(p.Derived)
		}
	}
	derived(v.Derived)
	st := c.before[it.Key]
	switch {
	case it.Foreign:
	case st == nil || st.State == Pending:
		c.values = append(c.values, Drifted{Key: it.Key, Descriptor: d.Name, Kind: DriftUnexpected, Actual: kind.Message(v)})
	case st.State == Configured && st.Desired != nil:
		want := kind.Message(st.value)
		if got := kind.Message(v); got != want && !d.Equal(it.Key, got, want) {
			c.values = append(c.values, Drifted{Key: it.Key, Descriptor: d.Name, Kind: DriftDiffers, Desired: want, Actual: got})
		}
	}
}

// result returns the differences, sorted by key. It adds the configured values that were not
// found, and drops those that have changed meanwhile.
func (c *comparison) result() []Drifted {
	unread := map[string]bool{}
	for _, d := range c.unknown {
		unread[d.Name] = d.Evidence() != graph.ShownByBase // else its base decides
	}
	for _, st := range c.before {
		if st.State != Configured || st.Desired == nil || c.found[st.Key] || unread[st.Descriptor] || !c.shows(st) {
			continue
		}
		c.values = append(c.values, Drifted{Key: st.Key, Descriptor: st.Descriptor, Kind: DriftMissing, Desired: kind.Message(st.value)})
	}
	settled := slices.DeleteFunc(c.values, func(v Drifted) bool {
		_, running := c.s.executor.Running(v.Key)
		return running || c.s.statuses.Find(v.Key) != c.before[v.Key]
	})
	slices.SortFunc(settled, func(a, b Drifted) int { return cmp.Compare(a.Key, b.Key) })
	return settled
}

// shows reports whether reading back would have shown a value. A value that only its base
// shows is not missing with it: a lost base counts once.
func (c *comparison) shows(st *Status) bool {
	d := c.s.registry.Of(st.Key)
	switch {
	case d == nil || d.Evidence() == graph.FollowsBase:
		return false
	case d.Evidence() == graph.ReadAlone:
		return true
	}
	return st.Base != "" && c.found[st.Base]
}
