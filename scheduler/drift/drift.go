// Package drift compares the actual state of the system with the state that a scheduler knows.
// Programs that change the system behind the scheduler's back cause differences, and so do
// descriptors that do not watch their system. A resync removes them; this package only reports
// them:
//
//	report, err := drift.Check(ctx, s)
//	for _, v := range report.Values {
//		fmt.Println(v.Key, v.Kind, v.Desired, v.Actual)
//	}
package drift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/internal/actual"
	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/inside"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Report has the differences that one call of Check found.
type Report struct {
	Start, Stop time.Time
	Read        int     // number of values that were read back
	Values      []Value // sorted by key
	// Unknown are the kinds with values of which the scheduler itself does not know whether they exist.
	Unknown []scheduler.UnknownKind
	Errors  []error // of descriptors that could not be read back: nothing is known about their values
}

// A Value is one value that differs.
type Value struct {
	Key, Descriptor string
	Kind            Kind
	State           scheduler.State // RETRYING or FAILED: the scheduler knows of the difference, and could not repair it
	// Normalized; nil: none. They are shared: nobody may change them. If the value differs, Actual
	// has only the fields that the descriptor would repair; the others are those of Desired.
	Desired, Actual proto.Message
}

// A Kind says how a value differs. The names are those of metrics and of the HTTP API.
type Kind uint8

const (
	Missing    Kind = iota // it is declared and waits for nothing, and the system does not have it
	Differs                // the system has it in another form
	Unexpected             // the system has it, and it is ours, and it should not be there
)

// Kinds returns all kinds, in ascending order. Metrics use it to report a kind without
// values as 0.
func Kinds() []Kind { return []Kind{Missing, Differs, Unexpected} }

func (k Kind) String() string { return [...]string{"missing", "differs", "unexpected"}[k] }

// Check reads back all values of s and compares them with the declared ones. It changes
// nothing, neither in the system nor in the scheduler, and no transaction waits for it. A value
// that changes meanwhile, or that a verb is running for, is left out. So are values of others,
// those that wait for another value, and invalid ones.
//
// The values of a connection that is lost, and of a kind that is unknown, are not compared. A descriptor that cannot
// be read back has an error in the report. Check itself fails only if ctx ends.
func Check(ctx context.Context, s *scheduler.Scheduler) (*Report, error) {
	out := &Report{Start: time.Now()}
	c := comparison{s: s, in: s.Inside(), before: map[string]*scheduler.Status{}, found: map[string]bool{}, unread: map[string]bool{}}
	inDoubt := map[string]bool{} // names of descriptors
	for st := range s.All() {
		c.before[st.Key] = st
		inDoubt[st.Descriptor] = inDoubt[st.Descriptor] || st.Unknown
	}
	lost, unknown, reader := map[string]bool{}, s.Unknown(), actual.NewReader(s, nil)
	for _, conn := range s.Connections() {
		lost[conn.Name] = !conn.State.Connected()
	}
	for _, d := range c.in.Registry.Order {
		kind, isUnknown := unknown[d.Name]
		if isUnknown && inDoubt[d.Name] {
			out.Unknown = append(out.Unknown, kind)
		}
		if d.Retrieve == nil || lost[d.Connection.Pool.Connection] || isUnknown {
			c.leaveOut(d)
			continue
		}
		items, err := reader.Read(ctx, d, 0)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading back: %w", ctx.Err())
		}
		if err != nil {
			out.Errors = append(out.Errors, fmt.Errorf("%s: %w", d.Name, err))
			c.leaveOut(d)
			continue
		}
		out.Read += len(items)
		for _, it := range items {
			c.add(d, it)
		}
	}
	out.Values = c.result()
	out.Stop = time.Now()
	c.in.Counters.Drifted(counts(out.Values), out.Stop)
	return out, nil
}

// counts returns the numbers of values by descriptor, for the metrics.
func counts(values []Value) map[string]counters.Drift {
	out := map[string]counters.Drift{}
	for _, v := range values {
		n := out[v.Descriptor]
		n[v.Kind]++
		out[v.Descriptor] = n
	}
	return out
}

// A comparison compares what was read back with the statuses before it.
type comparison struct {
	s      *scheduler.Scheduler
	in     inside.View[*scheduler.Status, scheduler.Dependency]
	before map[string]*scheduler.Status // by key
	found  map[string]bool              // keys
	unread map[string]bool              // names of descriptors of which nothing is known
	values []Value
}

// leaveOut records that d was not read back. Values that show only in their base are compared
// nevertheless, because the descriptor of the base decides about them.
func (c *comparison) leaveOut(d *kind.Descriptor) {
	c.unread[d.Name] = d.Evidence() != value.ShownByBase
}

// add compares one value that was read back, and its derived values that only show in it.
func (c *comparison) add(d *kind.Descriptor, it kind.Found) {
	c.found[it.Key] = true
	v := c.in.Registry.Actual(d, it.Key, it.Value)
	st := c.before[it.Key]
	c.addDerived(v, !it.Foreign && st != nil && applicable(st))
	switch {
	case it.Foreign:
	case st == nil || st.State == scheduler.Pending:
		c.values = append(c.values, Value{Key: it.Key, Descriptor: d.Name, Kind: Unexpected, Actual: kind.Message(v)})
	case st.Desired == nil && failed(st):
		c.values = append(c.values, Value{Key: it.Key, Descriptor: d.Name, Kind: Unexpected, State: st.State, Actual: kind.Message(v)})
	case applicable(st):
		want, got := st.Normalized(), kind.Message(v)
		if got != want && !d.Equal(it.Key, got, want) {
			c.values = append(c.values, Value{Key: it.Key, Descriptor: d.Name, Kind: Differs, State: st.State, Desired: want, Actual: essential(got, want, func(got proto.Message) bool {
				return d.Equal(it.Key, got, want)
			})})
		}
	}
}

// addDerived marks the derived values of v as found that no Retrieve of their own reports. If v itself stands as it
// should, a resync compares them too: one that nobody wants would be removed, and one that differs be changed. The
// derived values of a base that is unexpected itself count with it.
func (c *comparison) addDerived(v *graph.Value, stands bool) {
	for _, p := range v.Derived() {
		of := kind.OfValue(p)
		shown := of != nil && of.Evidence() == value.ShownByBase
		if shown {
			c.found[p.Key] = true
		}
		st, got := c.before[p.Key], kind.Message(p)
		applies := st != nil && applicable(st)
		switch {
		case !shown || !stands:
		case st == nil || st.State == scheduler.Pending:
			c.values = append(c.values, Value{Key: p.Key, Descriptor: of.Name, Kind: Unexpected, Actual: got})
		case st.Desired == nil && failed(st):
			c.values = append(c.values, Value{Key: p.Key, Descriptor: of.Name, Kind: Unexpected, State: st.State, Actual: got})
		case applies && !of.Equal(p.Key, got, st.Normalized()):
			c.values = append(c.values, Value{Key: p.Key, Descriptor: of.Name, Kind: Differs, State: st.State, Desired: st.Normalized(), Actual: got})
		}
		c.addDerived(p, stands && (!shown || applies))
	}
}

// applicable reports whether a value should be in the system as it is declared: nothing that it
// needs is missing.
func applicable(st *scheduler.Status) bool {
	return st.Desired != nil && (st.State == scheduler.Configured || failed(st))
}

// failed reports whether a verb of the value has failed. Its effect is unknown: even a Create that
// failed may have made the value.
func failed(st *scheduler.Status) bool {
	return st.State == scheduler.Failed || st.State == scheduler.Retrying
}

// result returns the differences, sorted by key. It adds the declared values that were not
// found, and drops those that have changed meanwhile.
func (c *comparison) result() []Value {
	for _, st := range c.before {
		if applicable(st) && !c.found[st.Key] && !c.unread[st.Descriptor] && c.shows(st) {
			c.values = append(c.values, Value{Key: st.Key, Descriptor: st.Descriptor, Kind: Missing, State: st.State, Desired: st.Normalized()})
		}
	}
	differing := slices.DeleteFunc(c.values, func(v Value) bool {
		_, running := c.in.Executor.Running(v.Key)
		before := c.before[v.Key]
		now, exists := c.s.Status(v.Key)
		return running || exists != (before != nil) || exists && !c.in.Same(now, before)
	})
	slices.SortFunc(differing, func(a, b Value) int { return cmp.Compare(a.Key, b.Key) })
	return differing
}

// shows reports whether reading back would have shown a value. A value that only its base
// shows is not missing with it: a lost base counts once.
func (c *comparison) shows(st *scheduler.Status) bool {
	d := c.in.Registry.Of(st.Key)
	switch {
	case d == nil || d.Evidence() == value.FollowsBase:
		return false
	case d.Evidence() == value.ReadAlone:
		return true
	}
	return st.Base != "" && c.found[st.Base]
}
